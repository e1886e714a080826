#include "score/reading.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "api/training_job.h"
#include "score/embedded.h"

namespace loadline::score {
namespace {

using estimator::Layout;
using estimator::Workload;

bool contains(const std::string& field, const std::string& text) {
  return text.empty() ? field.empty() : field.find(text) != std::string::npos;
}

bool matches(const Run& run, const std::map<std::string, std::vector<std::string>>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const auto& condition) {
    const std::string field = run.lowered(condition.first);
    return std::any_of(condition.second.begin(), condition.second.end(),
                       [&](const std::string& text) { return contains(field, text); });
  });
}

/// What a run says, with what the rules made of it.
class Reader {
 public:
  Reader(const Run& run, const Settings& settings) : run_(run), settings_(settings) {}

  std::variant<Job, Skipped> job() {
    if (const std::string* skip = setting("skip")) return Skipped{*skip};
    if (!run_.number("measured_gib")) return Skipped{"no figure was published"};
    api::TrainingJobSpec spec;
    if (!read_training(spec)) return Skipped{reason_};
    if (!read_model(spec)) return Skipped{reason_};
    Result<Workload> workload = estimator::workload_from(spec);
    if (!workload) return Skipped{workload.error().message};
    Job job{std::move(*workload), {}, metric(), stage()};
    if (!read_layout(spec, job)) return Skipped{reason_};
    return job;
  }

 private:
  [[nodiscard]] const std::string* setting(std::string_view key) const {
    const auto it = settings_.find(key);
    return it == settings_.end() ? nullptr : &it->second;
  }
  [[nodiscard]] bool flag(std::string_view key) const {
    const std::string* value = setting(key);
    return value != nullptr && *value == "true";
  }
  void override_flag(std::string_view key, bool& out) const {
    if (setting(key) != nullptr) out = flag(key);
  }
  template <class T>
  void choose(std::string_view key, std::optional<T>& out) const {
    if (const std::string* value = setting(key)) out = api::value_named<T>(*value);
  }
  [[nodiscard]] std::optional<std::int64_t> count(std::string_view key, std::string_view column) const {
    std::optional<double> value = run_.number(column);
    if (const std::string* set = setting(key)) value = std::strtod(set->c_str(), nullptr);
    if (!value || *value < 1) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  }
  bool fail(const char* reason) {
    reason_ = reason;
    return false;
  }

  bool read_training(api::TrainingJobSpec& spec) {
    api::TrainingSpec& t = spec.training;
    choose("framework", t.framework);
    choose("method", t.method);
    choose("precision", t.precision);
    choose("optimizer", t.optimizer);
    choose("attention", t.attention);
    choose("loss", t.loss);
    choose("recompute", t.activationCheckpointing);
    t.checkpointEvery = count("checkpoint_every", "");
    t.compile = flag("compile");
    t.optimizerInBackward = flag("optimizer_in_backward");
    if (!t.method) return fail("the method is not known");
    t.sequenceLength = count("sequence", "seq_len");
    t.microBatchSize = count("micro_batch", "micro_batch");
    if (!t.sequenceLength) return fail("the tokens of a sequence are not stated");
    if (!t.microBatchSize) return fail("the micro-batch is not stated");
    if (*t.method == api::Method::Lora || *t.method == api::Method::QLora) read_adapters(t);
    return true;
  }

