// Small texts inside objects: quantities, durations, times, GPU products. What is printed reads back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "estimator/gpu.h"
#include "placement/money.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)loadline::parse_quantity(text);
  (void)loadline::parse_quantity_milli(text);
  (void)loadline::parse_duration(text);
  (void)loadline::placement::parse_money(text);
  (void)loadline::estimator::find_gpu(text);
  if (loadline::cut_utf8(text, 64).size() > 64) std::abort();
  if (const auto time = loadline::parse_rfc3339(text)) {
    const auto again = loadline::parse_rfc3339(loadline::rfc3339_micro(*time));
    if (!again || *again != *time) std::abort();
  }
  return 0;
}
