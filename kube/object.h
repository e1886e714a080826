// One object as the API server gave it: immutable, cheap to copy, with the metadata everybody asks for
// read once. Missing or foreign-typed metadata reads as empty; nothing here throws.
//
// Thread-safety: immutable after construction; copies may be read from any thread.
// Ownership: copies share one document.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "kube/json_read.h"

namespace loadline::kube {

/// Where an object lives within its type. Not its identity: that is the uid.
struct ObjectKey {
  std::string ns;  ///< empty for cluster-scoped objects
  std::string name;

  auto operator<=>(const ObjectKey&) const = default;
};

/// "ns/name", or "name" for cluster-scoped objects.
[[nodiscard]] std::string to_string(const ObjectKey& key);

/// An entry of metadata.ownerReferences.
struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
};

class Object {
 public:
  Object() = default;  ///< no object: converts to false
  explicit Object(nlohmann::json document);
  /// Error: Code::Invalid when `text` is not one JSON object or nests too deep.
  [[nodiscard]] static Result<Object> parse(std::string_view text);

  explicit operator bool() const noexcept { return data_ != nullptr; }

  /// The whole document; null for no object.
  [[nodiscard]] const nlohmann::json& json() const noexcept;
  [[nodiscard]] const ObjectKey& key() const noexcept;
  [[nodiscard]] const std::string& ns() const noexcept { return key().ns; }
  [[nodiscard]] const std::string& name() const noexcept { return key().name; }
  [[nodiscard]] const std::string& uid() const noexcept;
  [[nodiscard]] const std::string& resource_version() const noexcept;
  [[nodiscard]] const std::string& kind() const noexcept;

  /// metadata.generation, 0 when absent.
  [[nodiscard]] std::int64_t generation() const noexcept;
  [[nodiscard]] std::optional<TimePoint> created() const noexcept;
  /// Set once somebody asked for deletion; the object may stay until its finalizers are gone.
  [[nodiscard]] bool deleting() const noexcept;
  [[nodiscard]] std::optional<TimePoint> deletion_time() const noexcept;
  [[nodiscard]] std::optional<std::string_view> label(std::string_view key) const noexcept;
  [[nodiscard]] std::optional<std::string_view> annotation(std::string_view key) const noexcept;
  [[nodiscard]] bool has_finalizer(std::string_view finalizer) const noexcept;
  [[nodiscard]] std::vector<OwnerReference> owners() const;
  /// The owner with controller=true.
  [[nodiscard]] std::optional<OwnerReference> controller() const;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

/// Orders resourceVersions of one resource type: as unbounded whole numbers, by length and then as text.
/// An empty version is older than any. Never parse them, never compare across types.
[[nodiscard]] std::strong_ordering compare_versions(std::string_view a, std::string_view b) noexcept;

}  // namespace loadline::kube

template <>
struct std::hash<loadline::kube::ObjectKey> {
  std::size_t operator()(const loadline::kube::ObjectKey& key) const noexcept;
};
