#include "placement/tables.h"

#include <yaml-cpp/yaml.h>

#include "placement/embedded.h"

namespace loadline::placement {
namespace {

bool matches_pattern(const std::string& pattern, const std::string& text) {
  if (!pattern.empty() && pattern.back() == '*') {
    return text.compare(0, pattern.size() - 1, pattern, 0, pattern.size() - 1) == 0;
  }
  return pattern == text;
}

std::string word(const YAML::Node& row, const char* key) {
  return row[key] ? row[key].as<std::string>() : std::string();
}

std::optional<std::string> optional_word(const YAML::Node& row, const char* key) {
  if (!row[key]) return std::nullopt;
  return row[key].as<std::string>();
}

std::vector<LabelRow> label_rows(const YAML::Node& list) {
  std::vector<LabelRow> rows;
  for (const YAML::Node& node : list) {
    LabelRow row;
    row.key = word(node, "key");
    row.provider = word(node, "provider");
    row.value = optional_word(node, "value");
    row.capacity = api::value_named<api::CapacityType>(word(node, "type"));
    row.gigabytes = word(node, "unit") == "GB";
    row.live = node["live"] && node["live"].as<bool>();
    if (node["unless"]) row.unless = node["unless"].as<std::vector<std::string>>();
    row.says = word(node, "says");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TaintRow> taint_rows(const YAML::Node& list, const char* key) {
  std::vector<TaintRow> rows;
  for (const YAML::Node& node : list) {
    TaintRow row;
    row.key = word(node, key);
    row.value = optional_word(node, "value");
    row.effect = optional_word(node, "effect");
    row.spot = node["spot"] && node["spot"].as<bool>();
    row.says = word(node, "says");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<MachineRow> machine_rows(const YAML::Node& list) {
  std::vector<MachineRow> rows;
  for (const YAML::Node& node : list) {
    MachineRow row;
    row.type = word(node, "type");
    row.gpu = word(node, "gpu");
    row.count = node["count"].as<std::int64_t>();
    row.link = api::value_named<api::Interconnect>(word(node, "link")).value_or(api::Interconnect::Unknown);
    if (node["gbps"]) row.gbps = node["gbps"].as<double>();
    if (node["extra"]) row.extra = node["extra"].as<std::map<std::string, std::int64_t>>();
    rows.push_back(std::move(row));
  }
  return rows;
}

CloudTables read_tables() {
  CloudTables tables;
  const YAML::Node labels = YAML::Load(std::string(data::labels_yaml));
  tables.pool = label_rows(labels["pool"]);
  tables.split = label_rows(labels["split"]);
  tables.capacity = label_rows(labels["capacity"]);
  tables.product = label_rows(labels["product"]);
  tables.memory = label_rows(labels["memory"]);
  tables.partitioned = label_rows(labels["partitioned"]);
  tables.ending = label_rows(labels["ending"]);
  const YAML::Node taints = YAML::Load(std::string(data::taints_yaml));
  tables.tolerated = taint_rows(taints["tolerated"], "key");
  tables.ending_taints = taint_rows(taints["ending"], "key");
  tables.not_ready_taints = taint_rows(taints["not_ready"], "key");
  tables.ending_conditions = taint_rows(taints["conditions"], "type");
  tables.machines = machine_rows(YAML::Load(std::string(data::machine_types_yaml))["machines"]);
  return tables;
}

}  // namespace

bool TaintRow::matches(const Taint& taint) const {
  return matches_pattern(key, taint.key) && (!value || *value == taint.value) && (!effect || *effect == taint.effect);
}

// Compiled in: a fault here is a fault of the build, which the tests find.
const CloudTables& CloudTables::builtin() {
  static const CloudTables tables = [] {
    try {
      return read_tables();
    } catch (const YAML::Exception&) {
      return CloudTables{};
    }
  }();
  return tables;
}

const MachineRow* CloudTables::machine(const std::string& type) const {
  const MachineRow* best = nullptr;
  for (const MachineRow& row : machines) {
    if (matches_pattern(row.type, type) && (best == nullptr || row.type.size() > best->type.size())) best = &row;
  }
  return best;
}

}  // namespace loadline::placement
