#include "score/reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/score/run_builder.h"

namespace loadline::score {
namespace {

using estimator::Recompute;
using estimator::Sharding;

Job job(const Columns& changed = {}) {
  std::variant<Job, Skipped> read = Readings::builtin().read(run(changed));
  if (const auto* skipped = std::get_if<Skipped>(&read)) {
    ADD_FAILURE() << skipped->reason;
    return {};
  }
  return std::get<Job>(std::move(read));
}

std::string why_left_out(const Columns& changed) {
  const std::variant<Job, Skipped> read = Readings::builtin().read(run(changed));
  const auto* skipped = std::get_if<Skipped>(&read);
  return skipped != nullptr ? skipped->reason : "";
}

TEST(Reading, TakesNumbersAndWordsOfARun) {
  const Job j = job();
  EXPECT_EQ(j.workload.model.name, "mistral-7b-v0.1");
  EXPECT_EQ(j.workload.method, estimator::Method::Lora);
  EXPECT_EQ(j.workload.lora.rank, 16);
  EXPECT_THAT(j.workload.lora.targets, testing::ElementsAre("q", "k", "v", "o"));
  EXPECT_EQ(j.workload.precision, estimator::Precision::Bf16);
  EXPECT_EQ(j.layout.recompute, Recompute::Full);
  EXPECT_EQ(j.layout.micro_batch, 4);
  EXPECT_EQ(j.metric, Metric::Allocated);
  EXPECT_FALSE(j.workload.expandable_segments) << "the allocator's default";
}

struct Words {
  Columns columns;
  Sharding sharding;
};

class ReadingOfSharding : public testing::TestWithParam<Words> {};

TEST_P(ReadingOfSharding, IsFoundInTheWordsOfTheSource) {
  Columns columns = GetParam().columns;
  columns["num_gpus"] = "8";
  EXPECT_EQ(job(columns).layout.sharding, GetParam().sharding);
  EXPECT_EQ(job(columns).layout.data, 8);
}

INSTANTIATE_TEST_SUITE_P(Words, ReadingOfSharding,
                         testing::Values(Words{{{"sharding", "fsdp1 full_shard, BACKWARD_PRE"}}, Sharding::Zero3},
                                         Words{{{"sharding", "fsdp2"}}, Sharding::Zero3},
                                         Words{{{"sharding", "zero2"}}, Sharding::Zero2},
                                         Words{{{"sharding", "distributed optimizer (zero1)"}}, Sharding::Zero1},
                                         Words{{{"sharding", "none (no distributed optimizer)"}}, Sharding::None},
                                         Words{{{"sharding", "ddp (fsdp no_shard)"}}, Sharding::None}));

TEST(Reading, ComparesCardReadingsWithTheFigureOfTheCard) {
  EXPECT_EQ(job({{"metric_class", "nvidia-smi"}}).metric, Metric::OnCard);
  EXPECT_EQ(job({{"metric_class", "reserved"}}).metric, Metric::Reserved);
  EXPECT_EQ(job({{"metric_class", "active"}}).metric, Metric::Allocated);
}

TEST(Reading, FindsTheGateOfAnUnknownModelInItsCount) {
  const Columns shape{{"model", "my own"}, {"layers", "32"}, {"hidden", "4096"}, {"heads", "32"},
                      {"kv_heads", "8"},   {"ffn", "14336"}, {"vocab", "32000"}, {"params_total", "7241732096"}};
  EXPECT_EQ(job(shape).workload.model.mlp_matrices, 3);
  Columns plain = shape;
  plain["params_total"] = "5362683904";
  EXPECT_EQ(job(plain).workload.model.mlp_matrices, 2);
  Columns wrong = shape;
  wrong["params_total"] = "3000000000";
  EXPECT_EQ(why_left_out(wrong), "the columns of the shape do not give the stated count of parameters");
}

TEST(Reading, SizesAMixtureOnlyWithItsExperts) {
  const Columns shape{{"category", "moe"}, {"model", "my own"}, {"layers", "2"}, {"hidden", "5120"},
                      {"heads", "40"},     {"kv_heads", "8"},   {"ffn", "8192"}, {"vocab", "202048"}};
  EXPECT_EQ(why_left_out(shape), "a mixture of experts that is in no table");
  Columns known = shape;
  known["model"] = "Llama-4 Scout 17Bx16E cut to 2 layers";
  const estimator::Experts& moe = job(known).workload.model.moe;
  EXPECT_EQ(moe.experts, 16);
  EXPECT_EQ(moe.expert_ffn, 8192);
  EXPECT_EQ(moe.shared_ffn, 8192);
}

TEST(Reading, LeavesOutWhatItCannotExpressAndSaysWhy) {
  EXPECT_EQ(why_left_out({{"seq_len", "not stated (2048 or 4096)"}}), "the tokens of a sequence are not stated");
  EXPECT_EQ(why_left_out({{"micro_batch", "unknown"}}), "the micro-batch is not stated");
  EXPECT_EQ(why_left_out({{"optimizer", "galore rank 1024"}}), "the optimizer is none of a TrainingJob's");
  EXPECT_EQ(why_left_out({{"model", "an unheard-of model"}}), "the model's shape is not stated");
  EXPECT_EQ(why_left_out({{"measured_gib", ""}}), "no figure was published");
}

TEST(Reading, MeasuresTheStageThatTheSourceMeasured) {
  EXPECT_FALSE(job().stage.has_value());
  EXPECT_EQ(job({{"metric", "allocated peak of the last rank"}}).stage, estimator::Stage::Last);
}

TEST(Readings, RefusesARuleThatSetsWhatNothingReads) {
  EXPECT_TRUE(Readings::parse("rules: [{when: {model: [x]}, set: {loss: fused}}]").ok());
  for (const char* set : {"los: fused", "loss: fussed", "compile: 'yes'", "sequence: 4k", "stage: middle"}) {
    const auto parsed = Readings::parse(std::string("rules: [{when: {model: [x]}, set: {") + set + "}}]");
    EXPECT_FALSE(parsed.ok()) << set;
  }
}

TEST(Readings, RefusesRulesThatAreNotYaml) { EXPECT_FALSE(Readings::parse("rules: [").ok()); }

}  // namespace
}  // namespace loadline::score
