#include "placement/pool_traits.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "placement/money.h"

namespace loadline::placement {
namespace {

constexpr const char* kInstanceType = "node.kubernetes.io/instance-type";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// A pool's name becomes a label value: at most 63 characters of [A-Za-z0-9._-], alphanumeric ends.
std::string label_value(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-') c = '-';
  }
  if (text.size() > 63) text.resize(63);
  while (!text.empty() && std::isalnum(static_cast<unsigned char>(text.back())) == 0) text.pop_back();
  return text;
}

// The first label of `rows` that a node has, in the rows' order.
struct Found {
  const LabelRow* row = nullptr;
  std::string value;
};

Found first_label(const NodeFacts& node, const std::vector<LabelRow>& rows) {
  for (const LabelRow& row : rows) {
    const std::string& value = node.label(row.key);
    if (!value.empty() && (!row.value || *row.value == value)) return {&row, value};
  }
  return {};
}

const std::string& spec_text(const std::optional<std::string>& text) {
  static const std::string kNone;
  return text ? *text : kNone;
}

// Where memory figures come from; the least of them counts.
struct MemoryClaim {
  std::int64_t mib = 0;
  std::string source;
};

std::optional<std::int64_t> memory_label(const NodeFacts& node, const LabelRow& row) {
  const auto amount = parse_quantity(node.label(row.key));
  if (!amount || *amount <= 0) return std::nullopt;
  if (!row.gigabytes) return amount;
  return static_cast<std::int64_t>(static_cast<double>(*amount) * 1e9 / static_cast<double>(kMiB));
}

class Builder {
 public:
  Builder(const PoolGroup& group, const CloudTables& tables, TimePoint now)
      : group_(group), tables_(tables), now_(now) {
    static const api::GPUPoolSpec kNoSpec;
    spec_ = group.object != nullptr ? &group.object->spec : &kNoSpec;
    pool_.name = group.name;
    pool_.declared = group.object != nullptr;
    pool_.node_selector = pool_.declared ? spec_->nodeSelector : group.selector;
  }

  Pool build() {
    read_machine();
    read_product();
    read_per_node();
    read_memory();
    read_link();
    read_capacity();
    read_rest();
    read_tolerations();
    return std::move(pool_);
  }

 private:
  const api::GpuSpec& gpu_spec() const {
    static const api::GpuSpec kNone;
    return spec_->gpu ? *spec_->gpu : kNone;
  }

  void disagree(const std::string& text) { pool_.disagreements.push_back(text); }

  void read_machine() {
    if (const auto found = pool_.node_selector.find(kInstanceType); found != pool_.node_selector.end()) {
      machine_ = tables_.machine(found->second);
    }
    for (const NodeFacts* node : group_.nodes) {
      if (const MachineRow* row = tables_.machine(node->label(kInstanceType))) machine_ = row;
    }
    pool_.resource = gpu_spec().resourceName.value_or(pool_.resource);
  }

  void read_product() {
    const std::string& declared = spec_text(gpu_spec().product);
    for (const NodeFacts* node : group_.nodes) {
      const Found found = first_label(*node, tables_.product);
      if (found.row == nullptr) continue;
      if (pool_.product.empty()) pool_.product = found.value;
      if (found.value != pool_.product && products_.insert({found.value, node->name}).second) {
        disagree("node " + node->name + " has " + found.value + ", others " + pool_.product);
      }
    }
    if (pool_.product.empty()) pool_.product = declared;
    if (pool_.product.empty() && machine_ != nullptr) pool_.product = machine_->gpu;
    pool_.gpu = estimator::find_gpu(pool_.product);
    const estimator::Gpu* declared_gpu = declared.empty() ? pool_.gpu : estimator::find_gpu(declared);
    if (declared_gpu != pool_.gpu) {
      disagree("GPUPool says product " + declared + ", nodes say " + pool_.product + "; the nodes are believed");
    }
    // A sloppy label ("NVIDIA-A100") names a family; the machine type knows which of it.
    if (machine_ != nullptr && (pool_.gpu == nullptr || pool_.gpu->memory_mib == 0)) {
      if (const estimator::Gpu* exact = estimator::find_gpu(machine_->gpu)) pool_.gpu = exact;
    }
  }

