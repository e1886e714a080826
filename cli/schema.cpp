#include "cli/schema.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <string_view>
#include <utility>

#include "api/gpu_pool.h"
#include "api/json_member.h"
#include "api/placement_policy.h"
#include "api/reader.h"
#include "api/training_job.h"
#include "cli/embedded.h"
#include "cli/yaml.h"

namespace loadline::cli {
namespace {

using api::list_member;
using api::member;
using api::object_member;
using nlohmann::json;
using Type = FieldError::Type;

/// std::regex recurses per character; no name or form in the schemas is that long.
constexpr std::size_t kMostMatched = 2048;

json read_schema(std::string_view crd) {
  const auto documents = json_from_yaml(crd, "CRD");
  if (!documents || documents->empty()) return nullptr;
  const json& versions = list_member(member(documents->front(), "spec"), "versions");
  return versions.empty() ? json() : member(member(versions[0], "schema"), "openAPIV3Schema");
}

const json& schema_of(const std::string& kind) {
  static const json kNone;
  static const std::map<std::string, json> kSchemas{
      {api::TrainingJob::kKind, read_schema(data::loadline_dev_trainingjobs_yaml)},
      {api::GPUPool::kKind, read_schema(data::loadline_dev_gpupools_yaml)},
      {api::PlacementPolicy::kKind, read_schema(data::loadline_dev_placementpolicies_yaml)}};
  const auto found = kSchemas.find(kind);
  return found != kSchemas.end() ? found->second : kNone;
}

/// A part of the object, and where it is.
struct Place {
  const json& value;
  std::string path;
};

/// What `.metadata.name` leads to from `from`.
Place follow(Place from, const std::string& steps) {
  const json* value = &from.value;
  std::string path = std::move(from.path);
  for (std::size_t at = 0; at < steps.size();) {
    const std::size_t end = std::min(steps.find('.', at + 1), steps.size());
    const std::string name = steps.substr(at + 1, end - at - 1);
    value = &member(*value, name.c_str());
    path += (path.empty() ? "" : ".") + name;
    at = end;
  }
  return {*value, std::move(path)};
}

bool matches(const std::string& text, const std::string& form) {
  return text.size() <= kMostMatched && std::regex_search(text, std::regex(form));
}

/// Those of the rules that look at one text only; the others are placement's to keep.
bool holds(const std::string& rule, const std::string& text) {
  static const std::regex kForm(R"(^self[.\w]*\.matches\('(.*)'\)$)"), kWords(R"(^self in \[(.*)\]$)"),
      kSize(R"(^size\(self[.\w]*\) <= (\d{1,9})$)");
  std::smatch found;
  if (std::regex_match(rule, found, kForm)) return matches(text, found[1]);
  if (std::regex_match(rule, found, kSize)) return text.size() <= std::stoul(found[1]);
  if (std::regex_match(rule, found, kWords)) return found[1].str().find("'" + text + "'") != std::string::npos;
  return true;
}

class Checker {
 public:
  void check(const json& schema, const Place& place) {
    if (place.value.is_null()) return;
    if (place.value.is_number()) check_number(schema, place);
    if (place.value.is_string()) check_text(schema, place);
    if (place.value.is_array()) check_list(schema, place);
    if (place.value.is_object()) check_object(schema, place);
    for (const json& rule : list_member(schema, "x-kubernetes-validations")) check_rule(rule, place);
  }

  std::vector<FieldError> errors;

 private:
  void refuse(const Place& place, std::string detail, Type type = Type::Invalid) {
    errors.push_back({type, place.path, api::value_text(place.value), std::move(detail)});
  }

  void check_number(const json& schema, const Place& place) {
    const auto value = place.value.get<double>();
    const json& least = member(schema, "minimum");
    const json& most = member(schema, "maximum");
    const bool open = member(schema, "exclusiveMinimum") == true;
    if (least.is_number() && (open ? value <= least.get<double>() : value < least.get<double>())) {
      refuse(place, (open ? "must be more than " : "must be at least ") + api::value_text(least));
    }
    if (most.is_number() && value > most.get<double>()) {
      refuse(place, "must be at most " + api::value_text(most), Type::TooLarge);
    }
  }

  void check_count(const json& schema, const Place& place, const char* least, const char* most, std::size_t count,
                   const char* what) {
    const json& minimum = member(schema, least);
    const json& maximum = member(schema, most);
    if (minimum.is_number() && count < minimum.get<std::size_t>()) {
      refuse(place, "must have at least " + minimum.dump() + " " + what);
    }
    if (maximum.is_number() && count > maximum.get<std::size_t>()) {
      refuse(place, "must have at most " + maximum.dump() + " " + what, Type::TooLarge);
    }
  }

  void check_text(const json& schema, const Place& place) {
    const auto& text = place.value.get_ref<const std::string&>();
    const auto characters = std::count_if(text.begin(), text.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // not inside of a character of several bytes
    });
    check_count(schema, place, "minLength", "maxLength", static_cast<std::size_t>(characters), "characters");
  }

  void check_list(const json& schema, const Place& place) {
    check_count(schema, place, "minItems", "maxItems", place.value.size(), "entries");
    const bool set = member(schema, "x-kubernetes-list-type") == "set";
    for (std::size_t i = 0; i < place.value.size(); ++i) {
      const auto element = place.value.begin() + static_cast<std::ptrdiff_t>(i);
      const Place at{*element, place.path + "[" + std::to_string(i) + "]"};
      if (set && std::find(place.value.begin(), element, *element) != element) {
        refuse(at, "is in the list already", Type::Duplicate);
      }
      check(member(schema, "items"), at);
    }
  }

  void check_object(const json& schema, const Place& place) {
    check_count(schema, place, "minProperties", "maxProperties", place.value.size(), "entries");
    for (const auto& [name, property] : object_member(schema, "properties").items()) {
      check(property, {member(place.value, name.c_str()), place.path + (place.path.empty() ? "" : ".") + name});
    }
    const json& values = member(schema, "additionalProperties");
    if (!values.is_object()) return;
    for (const auto& [key, value] : place.value.items()) check(values, {value, place.path + "[" + key + "]"});
  }

  void check_rule(const json& rule, const Place& place) {
    static const std::regex kSubject(R"(^(?:size\()?self((?:\.\w+)*?)(?:\.matches\(| in |\) <= ).*)");
    const std::string text = api::text(member(rule, "rule"));
    std::smatch subject;
    if (!std::regex_match(text, subject, kSubject)) return;
    const Place at = follow(place, subject[1]);
    if (at.value.is_string() && !holds(text, at.value.get<std::string>())) {
      refuse(at, api::text(member(rule, "message")));
    }
  }
};

}  // namespace

std::vector<FieldError> schema_errors(const std::string& kind, const json& object) {
  Checker checker;
  json judged = object;
  if (judged.is_object()) judged.erase("status");
  checker.check(schema_of(kind), {judged, ""});
  return std::move(checker.errors);
}

}  // namespace loadline::cli