  void read_adapters(api::TrainingSpec& t) const {
    api::LoraSpec lora;
    lora.rank = count("", "lora_rank");
    choose("quantization", lora.quantization);
    if (*t.method != api::Method::QLora) lora.quantization.reset();
    if (flag("train_embeddings")) lora.trainEmbeddings = true;
    if (flag("dora")) lora.dora = true;
    if (const std::string* upcast = setting("upcast"); upcast != nullptr && *t.method == api::Method::QLora) {
      lora.upcast = *upcast == "true";
    }
    const std::string* set = setting("targets");
    std::string targets = set != nullptr ? *set : run_.text("lora_targets");
    std::string name;
    for (const char c : targets + ",") {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
        name += c;
        continue;
      }
      if (name == "q" || name == "k" || name == "v" || name == "o" || name == "gate" || name == "up" ||
          name == "down") {
        lora.targets.push_back(name);
      }
      name.clear();
      if (c != ',') break;
    }
    t.lora = std::move(lora);
  }

  /// By name when the table has it, else by the columns of the shape.
  bool read_model(api::TrainingJobSpec& spec) {
    const std::string* preset = setting("preset");
    std::string name = preset != nullptr ? *preset : run_.text("model");
    // "Mixtral-8x7B (bf16)": what stands in brackets is no part of the name.
    name.resize(std::min(name.size(), name.find('(')));
    name.resize(name.find_last_not_of(' ') + 1);
    if (estimator::model_from_preset(name)) {
      spec.model.preset = name;
      return true;
    }
    api::ArchitectureSpec a;
    a.layers = count("", "layers");
    a.hidden = count("", "hidden");
    a.heads = count("", "heads");
    a.kvHeads = count("", "kv_heads");
    a.ffn = count("", "ffn");
    a.vocab = count("", "vocab");
    if (run_.lowered("tied_embeddings") == "yes") a.tiedEmbeddings = true;
    a.experts = count("experts", "");
    a.topK = count("top_k", "");
    a.sharedExperts = count("shared_experts", "");
    if (!a.layers || !a.hidden || !a.heads || !a.vocab || !a.ffn) return fail("the model's shape is not stated");
    const std::optional<double> total = run_.number("params_total");
    const std::optional<double> active = run_.number("params_active");
    const bool sparse = run_.lowered("category") == "moe" || (total && active && *active < 0.9 * *total);
    if (sparse && !a.experts) return fail("a mixture of experts that is in no table");
    spec.model.architecture = a;
    if (run_.lowered("ffn").find("non-gated") != std::string::npos) {
      spec.model.architecture->gatedMlp = false;
      return true;
    }
    if (!total) return true;
    // Whether the MLP has a gate is told by the total count.
    const auto miss = [&](bool gated) {
      api::ArchitectureSpec one = a;
      one.gatedMlp = gated;
      const Result<estimator::Model> model = estimator::model_from_architecture(one);
      return model ? std::abs(estimator::count_parameters(*model).total / *total - 1) : 1e9;
    };
    spec.model.architecture->gatedMlp = miss(true) <= miss(false);
    const double error = std::min(miss(true), miss(false));
    if (error > 0.12) return fail("the columns of the shape do not give the stated count of parameters");
    return true;
  }

  bool read_layout(const api::TrainingJobSpec& spec, Job& job) {
    Layout& l = job.layout;
    l.tensor = count("", "tp").value_or(1);
    l.pipeline = count("", "pp").value_or(1);
    l.context = count("", "cp").value_or(1);
    l.expert = count("", "ep").value_or(1);
    const std::int64_t split = l.tensor * l.pipeline * l.context;
    const std::int64_t model = split * estimator::dense_copies(job.workload, l);
    const std::optional<std::int64_t> gpus = count("", "num_gpus");
    const std::int64_t least = std::max(count("least_gpus", "").value_or(1), split * l.expert);
    l.data = std::max<std::int64_t>(1, gpus.value_or(count("", "dp") ? *count("", "dp") * model : least) / model);
    l.gpus = l.data * model;
    l.micro_batch = *spec.training.microBatchSize;
    if (const std::string* sharding = setting("sharding")) {
      l.sharding = api::value_named<estimator::Sharding>(*sharding).value_or(estimator::Sharding::None);
    }
    if (const std::string* offload = setting("offload")) {
      l.offload = api::value_named<estimator::Offload>(*offload).value_or(estimator::Offload::None);
    }
    l.recompute = spec.training.activationCheckpointing.value_or(estimator::Recompute::None);
    if (const std::string* stages = setting("virtual_stages"); stages != nullptr && l.pipeline > 1) {
      const std::int64_t most = std::max<std::int64_t>(1, job.workload.model.layers / l.pipeline);
      l.virtual_stages = *stages == "layers" ? most : std::min<std::int64_t>(most, std::atoll(stages->c_str()));
    }
    estimator::Recipe& recipe = job.workload.recipe;
    override_flag("sequence_parallel", recipe.sequence_parallel);
    override_flag("vocabulary_parallel", recipe.vocabulary_parallel);
    override_flag("gradients_persist", recipe.gradients_persist);
    if (const auto bytes = count("adapter_bytes", "")) recipe.adapter_bytes = static_cast<double>(*bytes);
    if (const auto bytes = count("moment_bytes", "")) {
      recipe.states[static_cast<std::size_t>(job.workload.precision)].moment = static_cast<double>(*bytes);
    }
    if (flag("low_precision_logits")) job.workload.model.low_precision_logits = true;
    job.workload.expandable_segments = flag("expandable_segments");
    const std::optional<std::int64_t> steps = count("micro_batches", "");
    // A pipeline is always kept full.
    const std::int64_t accumulated = steps ? *steps : l.pipeline > 1 ? 4 * l.pipeline : 1;
    job.workload.global_batch = accumulated * l.micro_batch * l.data;
    return true;
  }

  [[nodiscard]] std::optional<estimator::Stage> stage() const {
    const std::string* stage = setting("stage");
    if (stage == nullptr) return std::nullopt;
    return *stage == "last" ? estimator::Stage::Last : estimator::Stage::First;
  }

  [[nodiscard]] Metric metric() const {
    const std::string metric = run_.lowered("metric_class");
    if (metric == "nvidia-smi") return Metric::OnCard;
    return metric == "reserved" ? Metric::Reserved : Metric::Allocated;
  }

  const Run& run_;
  const Settings& settings_;
  std::string reason_;
};

