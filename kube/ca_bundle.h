// The CA certificates of the cluster, which may be rotated on disk like the token.
//
// Thread-safety: all members from any thread; doubt() never waits.
// Errors: none; a file that cannot be read, or holds no certificate, leaves the last good bundle standing.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "kube/clock.h"

namespace loadline::kube {

class CaBundle {
 public:
  /// `pem` is what `file` held when it was read last; an empty `file` is never read.
  CaBundle(std::string pem, std::string file, std::shared_ptr<Clock> clock);

  /// The certificates to trust now. Reads the file again after 60 s, and after doubt().
  [[nodiscard]] std::string pem();
  /// A connection failed: perhaps because the server shows a certificate of the next CA.
  void doubt() noexcept { doubted_ = true; }

 private:
  const std::string file_;
  const std::shared_ptr<Clock> clock_;
  std::atomic<bool> doubted_{false};
  std::mutex mutex_;
  std::string pem_;
  Clock::Time read_again_;
};

}  // namespace loadline::kube
