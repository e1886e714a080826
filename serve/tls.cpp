#include "serve/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <exception>
#include <string_view>
#include <utility>

namespace loadline::serve {
namespace {

namespace ssl = boost::asio::ssl;

/// HTTP/1.1 whatever else is offered: were h2 accepted, the API server would use it on loopback and nowhere else,
/// and tests would exercise another protocol than production.
int select_http_1_1(SSL*, const unsigned char** out, unsigned char* out_length, const unsigned char* offered,
                    unsigned int offered_length, void*) {
  static constexpr std::string_view kWanted = "http/1.1";
  for (unsigned int at = 0; at < offered_length;) {
    const unsigned int length = offered[at];
    if (at + 1 + length > offered_length) break;
    if (std::string_view(reinterpret_cast<const char*>(offered) + at + 1, length) == kWanted) {
      *out = offered + at + 1;
      *out_length = offered[at];
      return SSL_TLSEXT_ERR_OK;
    }
    at += 1 + length;
  }
  return SSL_TLSEXT_ERR_NOACK;
}

std::shared_ptr<ssl::context> make_context(const std::string& chain_pem, const std::string& key_pem) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_alpn_select_cb(native, select_http_1_1, nullptr);
  context->use_certificate_chain(boost::asio::buffer(chain_pem));
  context->use_private_key(boost::asio::buffer(key_pem), ssl::context::pem);
  if (SSL_CTX_check_private_key(native) != 1) return nullptr;
  return context;
}

}  // namespace

Status ServedCertificate::replace(const std::string& chain_pem, const std::string& key_pem) {
  try {
    std::shared_ptr<ssl::context> fresh = make_context(chain_pem, key_pem);
    ERR_clear_error();
    if (!fresh) return Error::make(Error::Code::Invalid, "the private key does not belong to the certificate");
    const std::lock_guard lock(mutex_);
    context_ = std::move(fresh);
    return {};
  } catch (const std::exception& fault) {
    ERR_clear_error();
    return Error::make(Error::Code::Invalid, std::string("unusable certificate or key: ") + fault.what());
  }
}

std::shared_ptr<ssl::context> ServedCertificate::context() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

}  // namespace loadline::serve
