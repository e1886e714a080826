// Defaults that follow from other fields. Static ones are in the CRD's schema, where kubectl explain shows them; what
// depends on the cluster is decided per attempt and shown in status. So little is left: an architecture's kvHeads
// (as many as heads) and headDim (hidden / heads).
//
// Thread-safety: pure functions. Errors: none: what cannot be computed is left for validation to complain about.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace loadline::webhook {

/// RFC 6902 `add` operations for what `job` leaves out. On an update (`old` given) only what the old object had: a
/// default that is newer than the object must not look like a change of an immutable field.
[[nodiscard]] nlohmann::json computed_defaults(const nlohmann::json& job, const nlohmann::json* old);

/// `spec` with the computed defaults filled in: two specs that mean the same compare equal. The schema's own defaults
/// need no help: the API server fills them into what is sent and into what it reads from its store.
[[nodiscard]] nlohmann::json with_defaults(nlohmann::json spec);

/// A path as JSON pointer, '~' and '/' escaped.
[[nodiscard]] std::string json_pointer(const std::vector<std::string>& path);

}  // namespace loadline::webhook
