#include "tests/unit/kube/http_server.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <charconv>
#include <sstream>

namespace loadline::kube {
namespace {

using boost::asio::ip::tcp;

std::string drain(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(bio);
  return out;
}

std::string pem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  return drain(bio);
}

std::string pem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  return drain(bio);
}

void extend(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

enum class Role { Ca, Leaf };

// Signed by itself without an issuer.
X509* certificate(Role role, const char* name, EVP_PKEY* key, X509* issuer, EVP_PKEY* issuer_key,
                  const char* alternative_names = nullptr) {
  static long serial = 1;
  X509* out = X509_new();
  X509_set_version(out, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(out), -3600);
  X509_gmtime_adj(X509_getm_notAfter(out), 3600);
  X509_set_pubkey(out, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509_set_issuer_name(out, X509_get_subject_name(issuer != nullptr ? issuer : out));
  extend(out, NID_basic_constraints, role == Role::Ca ? "critical,CA:TRUE" : "CA:FALSE");
  if (alternative_names != nullptr) extend(out, NID_subject_alt_name, alternative_names);
  X509_sign(out, issuer_key, EVP_sha256());
  return out;
}

// A server's and a client's certificate, and no CA.
TestPki signed_by(X509* ca, EVP_PKEY* ca_key) {
  EVP_PKEY* server_key = EVP_EC_gen("P-256");
  EVP_PKEY* client_key = EVP_EC_gen("P-256");
  X509* server = certificate(Role::Leaf, "api", server_key, ca, ca_key, "IP:127.0.0.1,DNS:localhost,DNS:api.test");
  X509* client = certificate(Role::Leaf, "tester", client_key, ca, ca_key);
  TestPki out{"", pem(server), pem(server_key), pem(client), pem(client_key)};
  for (X509* one : {server, client}) X509_free(one);
  for (EVP_PKEY* one : {server_key, client_key}) EVP_PKEY_free(one);
  return out;
}

template <class Stream>
class StreamConnection final : public Connection {
 public:
  explicit StreamConnection(Stream& stream, SSL* ssl) : stream_(stream), ssl_(ssl) {}

  std::string read_request() override {
    boost::system::error_code failure;
    const std::size_t head =
        boost::asio::read_until(stream_, boost::asio::dynamic_buffer(buffer_), "\r\n\r\n", failure);
    if (failure) return "";
    std::size_t length = 0;
    if (const auto at = buffer_.find("Content-Length:"); at != std::string::npos && at < head) {
      std::from_chars(buffer_.data() + at + 15, buffer_.data() + head, length);
    }
    if (buffer_.size() < head + length) {
      boost::asio::read(stream_, boost::asio::dynamic_buffer(buffer_),
                        boost::asio::transfer_exactly(head + length - buffer_.size()), failure);
      if (failure) return "";
    }
    std::string request = buffer_.substr(0, head + length);
    buffer_.erase(0, head + length);
    return request;
  }

  bool write(const std::string& bytes) override {
    boost::system::error_code failure;
    boost::asio::write(stream_, boost::asio::buffer(bytes), failure);
    return !failure;
  }

  std::string client_name() override {
    X509* peer = ssl_ != nullptr ? SSL_get_peer_certificate(ssl_) : nullptr;
    if (peer == nullptr) return "";
    std::array<char, 128> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(peer), NID_commonName, name.data(), static_cast<int>(name.size()));
    X509_free(peer);
    return name.data();
  }

  void relay_to(unsigned short port) override {
    boost::asio::io_context io;
    tcp::socket other(io);
    boost::system::error_code failure;
    other.connect({boost::asio::ip::address_v4::loopback(), port}, failure);
    if (failure) return;
    auto& peer = stream_.lowest_layer();
    std::thread back([&] { copy(other, stream_, peer); });
    copy(stream_, other, other);
    back.join();
  }

 private:
  // Until `from` ends; then `to` hears of it.
  template <class From, class To, class Socket>
  static void copy(From& from, To& to, Socket& ends) {
    std::array<char, 4096> piece{};
    boost::system::error_code failure;
    for (;;) {
      const std::size_t n = from.read_some(boost::asio::buffer(piece), failure);
      if (failure) break;
      boost::asio::write(to, boost::asio::buffer(piece.data(), n), failure);
      if (failure) break;
    }
    ends.shutdown(tcp::socket::shutdown_both, failure);
  }

  Stream& stream_;
  SSL* ssl_;
  std::string buffer_;
};

}  // namespace

