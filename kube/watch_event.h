// One line of a watch, read without trust.
//
// Thread-safety: plain values and a pure function.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "kube/error.h"

namespace loadline::kube {

struct WatchEvent {
  enum class Type {
    Put,       ///< ADDED or MODIFIED: `object` is so now
    Deleted,   ///< `object` is as it was last
    Bookmark,  ///< nothing happened up to `version`
    Error,     ///< `error` says why nothing more will come
  };
  Type type = Type::Bookmark;
  nlohmann::json object = {};
  std::string version = {};          ///< never empty but for an Error
  bool ends_initial_events = false;  ///< of a Bookmark: a streaming list is complete with it
  ApiError error = {};
};

/// Nothing when the line makes no sense: not JSON, of an unknown type, without an object or its version, or with one of
/// another kind than `kind`.
[[nodiscard]] std::optional<WatchEvent> read_watch_event(std::string_view line, std::string_view kind);

}  // namespace loadline::kube
