// Reads one mapping of a table's YAML, and refuses what it does not know. Private to the
// files that read the tables.
//
// Thread-safety: none; one reader, one thread.
// Errors: BadRow is thrown, and caught inside Tables::with_overrides().
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "estimator/tables.h"

namespace loadline::estimator {

/// A key that is missing, unknown or of the wrong type. Thrown and caught inside Tables::with_overrides().
struct BadRow {
  std::string where;
  std::string what;
};

/// Reads one mapping; every key must be asked for, so that a misspelt one is not ignored.
class Row {
 public:
  Row(const YAML::Node& node, std::string where) : node_(node), where_(std::move(where)) {
    if (node_ && !node_.IsMap()) throw BadRow{where_, "must be a mapping"};
  }
  ~Row() = default;
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  template <class T>
  void optional(const char* key, T& out) {
    seen_.emplace_back(key);
    if (!node_ || !node_[key]) return;
    try {
      out = node_[key].template as<T>();
    } catch (const YAML::Exception&) {
      throw BadRow{where_ + "." + key, "is not of the expected type"};
    }
  }
  std::string required(const char* key) {
    std::string text;
    optional(key, text);
    if (text.empty()) throw BadRow{where_ + "." + key, "is required"};
    return text;
  }
  [[nodiscard]] YAML::Node child(const char* key) {
    seen_.emplace_back(key);
    return node_ ? node_[key] : YAML::Node(YAML::NodeType::Undefined);
  }
  [[nodiscard]] const std::string& where() const { return where_; }
  /// Call last: refuses keys nobody asked for.
  void finish() const {
    if (!node_) return;
    for (const auto& entry : node_) {
      const auto key = entry.first.as<std::string>();
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) throw BadRow{where_ + "." + key, "is not known"};
    }
  }

 private:
  YAML::Node node_;
  std::string where_;
  std::vector<std::string> seen_;
};

/// A row of `models` and of `families`.
[[nodiscard]] ModelRow model_row(const YAML::Node& node, const std::string& where);
[[nodiscard]] FamilyRow family_row(const YAML::Node& node, const std::string& where);

}  // namespace loadline::estimator
