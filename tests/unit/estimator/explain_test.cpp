#include "estimator/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "arithmetic.h"
#include "base/text.h"
#include "estimator/checkpoint_size.h"
#include "workload_builder.h"

namespace loadline::estimator {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Job {
  std::string name;
  Workload workload;
  Layout layout;
};

Job full_8b_on_8() {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.training.framework = api::Framework::Generic;
  spec.training.precision = api::Precision::Bf16Mixed;
  spec.training.sequenceLength = 8192;
  spec.training.microBatchSize = 2;
  spec.training.globalBatchSize = 128;
  return {"8b-full-sft-zero3-8x80", resolved(spec), zero(Sharding::Zero3, 8, 2)};
}

Job qlora_7b_on_24gb() {
  api::TrainingJobSpec spec = spec_of("mistral-7b-v0.3");
  spec.training.method = api::Method::QLora;
  spec.training.lora = api::LoraSpec{16, {"q", "k", "v", "o"}};
  spec.training.sequenceLength = 2048;
  spec.training.microBatchSize = 4;
  spec.training.globalBatchSize = 16;
  return {"7b-qlora-24gb", resolved(spec), one_gpu(4)};
}

Job lora_70b_on_8() {
  api::TrainingJobSpec spec = spec_of("llama-3.1-70b");
  spec.training.method = api::Method::Lora;
  spec.training.lora = api::LoraSpec{16, {}};
  spec.training.globalBatchSize = 64;
  spec.training.microBatchSize = 2;
  return {"70b-lora-8x80", resolved(spec), zero(Sharding::Zero3, 8, 2)};
}

/// Encoders, towers and recurrences, under each kind of recompute.
std::vector<Job> jobs_of_several_stacks() {
  std::vector<Job> out;
  const auto add = [&](const char* preset, std::int64_t sequence, api::Attention attention, Layout layout) {
    api::TrainingJobSpec spec = spec_of(preset);
    spec.training.sequenceLength = sequence;
    spec.training.attention = attention;
    out.push_back({std::string(preset) + "-" + std::string(api::name_of(layout.recompute)), resolved(spec), layout});
  };
  for (const Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
    Layout two = zero(Sharding::Zero3, 2, 8);
    two.recompute = recompute;
    add("whisper-large-v3", 448, api::Attention::Flash, two);
    add("t5-v1_1-xl", 512, api::Attention::Eager, two);
    add("qwen2.5-vl-7b", 2048, api::Attention::Flash, two);
    add("bert-large", 512, api::Attention::Eager, two);
    add("jamba-v0.1", 4096, api::Attention::Eager, two);
    add("mamba-2.8b", 2048, api::Attention::Flash, two);
  }
  return out;
}

std::vector<Job> jobs_full_at_the_end() {
  const api::TrainingJobSpec spec = spec_full_at_the_end();
  api::TrainingJobSpec eager = spec;
  eager.training.attention = api::Attention::Eager;
  api::TrainingJobSpec every_fourth = spec;
  every_fourth.training.checkpointEvery = 4;
  every_fourth.training.sequenceLength = 512;
  api::TrainingJobSpec in_backward = spec_of("llama-3.1-8b");
  in_backward.training.optimizerInBackward = true;
  in_backward.training.globalBatchSize = 1;
  in_backward.training.sequenceLength = 128;
  api::TrainingJobSpec in_backward_of_64 = in_backward;
  in_backward_of_64.training.globalBatchSize = 64;
  api::TrainingJobSpec muon = spec;
  muon.training.optimizer = api::Optimizer::Muon;
  muon.training.sequenceLength = 128;
  return {{"eager-again", resolved(eager), one_gpu(1)},
          {"muon", resolved(muon), one_gpu(1)},
          {"every-fourth", resolved(every_fourth), one_gpu(1)},
          {"in-backward", resolved(in_backward), one_gpu(1)},
          {"in-backward-of-64", resolved(in_backward_of_64), zero(Sharding::Zero3, 64)}};
}

void PrintTo(const Job& job, std::ostream* out) { *out << job.name; }

/// Jobs that between them show every kind of line.
std::vector<Job> jobs() {
  std::vector<Job> out{full_8b_on_8(), qlora_7b_on_24gb(), lora_70b_on_8()};
  api::TrainingJobSpec megatron = spec_of("llama-3.1-70b");
  megatron.training.framework = api::Framework::Megatron;
  megatron.training.precision = api::Precision::Bf16Mixed;
  megatron.training.globalBatchSize = 64;
  Layout grid = zero(Sharding::Zero1, 4);
  grid.gpus = 64;
  grid.tensor = 8;
  grid.pipeline = 2;
  grid.recompute = Recompute::Selective;
  out.push_back({"megatron-grid", resolved(megatron), grid});

  api::TrainingJobSpec moe = spec_of("mixtral-8x7b");
  moe.training.framework = api::Framework::Generic;
  moe.training.attention = api::Attention::Eager;
  Layout experts = zero(Sharding::Zero2, 16);
  experts.expert = 8;
  experts.recompute = Recompute::None;
  out.push_back({"mixture", resolved(moe), experts});

  api::TrainingJobSpec dpo = spec_of("qwen2.5-7b");
  dpo.training.framework = api::Framework::DeepSpeed;
  dpo.training.precision = api::Precision::Bf16Mixed;
  dpo.training.objective = api::Objective::Dpo;
  dpo.training.optimizer = api::Optimizer::AdamW8bit;
  out.push_back({"dpo-zero3", resolved(dpo), zero(Sharding::Zero3, 8)});
  out.push_back({"dpo-one-gpu", resolved(dpo), one_gpu()});

  api::TrainingJobSpec ring = spec_of("llama-3.1-8b");
  ring.training.framework = api::Framework::TorchTitan;
  ring.training.precision = api::Precision::Bf16Mixed;
  ring.training.sequenceLength = 131072;
  ring.training.loss = api::Loss::Fused;
  Layout context = zero(Sharding::Zero3, 1);
  context.gpus = context.context = 8;
  out.push_back({"context-ring", resolved(ring), context});

  api::TrainingJobSpec qlora = spec_of("llama-3.1-70b");
  qlora.training.method = api::Method::QLora;
  out.push_back({"qlora-sharded", resolved(qlora), zero(Sharding::Zero3, 4)});
  api::TrainingJobSpec autocast = spec_of("gpt2-xl");
  autocast.training.precision = api::Precision::Bf16Mixed;
  autocast.training.sequenceLength = 1024;
  out.push_back({"autocast", resolved(autocast), zero(Sharding::None, 4)});
  for (Job& job : jobs_of_several_stacks()) out.push_back(std::move(job));
  for (Job& job : jobs_full_at_the_end()) out.push_back(std::move(job));
  return out;
}

struct Line {
  std::string name;
  std::string sum;
  double gib = 0;
};

/// "Weights    bf16 8.0303e9 x 2 B / 8      1.87 GiB" taken apart; nothing for other lines.
std::optional<Line> read_line(const std::string& text) {
  if (text.size() < 19 || text.rfind(" GiB") != text.size() - 4) return std::nullopt;
  const std::string head = text.substr(0, text.size() - 4);
  const std::size_t value_at = head.find_last_of(' ') + 1;
  Line line;
  line.name = head.substr(0, 18);
  line.name.erase(line.name.find_last_not_of(' ') + 1);
  line.sum = head.substr(18, value_at - 18);
  line.gib = std::strtod(head.c_str() + value_at, nullptr);
  return line;
}

class Explanation : public ::testing::TestWithParam<Job> {};

TEST_P(Explanation, LinesAddUpToThePrintedPeak) {
  const Job& job = GetParam();
  std::int64_t hundredths = 0;
  std::optional<std::int64_t> peak;
  for (const std::string& text : explain(job.workload, job.layout, estimate(job.workload, job.layout))) {
    const std::optional<Line> line = read_line(text);
    if (!line || text.rfind("Less", 0) == 0) continue;
    const std::int64_t value = std::llround(line->gib * 100);
    if (line->name == "Peak") {
      peak = value;
    } else {
      hundredths += value;
    }
  }
  ASSERT_TRUE(peak);
  EXPECT_EQ(hundredths, *peak);
  EXPECT_NEAR(static_cast<double>(*peak) / 100,
              as_gib(static_cast<double>(estimate(job.workload, job.layout).peak_bytes)), 0.0051);
}

TEST_P(Explanation, EveryLineCanBeRecomputedFromItsOwnNumbers) {
  const Job& job = GetParam();
  for (const std::string& text : explain(job.workload, job.layout, estimate(job.workload, job.layout))) {
    const std::optional<Line> line = read_line(text);
    if (!line || line->name == "Peak" || text.rfind("Less", 0) == 0) continue;
    const bool in_gib = line->sum.find("GiB") != std::string::npos;
    const double value = PocketCalculator(line->sum).result();
    // Counts are printed with five digits, results with two decimals.
    EXPECT_NEAR(in_gib ? value : as_gib(value), line->gib, 0.012 + 2e-4 * line->gib) << text;
  }
}

TEST_P(Explanation, SummaryPartsAddUpToTheFigureAtItsHead) {
  const Job& job = GetParam();
  const Estimate e = estimate(job.workload, job.layout);
  const std::string parts = parts_text(job.workload, e);
  std::int64_t tenths = 0;
  std::stringstream in(parts);
  std::string part;
  while (std::getline(in, part, ',')) tenths += std::llround(std::strtod(part.c_str() + part.rfind(' '), nullptr) * 10);
  EXPECT_THAT(summary(job.workload, job.layout, e),
              StartsWith("needs " + fixed(static_cast<double>(tenths) / 10, 1) + " GiB per GPU on "));
}

INSTANTIATE_TEST_SUITE_P(Jobs, Explanation, ::testing::ValuesIn(jobs()), [](const auto& test) {
  std::string name = test.param.name;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return name;
});

std::string golden_text(const Job& job) {
  const Estimate e = estimate(job.workload, job.layout);
  std::string text = summary(job.workload, job.layout, e) + "\n\n";
  text += join(explain(job.workload, job.layout, e), "\n") + "\n\n";
  text += "Assumed:\n" + join(assumptions(job.workload, job.layout), "\n") + "\n\n";
  text += "Checkpoint volume: " + checkpoint_volume_text(checkpoint_size(job.workload), 2) + "\n";
  return text;
}

/// LOADLINE_UPDATE_GOLDEN=1 writes the files anew; the diff is then reviewed like code.
void expect_golden(const Job& job) {
  const std::string path = std::string(LOADLINE_SOURCE_DIR) + "/tests/data/golden/sizing/" + job.name + ".txt";
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr)
    std::ofstream(path) << golden_text(job);  // NOLINT(concurrency-mt-unsafe)
  std::ifstream file(path);
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(golden_text(job), expected.str()) << path;
}

