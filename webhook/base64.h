// Base64 as JSON carries bytes: patches, Secrets, CA bundles.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace loadline::webhook {

[[nodiscard]] std::string base64_encode(std::string_view bytes);
/// Nothing when `text` is not base64 with its padding.
[[nodiscard]] std::optional<std::string> base64_decode(std::string_view text);

}  // namespace loadline::webhook