  void read_per_node() {
    for (const NodeFacts* node : group_.nodes) {
      pool_.per_node = std::max(pool_.per_node, whole(node->allocatable, pool_.resource));
    }
    const std::int64_t declared = gpu_spec().perNode.value_or(0);
    if (pool_.per_node > 0 && declared > 0 && declared != pool_.per_node) {
      disagree("GPUPool says " + std::to_string(declared) + " GPUs per node, nodes offer " +
               std::to_string(pool_.per_node) + "; the nodes are believed");
    }
    if (pool_.per_node == 0) pool_.per_node = std::max<std::int64_t>(0, declared);
    if (pool_.per_node == 0 && machine_ != nullptr) pool_.per_node = machine_->count;
  }

  // Live labels, the object and other labels make claims; the table only answers when none did.
  void read_memory() {
    std::vector<MemoryClaim> claims;
    for (const LabelRow& row : tables_.memory) {
      std::optional<MemoryClaim> least;
      for (const NodeFacts* node : group_.nodes) {
        const auto mib = memory_label(*node, row);
        if (!mib) continue;
        if (least && *mib != least->mib && row.live) {
          disagree(row.key + " is " + std::to_string(*mib) + " on node " + node->name + " and " +
                   std::to_string(least->mib) + " on others; the least is used");
        }
        if (!least || *mib < least->mib) least = MemoryClaim{*mib, row.key};
      }
      if (least) claims.push_back(*least);
    }
    if (gpu_spec().memoryMiBPerGPU.value_or(0) > 0) claims.push_back({*gpu_spec().memoryMiBPerGPU, "GPUPool"});
    if (claims.empty() && pool_.gpu != nullptr && pool_.gpu->memory_mib > 0) {
      claims.push_back({pool_.gpu->memory_mib, "table for " + pool_.gpu->name});
    }
    if (claims.empty()) return;
    const MemoryClaim least = *std::min_element(
        claims.begin(), claims.end(), [](const MemoryClaim& a, const MemoryClaim& b) { return a.mib < b.mib; });
    for (const MemoryClaim& claim : claims) {
      if (claim.mib == least.mib) continue;
      disagree("memory per GPU: " + claim.source + " says " + std::to_string(claim.mib) + " MiB, " + least.source +
               " says " + std::to_string(least.mib) + "; the least is used");
    }
    pool_.memory_mib = least.mib;
    pool_.usable_mib = std::max<std::int64_t>(0, least.mib - estimator::kDriverShareMiB);
    pool_.memory_source = least.source + " " + std::to_string(least.mib) + " MiB less " +
                          std::to_string(estimator::kDriverShareMiB) + " for the driver";
  }

  // Labels that state the link, the object, the product's words, the machine type; else unknown.
  void read_link() {
    using api::Interconnect;
    const Interconnect declared = gpu_spec().interconnect.value_or(Interconnect::Unknown);
    const auto take = [&](Interconnect link, const std::string& source) {
      if (pool_.interconnect != Interconnect::Unknown || link == Interconnect::Unknown) return;
      pool_.interconnect = link;
      pool_.interconnect_source = source;
    };
    for (const NodeFacts* node : group_.nodes) {
      const std::string nvlink = lower(node->label("gpu.nvidia.com/nvlink"));
      if (nvlink == "true") take(Interconnect::NvLink, "label gpu.nvidia.com/nvlink");
      if (nvlink == "false") take(Interconnect::Pcie, "label gpu.nvidia.com/nvlink");
      if (!node->label("nvidia.com/gpu.clique").empty()) take(Interconnect::NvSwitch, "label nvidia.com/gpu.clique");
    }
    take(declared, "GPUPool");
    const Interconnect from_product = pool_.gpu != nullptr ? pool_.gpu->link : Interconnect::Unknown;
    const Interconnect from_machine = machine_ != nullptr ? machine_->link : Interconnect::Unknown;
    take(from_product, pool_.gpu != nullptr ? "product " + pool_.gpu->name : "");
    take(from_machine, machine_ != nullptr ? "machine type " + machine_->type : "");
    if (declared != Interconnect::Unknown && from_product == Interconnect::Pcie && declared != from_product) {
      disagree("GPUPool says " + std::string(api::name_of(declared)) + ", but " + pool_.gpu->name + " is a PCIe card");
    }
  }

