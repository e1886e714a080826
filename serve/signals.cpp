#include "serve/signals.h"

#include <pthread.h>

namespace loadline::serve {

EndSignals::EndSignals() : ends_(), before_() {
  sigemptyset(&ends_);
  sigaddset(&ends_, SIGTERM);
  sigaddset(&ends_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends_, &before_);
  std::signal(SIGPIPE, SIG_IGN);
}

EndSignals::~EndSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool EndSignals::wait_for(std::chrono::milliseconds wait) const {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
  const timespec time{seconds.count(), std::chrono::nanoseconds(wait - seconds).count()};
  return sigtimedwait(&ends_, nullptr, &time) > 0;
}

}  // namespace loadline::serve
