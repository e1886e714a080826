#include "estimator/hf_config.h"

#include <cmath>

#include "base/saturating.h"
#include "base/text.h"

namespace loadline::estimator {
namespace {

std::int64_t clamp(std::uint64_t v) {
  return v > static_cast<std::uint64_t>(kSaturated) ? kSaturated : static_cast<std::int64_t>(v);
}

/// JSON parsed from text holds 4096 as unsigned; a config built in code or read from YAML may hold it as signed, and
/// Python writes 4096.0. All three mean the same.
std::optional<std::int64_t> whole_number(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return clamp(value.get<std::uint64_t>());
  if (value.is_number_integer() && value.get<std::int64_t>() >= 0) return clamp(value.get<std::uint64_t>());
  if (!value.is_number_float()) return std::nullopt;
  const auto size = value.get<double>();
  if (size < 0 || std::trunc(size) != size) return std::nullopt;
  return sat_from_double(size);
}

}  // namespace

HfConfig::HfConfig(const nlohmann::json& config, std::string path, std::vector<FieldError>& errors)
    : config_(config), path_(std::move(path)), errors_(errors) {}

const nlohmann::json* HfConfig::value(const char* key) const {
  const auto it = config_.find(key);
  return it == config_.end() || it->is_null() ? nullptr : &*it;
}

void HfConfig::refuse(const std::string& key, const std::string& typed, std::string detail) const {
  errors_.push_back({FieldError::Type::Invalid, path_ + "." + key, cut_utf8(typed, 128), std::move(detail)});
}

std::optional<std::int64_t> HfConfig::integer(Keys keys) const {
  for (const char* key : keys) {
    const nlohmann::json* held = value(key);
    if (held == nullptr) continue;
    if (const auto size = whole_number(*held)) return size;
    refuse(key, held->dump(), "must be a whole number");
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<double> HfConfig::number(Keys keys) const {
  for (const char* key : keys) {
    const nlohmann::json* held = value(key);
    if (held == nullptr) continue;
    if (held->is_number() && held->get<double>() > 0) return held->get<double>();
    refuse(key, held->dump(), "must be a number above 0");
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<std::int64_t> HfConfig::side(Keys keys) const {
  for (const char* key : keys) {
    const nlohmann::json* held = value(key);
    if (held == nullptr) continue;
    if (held->is_array() && !held->empty()) held = &held->front();
    if (const auto size = whole_number(*held)) return size;
    refuse(key, held->dump(), "must be a whole number");
    return std::nullopt;
  }
  return std::nullopt;
}

std::int64_t HfConfig::required(Keys keys, std::int64_t otherwise) const {
  const std::size_t before = errors_.size();
  const std::optional<std::int64_t> size = integer(keys);
  if (size) return *size;
  if (otherwise > 0 && errors_.size() == before) return otherwise;
  if (errors_.size() == before) {
    errors_.push_back({FieldError::Type::Required, path_ + "." + *keys.begin(), "", "the size cannot be guessed"});
  }
  return 1;
}

bool HfConfig::flag(const char* key, bool otherwise) const {
  const nlohmann::json* held = value(key);
  return held != nullptr && held->is_boolean() ? held->get<bool>() : otherwise;
}

std::string HfConfig::word(const char* key) const {
  const nlohmann::json* held = value(key);
  return held != nullptr && held->is_string() ? cut_utf8(held->get<std::string>(), 1024) : std::string();
}

const nlohmann::json* HfConfig::list(const char* key) const {
  const nlohmann::json* held = value(key);
  return held != nullptr && held->is_array() ? held : nullptr;
}

const nlohmann::json* HfConfig::object(Keys keys, std::string* found) const {
  for (const char* key : keys) {
    const nlohmann::json* held = value(key);
    if (held == nullptr || !held->is_object()) continue;
    *found = path_ + "." + key;
    return held;
  }
  return nullptr;
}

}  // namespace loadline::estimator
