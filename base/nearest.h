// Guessing what a person meant to type.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace loadline {

/// The known word closest to `word`, ignoring case; nothing when none is near enough to be a typing mistake (more than
/// a third of its letters differ). The first of equals wins. The view is one of `known`.
[[nodiscard]] std::optional<std::string_view> nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace loadline
