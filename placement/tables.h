// The facts about clouds' labels, taints and machine types, as rows; from placement/data.
//
// Thread-safety: immutable; made once, on first use. Ownership: lives as long as the program.
// Errors: none at run time; the tests read every row.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "placement/facts.h"

namespace loadline::placement {

struct LabelRow {
  std::string key;
  std::string provider;              ///< of a pool label
  std::optional<std::string> value;  ///< the row holds only for this value
  std::optional<api::CapacityType> capacity;
  bool gigabytes = false;  ///< of a memory label: GB of 1000^3 bytes instead of MiB
  bool live = false;       ///< of a memory label: measured on the node
  std::vector<std::string> unless;
  std::string says;  ///< "{value}" stands for the label's value
};

struct TaintRow {
  std::string key;  ///< ending in '*': any key that begins so
  std::optional<std::string> value;
  std::optional<std::string> effect;
  bool spot = false;
  std::string says;

  [[nodiscard]] bool matches(const Taint& taint) const;
};

struct MachineRow {
  std::string type;  ///< ending in '*': any type that begins so
  std::string gpu;   ///< product words
  std::int64_t count = 0;
  api::Interconnect link = api::Interconnect::Unknown;
  std::optional<double> gbps;
  std::map<std::string, std::int64_t> extra;
};

struct CloudTables {
  std::vector<LabelRow> pool, split, capacity, product, memory, partitioned, ending;
  std::vector<TaintRow> tolerated, ending_taints, not_ready_taints;
  std::vector<TaintRow> ending_conditions;  ///< key is the condition's type
  std::vector<MachineRow> machines;

  [[nodiscard]] static const CloudTables& builtin();
  /// The row of an instance type, longest match; null when none.
  [[nodiscard]] const MachineRow* machine(const std::string& type) const;
};

}  // namespace loadline::placement