TEST(GoldenSizing, Full8BOnEightCards) { expect_golden(full_8b_on_8()); }
TEST(GoldenSizing, Qlora7BOnOne24GbCard) { expect_golden(qlora_7b_on_24gb()); }
TEST(GoldenSizing, Lora70BOnEightCards) { expect_golden(lora_70b_on_8()); }

TEST(Summary, SaysALowerBoundIsOne) {
  api::TrainingJobSpec spec = spec_of("llama-3.1-8b");
  spec.model = {};
  spec.model.parameters = 8.03e9;
  const Workload w = resolved(spec);
  const std::string text = summary(w, one_gpu(), estimate(w, one_gpu()));
  EXPECT_THAT(text, StartsWith("needs at least "));
  EXPECT_THAT(text, HasSubstr("lower bound"));
}

TEST(Assumptions, AreSaidOnceEach) {
  for (const Job& job : jobs()) {
    std::vector<std::string> said = assumptions(job.workload, job.layout);
    std::sort(said.begin(), said.end());
    EXPECT_EQ(std::adjacent_find(said.begin(), said.end()), said.end()) << job.name;
    EXPECT_FALSE(said.empty());
  }
}

TEST(Assumptions, NameTheGenericFrameworkAndMissingTowers) {
  const Job job = full_8b_on_8();
  EXPECT_THAT(assumptions(job.workload, job.layout), Contains(HasSubstr("framework is generic")));
  const Workload text_only = resolved(spec_of("kimi-k2.5"));
  EXPECT_THAT(assumptions(text_only, one_gpu()), Contains(HasSubstr("vision tower")));
}

