#include "kube/auth.h"

#include <mutex>

#include "kube/files.h"

namespace loadline::kube {
namespace {

constexpr auto kTokenLifetime = std::chrono::seconds(60);

class StaticAuth final : public AuthSource {
 public:
  explicit StaticAuth(Credentials credentials) : credentials_(std::move(credentials)) {}
  Result<Credentials> credentials() override { return credentials_; }
  void invalidate() override {}

 private:
  const Credentials credentials_;
};

class TokenFileAuth final : public AuthSource {
 public:
  TokenFileAuth(std::string path, ClientIdentity identity, std::shared_ptr<Clock> clock)
      : path_(std::move(path)), identity_(std::move(identity)), clock_(std::move(clock)) {}

  Result<Credentials> credentials() override {
    const std::lock_guard lock(mutex_);
    const Clock::Time now = clock_->now();
    if (token_.empty() || now >= read_again_) {
      const Result<std::string> text = read_file(path_);
      const std::string token = text ? trimmed(*text) : "";
      if (!token.empty()) {
        token_ = token;
        read_again_ = now + kTokenLifetime;
      } else if (token_.empty()) {
        return Error::make(Error::Code::Forbidden, text ? path_ + " is empty" : text.error().message);
      }
    }
    return Credentials{"Bearer " + token_, identity_};
  }

  void invalidate() override {
    const std::lock_guard lock(mutex_);
    read_again_ = Clock::Time::min();
  }

 private:
  const std::string path_;
  const ClientIdentity identity_;
  const std::shared_ptr<Clock> clock_;
  std::mutex mutex_;
  std::string token_;
  Clock::Time read_again_ = Clock::Time::min();
};

}  // namespace

std::shared_ptr<AuthSource> static_auth(Credentials credentials) {
  return std::make_shared<StaticAuth>(std::move(credentials));
}

std::shared_ptr<AuthSource> token_file_auth(std::string path, ClientIdentity identity, std::shared_ptr<Clock> clock) {
  return std::make_shared<TokenFileAuth>(std::move(path), std::move(identity), std::move(clock));
}

}  // namespace loadline::kube