  // A pod that asks for a device that no plugin offers would stay pending for ever.
  [[nodiscard]] bool offered(const std::string& resource) const {
    const auto has = [&](const NodeFacts* node) { return whole(node->allocatable, resource) > 0; };
    return group_.nodes.empty() || std::any_of(group_.nodes.begin(), group_.nodes.end(), has);
  }

  void read_capacity() {
    for (const NodeFacts* node : group_.nodes) {
      const auto mark = capacity_of(*node, tables_);
      if (!mark) continue;
      if (pool_.capacity_type && *pool_.capacity_type != mark->type) {
        disagree("node " + node->name + " is " + std::string(api::name_of(mark->type)) + ", others " +
                 std::string(api::name_of(*pool_.capacity_type)) + "; the pool counts as spot");
        pool_.capacity_type = api::CapacityType::Spot;
        break;
      }
      pool_.capacity_type = mark->type;
    }
    if (pool_.capacity_type && spec_->capacityType && *pool_.capacity_type != *spec_->capacityType) {
      disagree("GPUPool says " + std::string(api::name_of(*spec_->capacityType)) + ", node labels say " +
               std::string(api::name_of(*pool_.capacity_type)) + "; the nodes are believed");
    }
    if (!pool_.capacity_type) pool_.capacity_type = spec_->capacityType;
  }

  void read_rest() {
    if (machine_ != nullptr) {
      pool_.network_gbps = machine_->gbps;
      for (const auto& [name, count] : machine_->extra) {
        if (offered(name)) pool_.extra_resources[name] = count;
      }
    }
    if (spec_->network) {
      if (spec_->network->gbpsPerNode && *spec_->network->gbpsPerNode > 0) {
        pool_.network_gbps = spec_->network->gbpsPerNode;
      }
      if (!spec_->network->extraResources.empty()) pool_.extra_resources = spec_->network->extraResources;
    }
    if (spec_->storage) {
      pool_.storage_classes = spec_->storage->classes;
      if (spec_->storage->writeMiBps.value_or(0) > 0) pool_.write_mib_per_s = spec_->storage->writeMiBps;
    }
    if (spec_->price) {
      const PriceReading reading = read_price(*spec_->price, pool_.per_node, now_);
      pool_.price = reading.price;
      pool_.price_problem = reading.problem;
    }
    pool_.notice_seconds = spec_->noticeSeconds.value_or(0);
    pool_.topology_keys = spec_->topologyKeys;
    pool_.reclaims_per_node_hour = spec_->interruptionsPerNodeHour;
    if (group_.object != nullptr && group_.object->status.interruptionsPerNodeHour) {
      pool_.reclaims_per_node_hour = group_.object->status.interruptionsPerNodeHour;
    }
    if (spec_->scaling) {
      pool_.min_nodes = spec_->scaling->minNodes.value_or(0);
      pool_.max_nodes = spec_->scaling->maxNodes;
      pool_.boot_seconds = spec_->scaling->bootSeconds.value_or(0);
    }
  }

