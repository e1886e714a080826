#include "estimator/tables.h"

#include <algorithm>
#include <cctype>

#include "estimator/embedded.h"
#include "estimator/table_row.h"

namespace loadline::estimator {
namespace {

void read_states(const YAML::Node& node, const std::string& where, StateBytes& s) {
  Row row(node, where);
  row.optional("weights", s.weights);
  row.optional("gradients", s.gradients);
  row.optional("master", s.master);
  row.optional("moment", s.moment);
  row.optional("step", s.step);
  row.optional("compute", s.compute);
  row.optional("residual", s.residual);
  row.optional("copy", s.compute_copy);
  row.finish();
}

void read_shardings(Row& row, std::vector<Sharding>& out) {
  std::vector<std::string> names;
  row.optional("shardings", names);
  if (names.empty()) return;
  out.clear();
  for (const std::string& name : names) {
    const auto sharding = api::value_named<Sharding>(name);
    if (!sharding) throw BadRow{row.where() + ".shardings", "must be none, zero1, zero2 or zero3"};
    out.push_back(*sharding);
  }
}

void read_quantization(Row& row, Quantization& out) {
  std::string name;
  row.optional("quantization", name);
  if (name.empty()) return;
  const auto value = api::value_named<Quantization>(name);
  if (!value) throw BadRow{row.where() + ".quantization", "must be nf4, nf4-double or gptq"};
  out = *value;
}

/// `base` gives what the row leaves out.
Recipe recipe_row(const YAML::Node& node, const std::string& where, Recipe base) {
  Row row(node, where);
  Recipe r = std::move(base);
  r.name = row.required("name");
  r.source = row.required("source");
  Row states(row.child("states"), where + ".states");
  for (const auto& [precision, name] : api::EnumNames<Precision>::table) {
    const std::string key(name);
    const YAML::Node one = states.child(key.c_str());
    if (one)
      read_states(one, std::string(where).append(".states.").append(key),
                  r.states.at(static_cast<std::size_t>(precision)));
  }
  states.finish();
  Row logits(row.child("logits"), where + ".logits");
  for (const auto& [loss, name] : api::EnumNames<Loss>::table) {
    logits.optional(std::string(name).c_str(), r.logits.at(static_cast<std::size_t>(loss)));
  }
  logits.finish();
  row.optional("norm_copies", r.norm_copies);
  row.optional("block_copies", r.block_copies);
  row.optional("mlp_copies", r.mlp_copies);
  row.optional("plain_mlp_copies", r.plain_mlp_copies);
  row.optional("score_bytes", r.score_bytes);
  row.optional("selective_share", r.selective_share);
  row.optional("gathered_at_loss", r.gathered_at_loss);
  row.optional("gathered_units", r.gathered_units);
  row.optional("reduce_bytes", r.reduce_bytes);
  row.optional("bucket_bytes", r.bucket_bytes);
  row.optional("live_parameters", r.live_parameters);
  row.optional("root_gathered", r.root_gathered);
  row.optional("expert_group_shares_batch", r.expert_group_shares_batch);
  row.optional("vocabulary_parallel", r.vocabulary_parallel);
  row.optional("ddp_copy", r.ddp_copy);
  row.optional("gradients_persist", r.gradients_persist);
  row.optional("sequence_parallel", r.sequence_parallel);
  row.optional("flat_gradients", r.flat_gradients);
  row.optional("held_input_gradients", r.held_input_gradients);
  row.optional("sharded_low_precision", r.sharded_low_precision);
  row.optional("kbit_upcast", r.kbit_upcast);
  row.optional("offload_gradients", r.offload_gradients);
  Row quantised(row.child("quantised_bytes"), where + ".quantised_bytes");
  for (const auto& [quantization, name] : api::EnumNames<Quantization>::table) {
    quantised.optional(std::string(name).c_str(), r.quantised_bytes.at(static_cast<std::size_t>(quantization)));
  }
  quantised.finish();
  read_quantization(row, r.quantization);
  row.optional("adapter_bytes", r.adapter_bytes);
  row.optional("host_slack", r.host_slack);
  row.optional("expert_imbalance", r.expert_imbalance);
  row.optional("context_gib", r.context_gib);
  row.optional("communicator_gib", r.communicator_gib);
  row.optional("lone_communicator_gib", r.lone_communicator_gib);
  row.optional("more_communicators_gib", r.more_communicators_gib);
  row.optional("fragmentation_share", r.fragmentation_share);
  row.optional("fragmentation_gib", r.fragmentation_gib);
  row.optional("cached_share", r.cached_share);
  row.optional("cached_share_sharded", r.cached_share_sharded);
  row.optional("cached_logits", r.cached_logits);
  row.optional("cached_step", r.cached_step);
  row.optional("cached_reuse", r.cached_reuse);
  row.optional("model_parallel", r.model_parallel);
  read_shardings(row, r.shardings);
  row.finish();
  return r;
}

OptimizerRow optimizer_row(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  OptimizerRow o;
  o.name = row.required("name");
  o.label = row.required("label");
  o.source = row.required("source");
  row.optional("moments", o.moments);
  row.optional("fixed", o.fixed_bytes);
  row.optional("step_temporary", o.step_temporary);
  row.optional("matrix_bytes", o.matrix_bytes);
  row.optional("paged", o.paged);
  o.vector_moments = o.moments;
  o.vector_fixed = o.fixed_bytes;
  Row vectors(row.child("vectors"), where + ".vectors");
  vectors.optional("moments", o.vector_moments);
  vectors.optional("fixed", o.vector_fixed);
  vectors.finish();
  row.finish();
  return o;
}

AccuracyRow accuracy_row(const YAML::Node& node, const std::string& where) {
  Row row(node, where);
  AccuracyRow out;
  out.name = row.required("class");
  row.optional("within", out.within);
  row.optional("runs", out.runs);
  row.finish();
  return out;
}

const std::string& key_of(const ModelRow& row) { return row.model.name; }
const std::string& key_of(const FamilyRow& row) { return row.type; }
const std::string& key_of(const Recipe& row) { return row.name; }
const std::string& key_of(const OptimizerRow& row) { return row.name; }
const std::string& key_of(const AccuracyRow& row) { return row.name; }

template <class R>
void put(std::vector<R>& rows, R row) {
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const R& r) { return key_of(r) == key_of(row); });
  if (same != rows.end()) {
    *same = std::move(row);
  } else {
    rows.push_back(std::move(row));
  }
}

