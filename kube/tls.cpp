#include "kube/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <memory>

namespace loadline::kube {
namespace {

struct FreeOpenSsl {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(SSL_CTX* p) const { SSL_CTX_free(p); }
};
template <class T>
using OpenSsl = std::unique_ptr<T, FreeOpenSsl>;

OpenSsl<BIO> reader(const std::string& pem) {
  return OpenSsl<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// A store of the CAs in `pem` and no others; null when it holds none.
OpenSsl<X509_STORE> ca_store(const std::string& pem) {
  OpenSsl<X509_STORE> store(X509_STORE_new());
  // As in Go: each certificate given is an anchor, an intermediate CA or the server's own without its issuer too.
  X509_STORE_set_flags(store.get(), X509_V_FLAG_PARTIAL_CHAIN);
  const OpenSsl<BIO> text = reader(pem);
  int count = 0;
  while (OpenSsl<X509> certificate{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)}) {
    if (X509_STORE_add_cert(store.get(), certificate.get()) == 1) ++count;
  }
  ERR_clear_error();
  return count > 0 ? std::move(store) : nullptr;
}

// An encrypted key is refused: OpenSSL would ask for its password at the terminal otherwise.
int no_password(char*, int, int, void*) { return 0; }

bool use_identity(SSL_CTX* context, const ClientIdentity& identity) {
  const OpenSsl<BIO> chain = reader(identity.certificate_pem);
  const OpenSsl<X509> leaf(PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr));
  const OpenSsl<BIO> key_text = reader(identity.key_pem);
  const OpenSsl<EVP_PKEY> key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_password, nullptr));
  bool good = leaf && key && SSL_CTX_use_certificate(context, leaf.get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, key.get()) == 1 && SSL_CTX_check_private_key(context) == 1;
  while (good) {
    X509* next = PEM_read_bio_X509(chain.get(), nullptr, nullptr, nullptr);
    if (next == nullptr) break;
    good = SSL_CTX_add_extra_chain_cert(context, next) == 1;  // takes ownership
  }
  ERR_clear_error();
  return good;
}

}  // namespace

bool is_pair(const ClientIdentity& identity) {
  const OpenSsl<SSL_CTX> context(SSL_CTX_new(TLS_client_method()));
  return use_identity(context.get(), identity);
}

bool holds_ca(const std::string& pem) { return ca_store(pem) != nullptr; }

bool set_up_tls(SSL_CTX* context, const TlsMaterial& material) {
  // The HTTP library has added the system's CAs by now; this store replaces them.
  OpenSsl<X509_STORE> store = ca_store(material.ca_pem);
  SSL_CTX_set_cert_store(context, store ? store.release() : X509_STORE_new());
  if (SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1) return false;
  return material.identity.key_pem.empty() || use_identity(context, material.identity);
}

}  // namespace loadline::kube