  // Those of the object, and one for each usual taint of GPU nodes that the pool's nodes have.
  // A pool without nodes gets them all: what a new node will carry is not known.
  void read_tolerations() {
    pool_.tolerations = spec_->tolerations;
    for (const TaintRow& row : tables_.tolerated) {
      const bool seen = std::any_of(group_.nodes.begin(), group_.nodes.end(), [&](const NodeFacts* node) {
        return std::any_of(node->taints.begin(), node->taints.end(), [&](const Taint& t) { return row.matches(t); });
      });
      const bool expected = group_.nodes.empty() && (!row.spot || pool_.capacity_type == api::CapacityType::Spot);
      if (!seen && !expected) continue;
      api::Toleration toleration;
      toleration.key = row.key;
      toleration.op = row.value ? "Equal" : "Exists";
      toleration.value = row.value;
      toleration.effect = row.effect;
      if (std::find(pool_.tolerations.begin(), pool_.tolerations.end(), toleration) == pool_.tolerations.end()) {
        pool_.tolerations.push_back(std::move(toleration));
      }
    }
  }

  const PoolGroup& group_;
  const CloudTables& tables_;
  TimePoint now_;
  const api::GPUPoolSpec* spec_ = nullptr;
  const MachineRow* machine_ = nullptr;
  std::map<std::string, std::string> products_;
  Pool pool_;
};

}  // namespace

Pool pool_traits(const PoolGroup& group, const CloudTables& tables, TimePoint now) {
  return Builder(group, tables, now).build();
}

std::optional<CapacityMark> capacity_of(const NodeFacts& node, const CloudTables& tables) {
  const Found found = first_label(node, tables.capacity);
  if (found.row == nullptr || !found.row->capacity) return std::nullopt;
  return CapacityMark{*found.row->capacity, found.row->key, found.value};
}

// Karpenter's pools and unnamed ones mix machine types and capacity types; each mix is a pool
// of its own, as price, memory and lifetime differ.
DiscoveredPool discovered_pool(const NodeFacts& node, const CloudTables& tables) {
  DiscoveredPool pool;
  const Found named = first_label(node, tables.pool);
  if (named.row != nullptr) {
    pool.name = named.value;
    pool.selector[named.row->key] = named.value;
    if (named.row->provider != "Karpenter") {
      pool.name = label_value(pool.name);
      return pool;
    }
  }
  if (const Found split = first_label(node, tables.split); split.row != nullptr) {
    pool.name += (pool.name.empty() ? "" : "-") + lower(split.value);
    pool.selector[split.row->key] = split.value;
  }
  if (const auto mark = capacity_of(node, tables)) {
    pool.name += "-" + std::string(api::name_of(mark->type));
    pool.selector[mark->key] = mark->value;
  }
  pool.name = label_value(pool.name);
  return pool;
}

PriceReading read_price(const api::PriceSpec& spec, std::int64_t per_node, TimePoint now) {
  PriceReading reading;
  Price price;
  price.currency = spec.currency.value_or("USD");
  price.owned = spec.owned.value_or(false);
  price.as_of = spec.asOf;
  if (spec.asOf) {
    const auto date = parse_rfc3339(spec.asOf->size() == 10 ? *spec.asOf + "T00:00:00Z" : *spec.asOf);
    if (date)
      price.age_days =
          std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::hours>(now - *date).count() / 24);
  }
  const std::optional<std::string>& typed = spec.perGPUHour ? spec.perGPUHour : spec.perNodeHour;
  if (!typed) {
    if (price.owned) reading.price = price;
    return reading;
  }
  const auto amount = parse_money(*typed);
  if (!amount) {
    reading.problem = "price \"" + *typed + "\" is not a decimal such as 1.25; it counts as unknown";
    return reading;
  }
  if (*amount <= 0 && !price.owned) {
    reading.problem = "price 0 without owned: true; it counts as unknown";
    return reading;
  }
  if (!spec.perGPUHour && per_node <= 0) {
    reading.problem = "price per node, but GPUs per node are not known; it counts as unknown";
    return reading;
  }
  price.per_gpu_hour = spec.perGPUHour ? *amount : *amount / static_cast<double>(per_node);
  reading.price = price;
  return reading;
}

}  // namespace loadline::placement
