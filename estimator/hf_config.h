// Reads sizes out of a Hugging Face config.json, or out of a config inside it, and collects
// what is wrong with them under the path of the field.
//
// Thread-safety: none; one reader, one thread. Ownership: refers to the config, which must outlive it.
// Errors: collected in the list given; a size that is wrong or missing reads as 1, so that the rest is checked too.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace loadline::estimator {

class HfConfig {
 public:
  /// The same size goes by several names; the first that is there counts.
  using Keys = std::initializer_list<const char*>;

  HfConfig(const nlohmann::json& config, std::string path, std::vector<FieldError>& errors);

  /// The first of `keys` that holds a whole number >= 0; nothing when none is there or it is null.
  [[nodiscard]] std::optional<std::int64_t> integer(Keys keys) const;
  /// The same for a number that may have a fraction; 0 or less is refused.
  [[nodiscard]] std::optional<double> number(Keys keys) const;
  /// The same for the side of a square, which may stand twice in a list.
  [[nodiscard]] std::optional<std::int64_t> side(Keys keys) const;
  /// A size that must be there, unless `otherwise` > 0 says what its absence means.
  [[nodiscard]] std::int64_t required(Keys keys, std::int64_t otherwise = 0) const;
  [[nodiscard]] bool flag(const char* key, bool otherwise) const;
  [[nodiscard]] std::string word(const char* key) const;
  /// The list under `key`; null when there is none.
  [[nodiscard]] const nlohmann::json* list(const char* key) const;
  /// The object under the first of `keys` that holds one; null when none does.
  [[nodiscard]] const nlohmann::json* object(Keys keys, std::string* found) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::vector<FieldError>& errors() const { return errors_; }

 private:
  [[nodiscard]] const nlohmann::json* value(const char* key) const;
  void refuse(const std::string& key, const std::string& typed, std::string detail) const;

  const nlohmann::json& config_;
  std::string path_;
  std::vector<FieldError>& errors_;
};

}  // namespace loadline::estimator