TEST(CheckpointSize, IsEverythingNeededToResume) {
  const Job job = full_8b_on_8();
  const CheckpointSize size = checkpoint_size(job.workload);
  EXPECT_EQ(size.weights_bytes, 2 * 8'030'261'248);
  EXPECT_EQ(size.master_bytes, 4 * 8'030'261'248);
  EXPECT_EQ(size.optimizer_bytes, 8 * 8'030'261'248);
  EXPECT_EQ(size.total_bytes, 14 * 8'030'261'248);
  EXPECT_EQ(size.parts, "bf16 weights 15.0, fp32 master and Adam states 89.7");
}

TEST(CheckpointSize, OfAdaptersLeavesTheFrozenBaseOut) {
  const Workload w = qlora_7b_on_24gb().workload;
  EXPECT_EQ(checkpoint_size(w).total_bytes, static_cast<std::int64_t>(12 * w.adapters));
}

TEST(CheckpointVolume, HoldsTheKeptOnesTheOneInFlightAndATenthMore) {
  const CheckpointSize size = checkpoint_size(full_8b_on_8().workload);
  EXPECT_EQ(checkpoint_volume_bytes(size, 2), 346 * kGiB);
  EXPECT_THAT(checkpoint_volume_text(size, 2), StartsWith("346 GiB = 3 copies x 104.7 GiB ("));
  EXPECT_GT(checkpoint_volume_bytes(size, 3), checkpoint_volume_bytes(size, 2));
}

}  // namespace
}  // namespace loadline::estimator
