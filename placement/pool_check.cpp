// Admission's view of a GPUPool: what its schema cannot say.
#include "placement/inventory.h"
#include "placement/money.h"

namespace loadline::placement {
namespace {

using Type = FieldError::Type;

void check_price(const api::PriceSpec& price, std::vector<FieldError>& errors) {
  const std::string path = "spec.price";
  const bool owned = price.owned.value_or(false);
  if (price.perGPUHour && price.perNodeHour) {
    errors.push_back(
        {Type::Forbidden, path + ".perNodeHour", *price.perNodeHour, "give perGPUHour or perNodeHour, not both"});
  }
  if (!price.perGPUHour && !price.perNodeHour && !owned) {
    errors.push_back({Type::Required, path + ".perGPUHour", "", "give perGPUHour or perNodeHour, or owned: true"});
  }
  const auto check = [&](const char* field, const std::optional<std::string>& typed) {
    if (!typed) return;
    const auto amount = parse_money(*typed);
    if (!amount) {
      errors.push_back({Type::Invalid, path + field, *typed, "must be a decimal such as \"1.25\""});
    } else if (*amount <= 0 && !owned) {
      errors.push_back({Type::Invalid, path + field, *typed,
                        "0 means free only for hardware that is paid for: say owned: true, or leave the price out"});
    }
  };
  check(".perGPUHour", price.perGPUHour);
  check(".perNodeHour", price.perNodeHour);
  if (price.asOf && !parse_rfc3339(*price.asOf + "T00:00:00Z") && !parse_rfc3339(*price.asOf)) {
    errors.push_back({Type::Invalid, path + ".asOf", *price.asOf, "must be a date such as 2026-11-28"});
  }
}

void check_storage(const api::StorageSpec& storage, std::vector<FieldError>& errors) {
  const auto check = [&](const char* field, const std::optional<std::string>& typed) {
    if (typed && !parse_money(*typed)) {
      errors.push_back(
          {Type::Invalid, std::string("spec.storage") + field, *typed, "must be a decimal such as \"0.17\""});
    }
  };
  check(".pricePerGiBMonth", storage.pricePerGiBMonth);
  check(".egressPricePerGiB", storage.egressPricePerGiB);
}

}  // namespace

std::vector<FieldError> check_pool(const api::GPUPool& pool) {
  std::vector<FieldError> errors;
  const api::GPUPoolSpec& spec = pool.spec;
  if (spec.nodeSelector.empty()) {
    errors.push_back({Type::Required, "spec.nodeSelector", "", "name at least one label of the pool's nodes"});
  }
  if (spec.price) check_price(*spec.price, errors);
  if (spec.storage) check_storage(*spec.storage, errors);
  if (spec.scaling && spec.scaling->minNodes && spec.scaling->maxNodes &&
      *spec.scaling->minNodes > *spec.scaling->maxNodes) {
    errors.push_back({Type::Invalid, "spec.scaling.minNodes", std::to_string(*spec.scaling->minNodes),
                      "must not exceed maxNodes " + std::to_string(*spec.scaling->maxNodes)});
  }
  return errors;
}

}  // namespace loadline::placement
