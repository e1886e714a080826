#include "kube/ca_bundle.h"

#include "kube/files.h"
#include "kube/tls.h"

namespace loadline::kube {
namespace {

constexpr auto kLifetime = std::chrono::seconds(60);

}  // namespace

CaBundle::CaBundle(std::string pem, std::string file, std::shared_ptr<Clock> clock)
    : file_(std::move(file)), clock_(std::move(clock)), pem_(std::move(pem)), read_again_(clock_->now() + kLifetime) {}

std::string CaBundle::pem() {
  const std::lock_guard lock(mutex_);
  const Clock::Time now = clock_->now();
  const bool doubted = doubted_.exchange(false);
  if (!file_.empty() && (doubted || now >= read_again_)) {
    read_again_ = now + kLifetime;
    Result<std::string> read = read_file(file_);
    if (read && holds_ca(*read)) pem_ = std::move(*read);
  }
  return pem_;
}

}  // namespace loadline::kube
