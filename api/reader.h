// Reads JSON into any type that lists its fields, and gathers every error on the way.
//
// Nothing throws, whatever the document holds: a value of the wrong type leaves its field
// as it was and adds an error with the field's path. Values shown to the user are cut.
// Recursion follows the C++ types, so its depth is theirs; free-form JSON is measured
// before it is copied.
//
// Thread-safety: one Reader per document and thread. Ownership: keeps no reference to the document.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/codec.h"
#include "api/fields.h"
#include "base/result.h"

namespace loadline::api {

class Reader {
 public:
  explicit Reader(UnknownFields unknown) : unknown_(unknown) {}

  /// Errors reported for one document; the rest is only counted.
  static constexpr std::size_t kMaxErrors = 50;
  /// Levels that free-form JSON (a pod template, a config.json) may nest.
  static constexpr int kMaxDepth = 64;

  template <class T>
  void read(const nlohmann::json& value, T& out);

  /// Reads the field `name` of `object`; null counts as absent.
  template <class T>
  void read_field(const nlohmann::json& object, std::string_view name, bool required, T& out);

  void read(const nlohmann::json& value, bool& out);
  void read(const nlohmann::json& value, std::int64_t& out);
  void read(const nlohmann::json& value, double& out);
  void read(const nlohmann::json& value, std::string& out);
  void read(const nlohmann::json& value, nlohmann::json& out);

  void add_error(FieldError::Type type, const nlohmann::json& value, std::string detail);
  /// Every error so far, in the order of the fields; empty when the document is good.
  [[nodiscard]] std::vector<FieldError> take_errors() &&;

 private:
  // Appends to the path for as long as it lives.
  class Step {
   public:
    Step(std::string& path, std::string_view text) : path_(path), length_(path.size()) { path_ += text; }
    ~Step() { path_.resize(length_); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    std::string& path_;
    std::size_t length_;
  };

  template <HasFields T>
  void read_object(const nlohmann::json& value, T& out);
  template <class T>
  void read_list(const nlohmann::json& value, std::vector<T>& out);
  template <class T>
  void read_map(const nlohmann::json& value, std::map<std::string, T>& out);

  [[nodiscard]] std::string member_step(std::string_view name) const;
  void report_unknown(const nlohmann::json& object, const std::vector<std::string_view>& known);
  void report_word(const nlohmann::json& value, const std::vector<std::string_view>& words);

  UnknownFields unknown_;
  std::string path_;
  std::vector<FieldError> errors_;
  std::size_t dropped_ = 0;
};

/// A value as the user typed it, on one line and at most `max_bytes` long.
[[nodiscard]] std::string value_text(const nlohmann::json& value, std::size_t max_bytes = 96);

template <class T>
void Reader::read(const nlohmann::json& value, T& out) {
  if constexpr (is_optional<T>) {
    read(value, out.emplace());
  } else if constexpr (std::is_enum_v<T>) {
    const auto* word = value.get_ptr<const std::string*>();
    const auto known = word != nullptr ? value_named<T>(*word) : std::nullopt;
    if (known) {
      out = *known;
    } else {
      report_word(value, enum_words<T>());
    }
  } else if constexpr (is_list<T>) {
    read_list(value, out);
  } else if constexpr (is_map<T>) {
    read_map(value, out);
  } else {
    read_object(value, out);
  }
}

template <class T>
void Reader::read_field(const nlohmann::json& object, std::string_view name, bool required, T& out) {
  const Step step(path_, member_step(name));
  const auto found = object.find(name);
  if (found != object.end() && !found->is_null()) {
    read(*found, out);
  } else if (required) {
    add_error(FieldError::Type::Required, nullptr, "must be given");
  }
}

template <HasFields T>
void Reader::read_object(const nlohmann::json& value, T& out) {
  if (!value.is_object()) return add_error(FieldError::Type::Invalid, value, "must be an object with fields");
  T::fields(out, [&](const char* name, auto& member) { read_field(value, name, is_required<T>(name), member); });
  if constexpr (!PartOfKubernetes<T>) {
    if (unknown_ == UnknownFields::Reject) report_unknown(value, field_names<T>());
  }
}

template <class T>
void Reader::read_list(const nlohmann::json& value, std::vector<T>& out) {
  if (!value.is_array()) return add_error(FieldError::Type::Invalid, value, "must be a list");
  out.reserve(value.size());
  std::size_t index = 0;
  for (const nlohmann::json& element : value) {
    const Step step(path_, "[" + std::to_string(index++) + "]");
    read(element, out.emplace_back());
  }
}

template <class T>
void Reader::read_map(const nlohmann::json& value, std::map<std::string, T>& out) {
  if (!value.is_object()) return add_error(FieldError::Type::Invalid, value, "must be a map of names to values");
  for (const auto& [key, element] : value.items()) {
    const Step step(path_, "[" + value_text(key, 80) + "]");
    read(element, out[key]);
  }
}

}  // namespace loadline::api
