#include "cli/yaml.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <system_error>
#include <utility>

#include "base/saturating.h"

namespace loadline::cli {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 100;
constexpr int kMaxValues = 200'000;

/// Thrown and caught in this file only: conversion is a deep recursion.
struct Refused {
  int line;  ///< counted from 1
  std::string why;
};

template <class Number>
std::optional<Number> number_from(std::string_view text, int base) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<json> integer(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0o")) {
    base = text[1] == 'x' ? 16 : 8;
    text.remove_prefix(2);
  }
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if ((plus || base != 10) && (text.starts_with('-') || text.starts_with('+'))) return std::nullopt;
  if (const auto value = number_from<std::int64_t>(text, base)) return json(*value);
  return std::nullopt;
}

/// The core schema's floating point form; integers too large for 64 bits end here as well.
std::optional<json> floating(std::string_view text) {
  static const std::regex form(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)");
  if (text.size() > 400 || !std::regex_match(text.begin(), text.end(), form)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;  // out of a double's range: stays the text that was typed
  return json(value);
}

json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto value = integer(text)) return *value;
  if (auto value = floating(text)) return *value;
  return text;
}

class Converter {
 public:
  json convert(const YAML::Node& node, int depth = 0) {
    if (depth > kMaxDepth) refuse(node, "nested deeper than " + std::to_string(kMaxDepth));
    if (++values_ > kMaxValues) refuse(node, "expands to more than " + std::to_string(kMaxValues) + " values");
    switch (node.Type()) {
      case YAML::NodeType::Sequence: return sequence(node, depth);
      case YAML::NodeType::Map: return map(node, depth);
      case YAML::NodeType::Scalar: return scalar(node);
      case YAML::NodeType::Null:
      case YAML::NodeType::Undefined: break;
    }
    return nullptr;
  }

 private:
  [[noreturn]] static void refuse(const YAML::Node& node, std::string why) {
    throw Refused{node.Mark().line + 1, std::move(why)};
  }

  static json scalar(const YAML::Node& node) {
    // yaml-cpp marks a plain scalar "?", a quoted one "!".
    const std::string& tag = node.Tag();
    if (tag == "?" || tag.empty()) return plain_scalar(node.Scalar());
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return node.Scalar();
    if (tag == "tag:yaml.org,2002:int" || tag == "tag:yaml.org,2002:float" || tag == "tag:yaml.org,2002:bool") {
      return plain_scalar(node.Scalar());
    }
    refuse(node, "unknown tag " + tag);
  }

  json sequence(const YAML::Node& node, int depth) {
    json out = json::array();
    for (const YAML::Node& item : node) out.push_back(convert(item, depth + 1));
    return out;
  }

  json map(const YAML::Node& node, int depth) {
    json out = json::object();
    json merged = json::object();
    for (const auto& entry : node) {
      if (!entry.first.IsScalar()) refuse(node, "a key must be a plain word");
      const std::string& key = entry.first.Scalar();
      if (key == "<<" && entry.first.Tag() != "!") {
        merge(entry.second, depth, merged);
        continue;
      }
      if (out.contains(key)) refuse(entry.first, "duplicate key \"" + key + "\"");
      out[key] = convert(entry.second, depth + 1);
    }
    // Keys of the map itself win over merged ones.
    for (auto& [key, value] : merged.items()) out.emplace(key, std::move(value));
    return out;
  }

  void merge(const YAML::Node& node, int depth, json& merged) {
    if (node.IsSequence()) {
      for (const YAML::Node& item : node) merge(item, depth + 1, merged);
      return;
    }
    if (!node.IsMap()) refuse(node, "\"<<\" takes a map or a list of maps");
    json source = convert(node, depth + 1);
    for (auto& [key, value] : source.items()) merged.emplace(key, std::move(value));
  }

  int values_ = 0;
};

Error located(const std::string& source, int line, const std::string& why) {
  return Error::make(Error::Code::Invalid, source + ":" + std::to_string(line) + ": " + why);
}

}  // namespace

Result<std::vector<json>> json_from_yaml(std::string_view text, const std::string& source) {
  try {
    std::vector<json> documents;
    Converter converter;
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      json document = converter.convert(node);
      if (!document.is_null()) documents.push_back(std::move(document));
    }
    return documents;
  } catch (const Refused& refused) {
    return located(source, refused.line, refused.why);
  } catch (const YAML::Exception& problem) {
    return located(source, problem.mark.is_null() ? 1 : problem.mark.line + 1, problem.msg);
  }
}

}  // namespace loadline::cli
