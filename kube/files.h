// Reading small configuration files whole, and the text in them.
//
// Thread-safety: pure but for the file system. Errors: values naming the file.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace loadline::kube {

/// The file's bytes, at most 4 MiB. Errors: NotFound, Forbidden, Invalid (too large or not a file).
[[nodiscard]] Result<std::string> read_file(const std::string& path);
/// Without leading and trailing white space.
[[nodiscard]] std::string trimmed(std::string_view text);
/// ASCII letters in lower case.
[[nodiscard]] std::string lower_case(std::string_view text);
/// `path` as seen from `folder`; absolute paths and an empty one stay as they are.
[[nodiscard]] std::string resolve_path(const std::string& folder, const std::string& path);
/// Standard base64, white space ignored. Error: Invalid.
[[nodiscard]] Result<std::string> decode_base64(std::string_view text);
[[nodiscard]] std::string encode_base64(std::string_view bytes);

}  // namespace loadline::kube
