#include "api/unsupported.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"

namespace loadline::api {
namespace {

using nlohmann::json;

struct Row {
  std::string_view kind;
  std::string_view field;    ///< dotted path from the root
  std::string_view value;    ///< the one value that is not supported; empty: any
  std::string_view instead;  ///< what to do
};

constexpr std::array<Row, 10> kRows{{
    {"TrainingJob", "spec.queueName", "", "jobs wait in Loadline's own ledger; leave it out"},
    {"TrainingJob", "spec.launcher", "mpi", "use torchrun, deepspeed or none"},
    {"TrainingJob", "spec.launcher", "jax", "use torchrun, deepspeed or none"},
    {"GPUPool", "spec.price.billingSeconds", "", "cost is counted by the second"},
    {"GPUPool", "spec.price.minimumSeconds", "", "cost is counted by the second"},
    {"GPUPool", "spec.storage.pricePerGiBMonth", "", "storage is not part of the cost"},
    {"GPUPool", "spec.storage.egressPricePerGiB", "", "traffic is not part of the cost"},
    {"GPUPool", "spec.noticeSeconds", "", "the grace of a pod follows from the size of its checkpoint"},
    {"GPUPool", "spec.topologyKeys", "", "a gang is kept in one zone at most"},
    {"PlacementPolicy", "spec.avoidNode", "", "the next attempt stays off nodes that failed the last one"},
}};

const json* find(const json& object, std::string_view path) {
  const json* value = &object;
  while (!path.empty()) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    if (!value->is_object()) return nullptr;
    const auto member = value->find(path.substr(0, dot));
    if (member == value->end()) return nullptr;
    value = &*member;
    path.remove_prefix(std::min(dot + 1, path.size()));
  }
  return value;
}

}  // namespace

std::vector<FieldError> unsupported_fields(std::string_view kind, const json& object) {
  std::vector<FieldError> errors;
  for (const Row& row : kRows) {
    if (row.kind != kind) continue;
    const json* value = find(object, row.field);
    if (value == nullptr || value->is_null() || (!row.value.empty() && *value != row.value)) continue;
    errors.push_back({FieldError::Type::NotSupported, std::string(row.field),
                      value->is_string() ? value->get<std::string>() : cut_utf8(value->dump(), 80),
                      "not supported yet: " + std::string(row.field) + "; " + std::string(row.instead)});
  }
  return errors;
}

}  // namespace loadline::api
