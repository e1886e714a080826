#include "serve/x509.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>

namespace loadline::serve {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using AlternativeNames = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

Error openssl_failed(const std::string& what) {
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_get_error(), text.data(), text.size());
  ERR_clear_error();
  return Error::make(Error::Code::Internal, what + ": " + text.data());
}
Error unreadable(const std::string& what) {
  ERR_clear_error();
  return Error::make(Error::Code::Invalid, what);
}

Bio reader(std::string_view pem) { return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()))); }

std::string contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<std::size_t>(size)) : std::string();
}

Certificate read_x509(std::string_view pem) {
  return Certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
}
Key read_key(std::string_view pem) {
  return Key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
}

PemPair to_pem(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_pem(BIO_new(BIO_s_mem()));
  const Bio key_pem(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509(certificate_pem.get(), certificate);
  PEM_write_bio_PrivateKey(key_pem.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
  return {contents(certificate_pem.get()), contents(key_pem.get())};
}

std::time_t to_seconds(TimePoint time) {
  return static_cast<std::time_t>(std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count());
}

std::optional<TimePoint> to_time(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return std::nullopt;
  return TimePoint(std::chrono::seconds(timegm(&parts)));
}

/// Version 3, a random serial number, dates, subject and public key: what both kinds share.
Certificate begin_certificate(EVP_PKEY* key, const std::string& common_name, Validity validity) {
  Certificate certificate(X509_new());
  X509* const x509 = certificate.get();
  std::array<unsigned char, 16> serial{};
  if (x509 == nullptr || RAND_bytes(serial.data(), static_cast<int>(serial.size())) != 1) return nullptr;
  serial[0] = static_cast<unsigned char>((serial[0] & 0x3FU) | 0x40U);  // positive, and of full length
  const std::unique_ptr<BIGNUM, Freed<BN_free>> number(BN_bin2bn(serial.data(), serial.size(), nullptr));
  X509_set_version(x509, 2);
  BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(x509));
  ASN1_TIME_set(X509_getm_notBefore(x509), to_seconds(validity.from));
  ASN1_TIME_set(X509_getm_notAfter(x509), to_seconds(validity.until));
  X509_set_pubkey(x509, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  return certificate;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::string alternative_names(const HostNames& names) {
  std::vector<std::string> parts;
  for (const std::string& name : names.dns) parts.push_back("DNS:" + name);
  for (const std::string& ip : names.ips) parts.push_back("IP:" + ip);
  return join(parts, ",");
}

/// An address in the one form that compares equal: "::1", never "0:0::1". Empty for no address.
std::string canonical_ip(const unsigned char* bytes, int length) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = length == 4 ? AF_INET : AF_INET6;
  if (length != 4 && length != 16) return {};
  return inet_ntop(family, bytes, text.data(), text.size()) != nullptr ? std::string(text.data()) : std::string();
}
std::string canonical_ip(const std::string& text) {
  std::array<unsigned char, 16> bytes{};
  if (inet_pton(AF_INET, text.c_str(), bytes.data()) == 1) return canonical_ip(bytes.data(), 4);
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return canonical_ip(bytes.data(), 16);
  return text;
}

HostNames host_names(X509* certificate) {
  HostNames names;
  const AlternativeNames all(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    const ASN1_STRING* text = name->type == GEN_DNS     ? name->d.dNSName
                              : name->type == GEN_IPADD ? name->d.iPAddress
                                                        : nullptr;
    if (text == nullptr) continue;
    const unsigned char* const data = ASN1_STRING_get0_data(text);
    const int length = ASN1_STRING_length(text);
    if (name->type == GEN_IPADD) {
      names.ips.push_back(canonical_ip(data, length));
    } else {
      names.dns.emplace_back(reinterpret_cast<const char*>(data), static_cast<std::size_t>(length));
    }
  }
  return names;
}

bool contains(const std::vector<std::string>& all, const std::string& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

}  // namespace

Result<PemPair> make_authority(const std::string& common_name, Validity validity) {
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return openssl_failed("making a key");
  const Certificate certificate = begin_certificate(key.get(), common_name, validity);
  X509* const x509 = certificate.get();
  const bool made = x509 != nullptr && X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1 &&
                    add_extension(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                    add_extension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                    add_extension(x509, x509, NID_subject_key_identifier, "hash") &&
                    X509_sign(x509, key.get(), EVP_sha256()) > 0;
  if (!made) return openssl_failed("making a certificate authority");
  return to_pem(x509, key.get());
}

Result<PemPair> issue_server_certificate(const PemPair& authority, const HostNames& names, Validity validity) {
  const Certificate issuer = read_x509(authority.certificate);
  const Key issuer_key = read_key(authority.key);
  if (issuer == nullptr || issuer_key == nullptr) return unreadable("the authority's certificate or key is no PEM");
  const Key key(EVP_EC_gen("P-256"));
  if (key == nullptr) return openssl_failed("making a key");
  const std::string common_name = names.dns.empty() ? "loadline" : names.dns.front().substr(0, 64);
  const Certificate certificate = begin_certificate(key.get(), common_name, validity);
  X509* const x509 = certificate.get();
  const bool made = x509 != nullptr && X509_set_issuer_name(x509, X509_get_subject_name(issuer.get())) == 1 &&
                    add_extension(x509, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(x509, issuer.get(), NID_key_usage, "critical,digitalSignature") &&
                    add_extension(x509, issuer.get(), NID_ext_key_usage, "serverAuth") &&
                    add_extension(x509, issuer.get(), NID_authority_key_identifier, "keyid") &&
                    add_extension(x509, issuer.get(), NID_subject_alt_name, alternative_names(names)) &&
                    X509_sign(x509, issuer_key.get(), EVP_sha256()) > 0;
  if (!made) return openssl_failed("making a server certificate for " + alternative_names(names));
  return to_pem(x509, key.get());
}

Result<CertificateFacts> read_certificate(std::string_view pem) {
  const Certificate certificate = read_x509(pem);
  if (certificate == nullptr) return unreadable("not a PEM certificate");
  CertificateFacts facts;
  const auto from = to_time(X509_get0_notBefore(certificate.get()));
  const auto until = to_time(X509_get0_notAfter(certificate.get()));
  if (!from || !until) return unreadable("a certificate with unreadable dates");
  std::array<char, 256> common_name{};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, common_name.data(),
                            static_cast<int>(common_name.size()));
  facts.subject = common_name.data();
  facts.validity = {*from, *until};
  facts.names = host_names(certificate.get());
  return facts;
}

bool covers(const CertificateFacts& facts, const HostNames& wanted) {
  return std::all_of(wanted.dns.begin(), wanted.dns.end(),
                     [&](const std::string& name) { return contains(facts.names.dns, name); }) &&
         std::all_of(wanted.ips.begin(), wanted.ips.end(),
                     [&](const std::string& ip) { return contains(facts.names.ips, canonical_ip(ip)); });
}

Status verify_chain(const PemPair& leaf, std::string_view authorities, TimePoint now) {
  const Certificate certificate = read_x509(leaf.certificate);
  const Key key = read_key(leaf.key);
  if (certificate == nullptr || key == nullptr) return unreadable("the certificate or its key is no PEM");
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return unreadable("the private key does not belong to the certificate");
  }
  const Store store(X509_STORE_new());
  for (const std::string& authority : split_bundle(authorities)) {
    const Certificate trusted = read_x509(authority);
    if (trusted != nullptr) X509_STORE_add_cert(store.get(), trusted.get());
  }
  const StoreContext context(X509_STORE_CTX_new());
  X509_STORE_CTX_init(context.get(), store.get(), certificate.get(), nullptr);
  X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), to_seconds(now));
  if (X509_verify_cert(context.get()) != 1) {
    return unreadable(X509_verify_cert_error_string(X509_STORE_CTX_get_error(context.get())));
  }
  return {};
}

std::vector<std::string> split_bundle(std::string_view pem) {
  std::vector<std::string> certificates;
  const Bio bio = reader(pem);
  for (;;) {
    const Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    const Bio out(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(out.get(), certificate.get());
    certificates.push_back(contents(out.get()));
  }
  ERR_clear_error();
  return certificates;
}

}  // namespace loadline::serve