template <class Read>
void each(const YAML::Node& root, const char* key, Read read) {
  const YAML::Node list = root[key];
  if (!list) return;
  if (!list.IsSequence()) throw BadRow{key, "must be a list"};
  for (std::size_t i = 0; i < list.size(); ++i) read(list[i], std::string(key) + "[" + std::to_string(i) + "]");
}

std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out) c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

}  // namespace

Result<Tables> Tables::with_overrides(std::string_view yaml) const {
  Tables out = *this;
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    if (root.IsNull()) return out;
    Row keys(root, "tables");
    for (const char* key : {"models", "families", "recipes", "optimizers", "accuracy"}) (void)keys.child(key);
    keys.finish();
    each(root, "models", [&](const YAML::Node& n, const std::string& at) { put(out.models, model_row(n, at)); });
    each(root, "families", [&](const YAML::Node& n, const std::string& at) { put(out.families, family_row(n, at)); });
    each(root, "recipes", [&](const YAML::Node& n, const std::string& at) {
      const std::string name = n.IsMap() && n["name"] ? n["name"].as<std::string>() : "";
      const Recipe* base = out.recipe(name);
      if (base == nullptr) base = out.recipe("generic");
      put(out.recipes, recipe_row(n, at, base != nullptr ? *base : Recipe{}));
    });
    each(root, "optimizers",
         [&](const YAML::Node& n, const std::string& at) { put(out.optimizers, optimizer_row(n, at)); });
    each(root, "accuracy", [&](const YAML::Node& n, const std::string& at) { put(out.accuracy, accuracy_row(n, at)); });
  } catch (const BadRow& bad) {
    return Error::make(Error::Code::Invalid, bad.where + ": " + bad.what);
  } catch (const YAML::Exception& e) {
    return Error::make(Error::Code::Invalid, std::string("not YAML: ") + e.what());
  }
  return out;
}

const Tables& Tables::builtin() {
  static const Tables kTables = [] {
    Tables tables;
    for (const std::string_view text :
         {data::models_yaml, data::models_encoders_yaml, data::models_recurrent_yaml, data::models_towers_yaml,
          data::families_yaml, data::recipes_yaml, data::optimizers_yaml, data::accuracy_yaml}) {
      Result<Tables> next = tables.with_overrides(text);
      // The unit tests load every row; a program with broken tables must not start sizing.
      if (!next) std::abort();
      tables = std::move(*next);
    }
    return tables;
  }();
  return kTables;
}

const ModelRow* Tables::model(std::string_view name) const {
  const std::string wanted = folded(name);
  for (const ModelRow& row : models) {
    if (folded(row.model.name) == wanted) return &row;
    for (const std::string& other : row.also) {
      const std::string also = folded(other);
      // "mistralai/Mistral-7B-v0.3" is found without its owner too.
      if (also == wanted || also.substr(also.find('/') + 1) == wanted) return &row;
    }
  }
  return nullptr;
}

const FamilyRow* Tables::family(std::string_view type) const {
  const auto it = std::find_if(families.begin(), families.end(), [&](const FamilyRow& r) { return r.type == type; });
  return it == families.end() ? nullptr : &*it;
}

const Recipe* Tables::recipe(std::string_view name) const {
  const auto it = std::find_if(recipes.begin(), recipes.end(), [&](const Recipe& r) { return r.name == name; });
  return it == recipes.end() ? nullptr : &*it;
}

const OptimizerRow* Tables::optimizer(std::string_view name) const {
  const auto it =
      std::find_if(optimizers.begin(), optimizers.end(), [&](const OptimizerRow& r) { return r.name == name; });
  return it == optimizers.end() ? nullptr : &*it;
}

const AccuracyRow* Tables::accuracy_of(std::string_view job_class) const {
  const auto it =
      std::find_if(accuracy.begin(), accuracy.end(), [&](const AccuracyRow& r) { return r.name == job_class; });
  return it == accuracy.end() ? nullptr : &*it;
}

}  // namespace loadline::estimator
