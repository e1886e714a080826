#include "estimator/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/training_job.h"
#include "estimator/estimate.h"

namespace loadline::estimator {
namespace {

using testing::HasSubstr;

Workload workload(const std::string& preset, std::int64_t sequence, std::int64_t global_batch) {
  api::TrainingJobSpec spec;
  spec.model.preset = preset;
  spec.training.sequenceLength = sequence;
  spec.training.globalBatchSize = global_batch;
  return workload_from(spec).value();
}

Layout sharded(std::int64_t gpus, std::int64_t micro_batch, Recompute recompute = Recompute::None) {
  Layout layout;
  layout.gpus = gpus;
  layout.data = gpus;
  layout.sharding = Sharding::Zero3;
  layout.micro_batch = micro_batch;
  layout.recompute = recompute;
  return layout;
}

Machine machine(const char* product, std::optional<double> gbps = 3200) {
  const Gpu* gpu = find_gpu(product);
  return {gpu, gpu != nullptr ? gpu->link : api::Interconnect::Unknown, gbps};
}

constexpr const char* kH100 = "NVIDIA-H100-80GB-HBM3";
constexpr const char* kA100 = "NVIDIA-A100-SXM4-80GB";

// Published runs: llm-foundry's MPT 7B (Llama 2 7B has its size and shape) and torchtitan's
// Llama 3.1 8B. Their MFU counts attention without the causal discount, as ours does.
struct Published {
  const char* preset;
  const char* gpu;
  std::int64_t sequence, micro_batch;
  Recompute recompute;
  double mfu_percent, within_percent;
};

class PublishedRun : public testing::TestWithParam<Published> {};

TEST_P(PublishedRun, IsPredictedWithinTheStatedBand) {
  const Published& run = GetParam();
  const Workload w = workload(run.preset, run.sequence, 8 * run.micro_batch * 4);
  const auto time = step_time(w, sharded(8, run.micro_batch, run.recompute), machine(run.gpu));
  ASSERT_TRUE(time.ok());
  EXPECT_NEAR(100 * time->mfu, run.mfu_percent, run.mfu_percent * run.within_percent / 100) << step_time_text(*time);
}

INSTANTIATE_TEST_SUITE_P(Runs, PublishedRun,
                         testing::Values(Published{"llama-2-7b", kH100, 2048, 8, Recompute::None, 46.4, 15},
                                         Published{"llama-2-7b", kA100, 2048, 8, Recompute::None, 64.2, 15},
                                         Published{"llama-2-7b", kH100, 8192, 2, Recompute::Full, 37.1, 15},
                                         Published{"llama-2-7b", kH100, 32768, 1, Recompute::Full, 30.9, 15},
                                         Published{"llama-2-7b", "NVIDIA-A100-SXM4-40GB", 2048, 8, Recompute::Full,
                                                   50.9, 15},
                                         Published{"llama-3.1-8b", kH100, 8192, 1, Recompute::Selective, 39, 30}));

TEST(ModelFlops, AreSixPerMatrixParameterAndTwelveForAttention) {
  const Workload w = workload("llama-3.1-8b", 4096, 8);
  // 8.0303e9 parameters less the embedding of 128256 x 4096; 32 layers of 32 heads of 128.
  const double matrices = w.parameters.total - 128256.0 * 4096;
  EXPECT_NEAR(model_flops_per_token(w), 6 * matrices + 12.0 * 32 * 32 * 128 * 4096, 1e3);
}

TEST(ModelFlops, LeaveOutTheGradientsOfFrozenWeights) {
  const Workload full = workload("llama-3.1-8b", 1024, 8);
  const double share = model_flops_per_token(with_lora(full, 16)) / model_flops_per_token(full);
  EXPECT_GT(share, 0.66);
  EXPECT_LT(share, 0.72);
}

TEST(StepTime, IsTheSumOfItsParts) {
  Layout layout;
  layout.gpus = 32;
  layout.tensor = 4;
  layout.pipeline = 2;
  layout.data = 4;
  layout.sharding = Sharding::Zero1;
  const StepTime t = step_time(workload("llama-3.1-70b", 4096, 64), layout, machine(kH100)).value();
  EXPECT_DOUBLE_EQ(t.total, t.compute + t.tensor + t.context + t.expert + t.data + t.bubble + t.update);
  EXPECT_GT(t.tensor, 0);
  EXPECT_GT(t.bubble, 0);
  EXPECT_GT(t.data, 0);
  EXPECT_DOUBLE_EQ(t.tokens, 64.0 * 4096);
}

TEST(StepTime, RepeatsTheDensePartWhereAnExpertGroupSharesItsBatch) {
  Workload w = workload("mixtral-8x7b", 4096, 8);
  Layout own = sharded(8, 1);
  own.expert = 8;
  Layout shared = own;
  shared.data = 1;
  const StepTime apart = step_time(w, own, machine(kH100)).value();
  w.recipe.expert_group_shares_batch = true;
  w.global_batch = 1;
  const StepTime together = step_time(w, shared, machine(kH100)).value();
  EXPECT_DOUBLE_EQ(together.tokens, apart.tokens / 8);
  // Two of eight experts, all else eight times; 32 layers of 32 heads of 128, at 0.75 of the matmuls' rate.
  const double experts = w.parameters.experts * 2 / 8;
  const double dense = w.parameters.active - w.parameters.embedding - experts;
  const double attention = 2.0 * 32 * 32 * 128 * 4096 / 0.75;
  EXPECT_NEAR(together.compute / (apart.compute / 8),
              (experts + 8 * dense + 8 * attention) / (experts + dense + attention), 1e-9);
  EXPECT_LT(together.expert, apart.expert) << "outputs are added up, of one choice instead of two";
}

TEST(StepTime, ShardsAcrossNodesWhereAnExpertGroupFillsOne) {
  Workload w = workload("mixtral-8x7b", 4096, 2);
  w.recipe.expert_group_shares_batch = true;
  Layout layout = sharded(16, 1);
  layout.expert = 8;
  layout.data = 2;
  EXPECT_GT(step_time(w, layout, machine(kH100, 25))->data, 10 * step_time(w, layout, machine(kH100, 3200))->data);
}

TEST(StepTime, IsUnknownForAnUnknownGpuOrNetwork) {
  const Workload w = workload("llama-3.1-8b", 4096, 64);
  EXPECT_EQ(step_time(w, sharded(8, 1), machine("NVIDIA-New")).error().code, Error::Code::NotFound);
  EXPECT_THAT(step_time(w, sharded(16, 1), machine(kH100, std::nullopt)).error().message, HasSubstr("gbpsPerNode"));
  EXPECT_TRUE(step_time(w, sharded(8, 1), machine(kH100, std::nullopt)).ok()) << "one node needs no network";
}

TEST(StepTime, IsLongerOverPcieThanOverNvLink) {
  const Workload w = workload("llama-3.1-8b", 2048, 64);
  Machine slow = machine(kA100);
  slow.link = api::Interconnect::Pcie;
  Layout tensor = sharded(8, 1);
  tensor.tensor = 8;
  tensor.data = 1;
  tensor.sharding = Sharding::None;
  EXPECT_GT(step_time(w, tensor, slow)->tensor, 5 * step_time(w, tensor, machine(kA100))->tensor);
  slow.link = api::Interconnect::Unknown;
  EXPECT_GT(step_time(w, tensor, slow)->tensor, 5 * step_time(w, tensor, machine(kA100))->tensor)
      << "an unknown link is not taken for NVLink";
}

TEST(StepTime, ShrinksWithMoreGpusButNotByMoreThanTheirNumber) {
  const Workload w = workload("llama-3.1-8b", 4096, 256);
  const double one_node = step_time(w, sharded(8, 1), machine(kH100))->total;
  const double four_nodes = step_time(w, sharded(32, 1), machine(kH100))->total;
  EXPECT_LT(four_nodes, one_node);
  EXPECT_GE(four_nodes, one_node / 4);
}

TEST(StepTime, GrowsWhenTheNetworkIsSlow) {
  const Workload w = workload("llama-3.1-8b", 4096, 64);
  EXPECT_GT(step_time(w, sharded(32, 1), machine(kH100, 25))->total,
            2 * step_time(w, sharded(32, 1), machine(kH100, 3200))->total);
}

TEST(StepTime, SaysItsPartsInOneLine) {
  StepTime time;
  time.compute = 1.5;
  time.data = 0.3;
  time.update = 0.1;
  time.total = 1.9;
  time.mfu = 0.34;
  EXPECT_EQ(step_time_text(time), "1.90 s a step: compute 1.50, gradients and gathers 0.30, update 0.10; 34 % MFU");
}

}  // namespace
}  // namespace loadline::estimator
