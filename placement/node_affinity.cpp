#include "placement/node_affinity.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/json_member.h"
#include "base/text.h"

namespace loadline::placement {
namespace {

using api::list_member;
using api::member;
using api::text;
using nlohmann::json;

bool listed(const json& values, const std::string& value) {
  return std::any_of(values.begin(), values.end(), [&](const json& v) { return v == value; });
}

/// Gt and Lt compare whole numbers.
bool in_order(const json& values, const std::string& value, bool greater) {
  if (values.size() != 1) return false;
  const auto mine = parse_quantity(value), bound = parse_quantity(text(values[0]));
  return mine && bound && (greater ? *mine > *bound : *mine < *bound);
}

/// @param value of the label or field; null when the node does not have it
bool satisfies(const json& requirement, const std::string* value) {
  const std::string op = text(member(requirement, "operator"));
  const json& values = list_member(requirement, "values");
  if (op == "Exists") return value != nullptr;
  if (op == "DoesNotExist") return value == nullptr;
  if (op == "NotIn") return value == nullptr || !listed(values, *value);
  if (value == nullptr) return false;
  if (op == "In") return listed(values, *value);
  return (op == "Gt" || op == "Lt") && in_order(values, *value, op == "Gt");
}

bool matches_term(const json& term, const std::string& node, const std::map<std::string, std::string>& labels) {
  const json& expressions = list_member(term, "matchExpressions");
  const json& fields = list_member(term, "matchFields");
  if (expressions.empty() && fields.empty()) return false;
  return std::all_of(expressions.begin(), expressions.end(),
                     [&](const json& e) {
                       const auto label = labels.find(text(member(e, "key")));
                       return satisfies(e, label == labels.end() ? nullptr : &label->second);
                     }) &&
         std::all_of(fields.begin(), fields.end(), [&](const json& f) {
           return satisfies(f, text(member(f, "key")) == "metadata.name" ? &node : nullptr);
         });
}

}  // namespace

const json& node_selector_terms(const json& pod_spec) {
  const json& affinity = member(member(pod_spec, "affinity"), "nodeAffinity");
  return member(member(affinity, "requiredDuringSchedulingIgnoredDuringExecution"), "nodeSelectorTerms");
}

bool matches_terms(const json& terms, const std::string& node, const std::map<std::string, std::string>& labels) {
  if (terms.is_null()) return true;
  return terms.is_array() &&
         std::any_of(terms.begin(), terms.end(), [&](const json& term) { return matches_term(term, node, labels); });
}

}  // namespace loadline::placement
