#include "kube/auth.h"

#include <mutex>

#include "kube/files.h"
#include "kube/refusals.h"
#include "kube/tls.h"

namespace loadline::kube {
namespace {

// client-go reads token files as often (transport/token_source.go).
constexpr auto kFileLifetime = std::chrono::seconds(60);

class StaticAuth final : public AuthSource {
 public:
  explicit StaticAuth(Credentials credentials) : credentials_(std::move(credentials)) {}
  Result<Credentials> credentials(const Patience&) override { return credentials_; }
  void refused(const Credentials&) override {}

 private:
  const Credentials credentials_;
};

class FileAuth final : public AuthSource {
 public:
  FileAuth(CredentialFiles files, Credentials given, std::shared_ptr<Clock> clock)
      : files_(std::move(files)), clock_(std::move(clock)), held_(std::move(given)) {}

  Result<Credentials> credentials(const Patience&) override {
    const std::lock_guard lock(mutex_);
    const Clock::Time now = clock_->now();
    const bool refused = refusals_.take(held_);
    if (!refused && now < read_again_) return held_;
    const Status token = read_token();
    read_identity();
    if (token) {
      read_again_ = now + kFileLifetime;
    } else if (held_.authorization.empty()) {
      return token.error();
    }
    return held_;
  }

  void refused(const Credentials& what) override { refusals_.add(what); }

 private:
  Status read_token() {
    if (files_.token.empty()) return {};
    const Result<std::string> text = read_file(files_.token);
    if (!text) return Error::make(Error::Code::Forbidden, text.error().message);
    const std::string token = trimmed(*text);
    if (token.empty()) return Error::make(Error::Code::Forbidden, files_.token + " is empty");
    held_.authorization = "Bearer " + token;
    return {};
  }

  void read_identity() {
    if (files_.certificate.empty()) return;
    Result<std::string> certificate = read_file(files_.certificate);
    Result<std::string> key = read_file(files_.key);
    if (!certificate || !key) return;
    ClientIdentity identity{std::move(*certificate), std::move(*key)};
    if (is_pair(identity)) held_.identity = std::move(identity);
  }

  const CredentialFiles files_;
  const std::shared_ptr<Clock> clock_;
  Refusals refusals_;
  std::mutex mutex_;  // held while the files are read
  Credentials held_;
  Clock::Time read_again_ = Clock::Time::min();
};

}  // namespace

std::shared_ptr<AuthSource> static_auth(Credentials credentials) {
  return std::make_shared<StaticAuth>(std::move(credentials));
}

std::shared_ptr<AuthSource> file_auth(CredentialFiles files, Credentials given, std::shared_ptr<Clock> clock) {
  return std::make_shared<FileAuth>(std::move(files), std::move(given), std::move(clock));
}

}  // namespace loadline::kube