std::map<std::string, std::vector<std::string>> conditions_of(const YAML::Node& node) {
  std::map<std::string, std::vector<std::string>> out;
  if (!node) return out;
  for (const auto& entry : node) out[entry.first.as<std::string>()] = entry.second.as<std::vector<std::string>>();
  return out;
}

bool any(const std::string& /*text*/) { return true; }
bool is_flag(const std::string& text) { return text == "true" || text == "false"; }
bool is_number(const std::string& text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }
bool is_stage(const std::string& text) { return text == "first" || text == "last"; }
bool is_stages(const std::string& text) { return text == "layers" || is_number(text); }
template <class T>
bool is_one_of(const std::string& text) {
  return api::value_named<T>(text).has_value();
}

/// What can be set, and what to: a slip of the pen in a rule would leave runs read wrongly without a word.
bool can_be_set(const std::string& key, const std::string& value) {
  static const std::map<std::string, bool (*)(const std::string&), std::less<>> kSettings{
      {"skip", any},
      {"preset", any},
      {"targets", any},
      {"framework", is_one_of<api::Framework>},
      {"method", is_one_of<api::Method>},
      {"precision", is_one_of<api::Precision>},
      {"optimizer", is_one_of<api::Optimizer>},
      {"sharding", is_one_of<estimator::Sharding>},
      {"offload", is_one_of<estimator::Offload>},
      {"attention", is_one_of<api::Attention>},
      {"recompute", is_one_of<estimator::Recompute>},
      {"loss", is_one_of<api::Loss>},
      {"quantization", is_one_of<api::Quantization>},
      {"compile", is_flag},
      {"dora", is_flag},
      {"upcast", is_flag},
      {"train_embeddings", is_flag},
      {"optimizer_in_backward", is_flag},
      {"expandable_segments", is_flag},
      {"low_precision_logits", is_flag},
      {"sequence_parallel", is_flag},
      {"vocabulary_parallel", is_flag},
      {"gradients_persist", is_flag},
      {"adapter_bytes", is_number},
      {"moment_bytes", is_number},
      {"checkpoint_every", is_number},
      {"sequence", is_number},
      {"micro_batch", is_number},
      {"micro_batches", is_number},
      {"least_gpus", is_number},
      {"experts", is_number},
      {"top_k", is_number},
      {"shared_experts", is_number},
      {"virtual_stages", is_stages},
      {"stage", is_stage}};
  const auto it = kSettings.find(key);
  return it != kSettings.end() && it->second(value);
}

}  // namespace

Result<Readings> Readings::parse(std::string_view yaml) {
  Readings out;
  try {
    const YAML::Node root = YAML::Load(std::string(yaml));
    for (const YAML::Node& node : root["rules"]) {
      Rule rule{conditions_of(node["when"]), conditions_of(node["unless"]), {}};
      for (const auto& entry : node["set"]) {
        const auto key = entry.first.as<std::string>();
        const auto value = entry.second.as<std::string>();
        if (!can_be_set(key, value)) {
          return Error::make(Error::Code::Invalid, "readings: a rule sets " + key + " to \"" + value + "\"");
        }
        rule.set[key] = value;
      }
      out.rules_.push_back(std::move(rule));
    }
  } catch (const YAML::Exception& e) {
    return Error::make(Error::Code::Invalid, std::string("readings: ") + e.what());
  }
  return out;
}

const Readings& Readings::builtin() {
  static const Readings kReadings = [] {
    Result<Readings> parsed = parse(data::readings_yaml);
    // A unit test parses them; a program with broken rules must not score.
    if (!parsed) std::abort();
    return std::move(*parsed);
  }();
  return kReadings;
}

Settings Readings::settings(const Run& run) const {
  Settings out;
  for (const Rule& rule : rules_) {
    if (!matches(run, rule.when) || (!rule.unless.empty() && matches(run, rule.unless))) continue;
    for (const auto& [key, value] : rule.set) out.insert_or_assign(key, value);
  }
  return out;
}

std::variant<Job, Skipped> Readings::read(const Run& run) const {
  const Settings found = settings(run);
  return Reader(run, found).job();
}

}  // namespace loadline::score
