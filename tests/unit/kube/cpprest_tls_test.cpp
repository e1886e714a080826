// Whom the transport trusts, who it says it is, and what it goes through.
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "kube/files.h"
#include "tests/unit/kube/cpprest_fixture.h"

namespace loadline::kube {
namespace {

using namespace std::chrono_literals;

TEST(CpprestTransport, TrustsOnlyTheClustersCaAndShowsItsCertificate) {
  const TestPki pki = TestPki::make();
  HttpServer server(
      [](Connection& connection) {
        connection.read_request();
        connection.write(http_answer(200, connection.client_name()));
      },
      &pki);
  ClusterConfig config;
  config.server = server.url();
  config.ca_pem = pki.ca_pem;
  config.auth = static_auth({.authorization = "", .identity = {pki.client_certificate_pem, pki.client_key_pem}});
  const Answer<Response> known = transport_to(config)->send(get("/"), 5s, {});
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(known->body, "tester");

  config.ca_pem = TestPki::make().ca_pem;
  const Answer<Response> stranger = transport_to(config)->send(get("/"), 5s, {});
  ASSERT_FALSE(stranger.ok());
  EXPECT_EQ(stranger.error().reason, ApiError::kConnection);

  config.insecure = true;
  EXPECT_TRUE(transport_to(config)->send(get("/"), 5s, {}).ok());
}

TEST(CpprestTransport, TrustsEachCertificateOfTheBundleAsAnAnchor) {
  const TestPki pki = TestPki::make_with_intermediate();
  HttpServer server(answering([](const std::string&) { return http_answer(200, "{}"); }), &pki);
  ClusterConfig config;
  config.server = server.url();
  for (const std::string& anchor : {pki.ca_pem, pki.intermediate_pem}) {
    config.ca_pem = anchor;
    const Answer<Response> answer = transport_to(config)->send(get("/"), 5s, {});
    EXPECT_TRUE(answer.ok()) << (answer ? "" : answer.error().message);
  }
  config.ca_pem = TestPki::make_with_intermediate().intermediate_pem;
  EXPECT_FALSE(transport_to(config)->send(get("/"), 5s, {}).ok());
  config.ca_pem = pki.intermediate_pem;
  config.tls_server_name = "other.test";
  EXPECT_FALSE(transport_to(config)->send(get("/"), 5s, {}).ok()) << "the name counts all the same";
}

TEST(CpprestTransport, ChecksTheCertificateForTheServerNameGiven) {
  const TestPki pki = TestPki::make();
  HttpServer server(answering([](const std::string&) { return http_answer(200, "{}"); }), &pki);
  ClusterConfig config;
  config.server = server.url();
  config.ca_pem = pki.ca_pem;
  config.tls_server_name = "api.test";
  EXPECT_TRUE(transport_to(config)->send(get("/"), 5s, {}).ok());
  config.tls_server_name = "other.test";
  EXPECT_FALSE(transport_to(config)->send(get("/"), 5s, {}).ok());
}

TEST(CpprestTransport, TrustsTheNextCaOnceAConnectionFailed) {
  const TestPki first = TestPki::make();
  const TestPki second = TestPki::make();
  HttpServer server(
      [](Connection& connection) {
        connection.read_request();
        connection.write(http_answer(200, "{}", "Connection: close\r\n"));
      },
      &first);
  const std::string path = testing::TempDir() + "rotated-ca-" + std::to_string(::getpid());
  ClusterConfig config;
  config.server = server.url();
  config.ca_pem = first.ca_pem;
  config.ca_file = path;
  const auto transport = transport_to(config);
  ASSERT_TRUE(transport->send(get("/"), 5s, {}).ok());
  std::ofstream(path) << second.ca_pem;
  server.show(second);
  EXPECT_EQ(transport->send(get("/"), 5s, {}).error().reason, ApiError::kConnection);
  const Answer<Response> again = transport->send(get("/"), 5s, {});
  EXPECT_TRUE(again.ok()) << again.error().message;
  std::remove(path.c_str());
}

TEST(CpprestTransport, GoesThroughATunnelAndShowsTheProxyOnlyWhatIsMeantForIt) {
  const TestPki pki = TestPki::make();
  HttpServer server(answering([](const std::string&) { return http_answer(200, R"({"behind":"proxy"})"); }), &pki);
  std::string asked;
  HttpServer proxy([&](Connection& connection) {
    asked = connection.read_request();
    connection.write("HTTP/1.1 200 Connection established\r\n\r\n");
    connection.relay_to(server.port());
  });
  ClusterConfig config;
  config.server = server.url();
  config.ca_pem = pki.ca_pem;
  config.proxy_url = "http://us%65r:p%40ss@127.0.0.1:" + std::to_string(proxy.port());
  const Answer<Response> answer = transport_to(config)->send(get("/api"), 5s, {});
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->body, R"({"behind":"proxy"})");
  EXPECT_TRUE(asked.starts_with("CONNECT 127.0.0.1:" + std::to_string(server.port()) + " HTTP/1.1\r\n")) << asked;
  EXPECT_NE(asked.find("Proxy-Authorization: Basic " + encode_base64("user:p@ss") + "\r\n"), std::string::npos)
      << asked;
  EXPECT_EQ(asked.find("secret"), std::string::npos) << "the API server's token";
}

TEST(CpprestTransport, AWatchGoesThroughTheTunnelToo) {
  const TestPki pki = TestPki::make();
  HttpServer server(
      [](Connection& connection) {
        connection.read_request();
        connection.write(std::string(kChunkedHead) + http_chunk("{\"n\":1}\n"));
        connection.read_request();
      },
      &pki);
  HttpServer proxy([&](Connection& connection) {
    connection.read_request();
    connection.write("HTTP/1.1 200 Connection established\r\n\r\n");
    connection.relay_to(server.port());
  });
  ClusterConfig config;
  config.server = server.url();
  config.ca_pem = pki.ca_pem;
  config.proxy_url = "http://127.0.0.1:" + std::to_string(proxy.port());
  const auto stream = transport_to(config)->open_watch(get("/x?watch=true"), 10s);
  EXPECT_EQ(stream->read(5s).line, "{\"n\":1}");
  stream->cancel();
}

TEST(CpprestTransport, AProxyThatRefusesIsAFailedConnection) {
  const TestPki pki = TestPki::make();
  HttpServer proxy(answering([](const std::string&) { return http_answer(407, ""); }));
  ClusterConfig config;
  config.server = "https://api.test:6443";
  config.ca_pem = pki.ca_pem;
  config.proxy_url = proxy.url();
  const Answer<Response> answer = transport_to(config)->send(get("/api"), 5s, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, ApiError::kConnection) << answer.error().message;
}

TEST(CpprestTransport, RefusesConfigurationsThatCannotWork) {
  const TestPki pki = TestPki::make();
  ClusterConfig config;
  config.auth = static_auth({});
  config.server = "https://127.0.0.1:6443";
  EXPECT_FALSE(make_cpprest_transport(config).ok()) << "no CA";
  config.ca_pem = pki.ca_pem;
  EXPECT_TRUE(make_cpprest_transport(config).ok());
  config.auth = static_auth({.authorization = "", .identity = {pki.client_certificate_pem, pki.server_key_pem}});
  EXPECT_FALSE(make_cpprest_transport(config).ok()) << "key of another certificate";
  config.auth = static_auth({});
  config.server = "https://[::1]:6443";
  EXPECT_FALSE(make_cpprest_transport(config).ok()) << "IPv6 literal";
  config.server = "https://127.0.0.1:6443";
  config.proxy_url = "socks5://127.0.0.1:1080";
  EXPECT_FALSE(make_cpprest_transport(config).ok()) << "another kind of proxy";
}

}  // namespace
}  // namespace loadline::kube