TestPki TestPki::make() {
  EVP_PKEY* ca_key = EVP_EC_gen("P-256");
  X509* ca = certificate(Role::Ca, "test-ca", ca_key, nullptr, ca_key);
  TestPki out = signed_by(ca, ca_key);
  out.ca_pem = pem(ca);
  X509_free(ca);
  EVP_PKEY_free(ca_key);
  return out;
}

TestPki TestPki::make_with_intermediate() {
  EVP_PKEY* root_key = EVP_EC_gen("P-256");
  EVP_PKEY* between_key = EVP_EC_gen("P-256");
  X509* root = certificate(Role::Ca, "test-root", root_key, nullptr, root_key);
  X509* between = certificate(Role::Ca, "test-intermediate", between_key, root, root_key);
  TestPki out = signed_by(between, between_key);
  out.ca_pem = pem(root);
  out.intermediate_pem = pem(between);
  out.server_certificate_pem += out.intermediate_pem;
  for (X509* one : {root, between}) X509_free(one);
  for (EVP_PKEY* one : {root_key, between_key}) EVP_PKEY_free(one);
  return out;
}

HttpServer::HttpServer(Handler handler, const TestPki* pki)
    : handler_(std::move(handler)), acceptor_(io_, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)) {
  if (pki != nullptr) show(*pki);
  accepting_ = std::thread([this] { accept_loop(); });
}

void HttpServer::show(const TestPki& pki) {
  auto context = std::make_shared<boost::asio::ssl::context>(boost::asio::ssl::context::tls_server);
  context->use_certificate_chain(boost::asio::buffer(pki.server_certificate_pem));
  context->use_private_key(boost::asio::buffer(pki.server_key_pem), boost::asio::ssl::context::pem);
  context->add_certificate_authority(boost::asio::buffer(pki.ca_pem));
  context->set_verify_mode(boost::asio::ssl::verify_peer);  // asks; a client without a certificate may come in
  const std::lock_guard lock(mutex_);
  tls_ = std::move(context);
}

HttpServer::~HttpServer() {
  stopping_ = true;
  boost::system::error_code ignored;
  tcp::socket wake(io_);
  wake.connect(acceptor_.local_endpoint(), ignored);
  accepting_.join();
  {
    const std::lock_guard lock(mutex_);
    for (const auto& socket : sockets_) socket->shutdown(tcp::socket::shutdown_both, ignored);
  }
  for (std::thread& thread : threads_) thread.join();
}

void HttpServer::accept_loop() {
  while (!stopping_) {
    auto socket = std::make_shared<tcp::socket>(io_);
    boost::system::error_code failure;
    acceptor_.accept(*socket, failure);
    if (failure || stopping_) continue;
    ++connections_;
    const std::lock_guard lock(mutex_);
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket, tls = tls_] {
      boost::system::error_code ignored;
      if (tls) {
        boost::asio::ssl::stream<tcp::socket&> stream(*socket, *tls);
        stream.handshake(boost::asio::ssl::stream_base::server, ignored);
        if (ignored) return;
        StreamConnection<boost::asio::ssl::stream<tcp::socket&>> connection(stream, stream.native_handle());
        handler_(connection);
      } else {
        StreamConnection<tcp::socket> connection(*socket, nullptr);
        handler_(connection);
      }
      socket->shutdown(tcp::socket::shutdown_both, ignored);
    });
  }
}

std::string HttpServer::url() const {
  return (tls_ ? "https://127.0.0.1:" : "http://127.0.0.1:") + std::to_string(acceptor_.local_endpoint().port());
}

std::string http_answer(int status, const std::string& body, const std::string& headers) {
  return "HTTP/1.1 " + std::to_string(status) + " Text\r\nContent-Type: application/json\r\n" + headers +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::string http_chunk(const std::string& bytes) {
  std::ostringstream out;
  out << std::hex << bytes.size() << "\r\n" << bytes << "\r\n";
  return out.str();
}

}  // namespace loadline::kube
