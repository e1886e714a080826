#include "kube/transport.h"

#include <charconv>

namespace loadline::kube {

std::string_view to_string(Method method) {
  switch (method) {
    case Method::Get: return "GET";
    case Method::Post: return "POST";
    case Method::Put: return "PUT";
    case Method::Patch: return "PATCH";
    case Method::Delete: return "DELETE";
  }
  return "GET";
}

std::optional<std::chrono::seconds> Response::retry_after() const {
  const auto header = headers.find("retry-after");
  if (header == headers.end()) return std::nullopt;
  // The other form, a date, is not used by API servers. An hour is more patience than any caller has.
  unsigned seconds = 0;
  const std::string& text = header->second;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return std::chrono::seconds(std::min(seconds, 3600U));
}

}  // namespace loadline::kube
