// A client that sends exactly the bytes it is told to, over TCP or TLS, and waits for nothing longer than ten seconds:
// what peers that do not speak HTTP properly look like.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace loadline::serve::testing {

inline constexpr std::chrono::milliseconds kPatience{10'000};

/// File descriptors open in this process.
inline std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
}

/// Whether `condition` comes true within kPatience.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class RawClient {
 public:
  explicit RawClient(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    std::signal(SIGPIPE, SIG_IGN);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    const timeval patience{10, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  }
  ~RawClient() {
    if (ssl_) SSL_free(ssl_);
    if (context_) SSL_CTX_free(context_);
    if (fd_ >= 0) ::close(fd_);
  }
  RawClient(RawClient&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        connected_(other.connected_),
        context_(std::exchange(other.context_, nullptr)),
        ssl_(std::exchange(other.ssl_, nullptr)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }

  /// Speaks TLS from here on; false when the handshake fails. `alpn` in wire format.
  bool handshake(std::string_view alpn = {}, int max_version = 0) {
    context_ = SSL_CTX_new(TLS_client_method());
    if (max_version != 0) {
      SSL_CTX_set_security_level(context_, 0);
      SSL_CTX_set_min_proto_version(context_, max_version);
      SSL_CTX_set_max_proto_version(context_, max_version);
    }
    ssl_ = SSL_new(context_);
    if (!alpn.empty()) {
      SSL_set_alpn_protos(ssl_, reinterpret_cast<const unsigned char*>(alpn.data()),
                          static_cast<unsigned int>(alpn.size()));
    }
    SSL_set_fd(ssl_, fd_);
    return SSL_connect(ssl_) == 1;
  }
  [[nodiscard]] std::string chosen_alpn() const {
    const unsigned char* name = nullptr;
    unsigned int length = 0;
    SSL_get0_alpn_selected(ssl_, &name, &length);
    return {reinterpret_cast<const char*>(name), length};
  }
  /// Common name of the certificate the server showed.
  [[nodiscard]] std::string server_name() const {
    X509* const certificate = SSL_get_peer_certificate(ssl_);
    if (certificate == nullptr) return {};
    std::array<char, 128> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name.data(), name.size());
    X509_free(certificate);
    return name.data();
  }

  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto sent = ssl_ ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                             : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  /// One response: header and as much body as its Content-Length says. Empty when the peer closed instead.
  std::string response() {
    std::size_t header_end = std::string::npos;
    while ((header_end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!receive()) return std::exchange(received_, {});
    }
    std::size_t length = 0;
    const std::size_t at = received_.find("Content-Length: ");
    if (at < header_end) length = std::stoul(received_.substr(at + 16));
    while (received_.size() < header_end + 4 + length) {
      if (!receive()) break;
    }
    std::string whole = received_.substr(0, header_end + 4 + length);
    received_.erase(0, whole.size());
    return whole;
  }
  /// The status code of the next response; 0 when the peer closed instead.
  int status() {
    const std::string text = response();
    return text.size() > 12 && text.starts_with("HTTP/1.1 ") ? std::stoi(text.substr(9, 3)) : 0;
  }
  /// True when the server ends the connection within kPatience; what it sends before is thrown away.
  bool closed_by_server() {
    while (receive()) {
    }
    return ended_;
  }

 private:
  bool receive() {
    std::array<char, 16 * 1024> chunk{};
    const auto count = ssl_ ? SSL_read(ssl_, chunk.data(), chunk.size()) : ::recv(fd_, chunk.data(), chunk.size(), 0);
    if (count <= 0) {
      ended_ = count == 0 || errno == ECONNRESET || errno == EPIPE;
      return false;
    }
    received_.append(chunk.data(), static_cast<std::size_t>(count));
    return true;
  }

  int fd_;
  bool connected_ = false;
  bool ended_ = false;
  SSL_CTX* context_ = nullptr;
  SSL* ssl_ = nullptr;
  std::string received_;
};

inline std::string post(std::string_view path, std::string_view body) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + std::string(body);
}
inline std::string get(std::string_view path) { return "GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\n\r\n"; }

}  // namespace loadline::serve::testing
