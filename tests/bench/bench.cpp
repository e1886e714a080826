// What admission and reconciling spend on one job: parse, size, plan. A webhook call has 5 s in all and the API server
// waits for it, so these should stay in single milliseconds.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "api/codec.h"
#include "estimator/advice.h"
#include "estimator/workload.h"
#include "placement/facts.h"
#include "placement/inventory.h"
#include "placement/ledger.h"
#include "placement/plan.h"

namespace loadline {
namespace {

using nlohmann::json;

json job_json(const char* preset) {
  return {{"apiVersion", "loadline.dev/v1alpha1"},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", "bench"}, {"namespace", "default"}}},
          {"spec",
           {{"model", {{"preset", preset}}},
            {"training", {{"method", "full"}, {"sequenceLength", 4096}, {"globalBatchSize", 128}, {"tokens", 1e10}}},
            {"template", {{"spec", {{"containers", {{{"name", "trainer"}, {"image", "x"}}}}}}}}}}};
}

api::TrainingJob job_of(const char* preset) {
  return *api::parse_training_job(job_json(preset), api::UnknownFields::Reject);
}

constexpr std::int64_t kGpus = 64;

/// `pools` pools of eight nodes with eight GPUs each.
placement::Inventory inventory(int pools) {
  std::vector<placement::NodeFacts> nodes;
  for (int pool = 0; pool < pools; ++pool) {
    for (int node = 0; node < 8; ++node) {
      const std::string name = "pool-" + std::to_string(pool);
      nodes.push_back(placement::node_facts(
          {{"metadata",
            {{"name", name + "-" + std::to_string(node)},
             {"labels",
              {{"cloud.google.com/gke-nodepool", name},
               {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
               {"nvidia.com/gpu.memory", "81920"},
               {"nvidia.com/gpu.count", "8"},
               {"topology.kubernetes.io/zone", "z"}}}}},
           {"status",
            {{"allocatable", {{"nvidia.com/gpu", "8"}, {"cpu", "96"}, {"memory", "1Ti"}, {"pods", "110"}}},
             {"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}}));
    }
  }
  return placement::inventory_of({}, nodes, {}, TimePoint{});
}

void ParseJob(benchmark::State& state) {
  const json object = job_json("llama-3.1-8b");
  for (auto _ : state) benchmark::DoNotOptimize(api::parse_training_job(object, api::UnknownFields::Reject));
}
BENCHMARK(ParseJob)->Unit(benchmark::kMicrosecond);

void EstimateOneLayout(benchmark::State& state) {
  const auto workload = estimator::workload_from(job_of("llama-3.1-70b").spec);
  const estimator::Layout layout = estimator::sensible_layouts(*workload, kGpus, 8, {}).front();
  for (auto _ : state) benchmark::DoNotOptimize(estimator::estimate(*workload, layout));
}
BENCHMARK(EstimateOneLayout)->Unit(benchmark::kMicrosecond);

void EstimateAllLayouts(benchmark::State& state) {
  const auto workload = estimator::workload_from(job_of("llama-3.1-70b").spec);
  std::size_t layouts = 0;
  for (auto _ : state) {
    const auto all = estimator::sensible_layouts(*workload, kGpus, 8, {});
    for (const estimator::Layout& layout : all) benchmark::DoNotOptimize(estimator::estimate(*workload, layout));
    layouts = all.size();
  }
  state.counters["layouts"] = static_cast<double>(layouts);
}
BENCHMARK(EstimateAllLayouts)->Unit(benchmark::kMicrosecond);

/// Until the first layout that fits.
void SizeJob(benchmark::State& state) {
  const auto workload = estimator::workload_from(job_of("llama-3.1-70b").spec);
  const estimator::Capacity capacity{.usable_bytes = 78 * kGiB};
  for (auto _ : state) benchmark::DoNotOptimize(estimator::best_layout(*workload, state.range(0), {}, capacity));
}
BENCHMARK(SizeJob)->Arg(8)->Arg(64)->Arg(512)->Unit(benchmark::kMicrosecond);

void MakeInventory(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(inventory(static_cast<int>(state.range(0))));
}
BENCHMARK(MakeInventory)->Arg(10)->Arg(200)->Unit(benchmark::kMillisecond);

void PlanJob(benchmark::State& state) {
  api::TrainingJob job = job_of("llama-3.1-70b");
  job.spec.gpus.emplace().count = kGpus;
  const auto workload = estimator::workload_from(job.spec);
  const placement::Inventory pools = inventory(static_cast<int>(state.range(0)));
  const placement::Request request{job, *workload, {}, {}, {}, {}, {}, 0};
  for (auto _ : state) benchmark::DoNotOptimize(placement::plan(request, pools, {}, {}, TimePoint{}));
}
BENCHMARK(PlanJob)->Arg(1)->Arg(10)->Arg(200)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace loadline
