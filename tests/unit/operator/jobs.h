// Pools and jobs that the scenarios start from.
#pragma once

#include "tests/unit/operator/api_model.h"

namespace loadline::controller {

/// A GKE node of eight A100 80 GB; the labels are those the cloud and the GPU operator put on it.
inline json a100_labels(const std::string& pool, bool spot, const std::string& zone = "us-central1-a") {
  json labels = {{"cloud.google.com/gke-nodepool", pool}, {"node.kubernetes.io/instance-type", "a2-ultragpu-8g"},
                 {"topology.kubernetes.io/zone", zone},   {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"},
                 {"nvidia.com/gpu.memory", "81920"},      {"nvidia.com/gpu.count", "8"}};
  if (spot) labels["cloud.google.com/gke-spot"] = "true";
  return labels;
}

/// GPUPool of such nodes, with a price.
inline json a100_pool(const std::string& pool, bool spot, const std::string& price) {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "GPUPool"},
          {"metadata", {{"name", pool}}},
          {"spec",
           {{"nodeSelector", {{"cloud.google.com/gke-nodepool", pool}}},
            {"gpu",
             {{"product", "NVIDIA-A100-SXM4-80GB"},
              {"memoryMiBPerGPU", 81920},
              {"perNode", 8},
              {"interconnect", "nvswitch"}}},
            {"capacityType", spot ? "spot" : "on-demand"},
            {"price", {{"perGPUHour", price}, {"currency", "USD"}, {"asOf", "2026-11-28"}}},
            {"storage", {{"classes", json::array({"fast-rwx"})}, {"writeMiBps", 2500}}}}}};
}

/// Full fine-tuning of an 8B model on eight GPUs.
inline json llama(const std::string& name = "llama") {
  return {{"apiVersion", api::kApiVersion},
          {"kind", "TrainingJob"},
          {"metadata", {{"name", name}, {"namespace", "team"}}},
          {"spec",
           {{"model", {{"preset", "llama-3.1-8b"}}},
            {"training",
             {{"framework", "torchtitan"},
              {"method", "full"},
              {"precision", "bf16-mixed"},
              {"sequenceLength", 4096},
              {"globalBatchSize", 64},
              {"activationCheckpointing", "full"},
              {"loss", "chunked"},
              {"tokens", 1.0e9}}},
            {"gpus", {{"count", 8}}},
            {"checkpoint", {{"path", "/checkpoints"}}},
            {"restart", {{"backoff", "10s"}}},
            {"template",
             {{"metadata", {{"annotations", {{"team", "nlp"}}}}},
              {"spec",
               {{"containers", json::array({{{"name", "trainer"},
                                             {"image", "registry.example.com/train:1"},
                                             {"command", json::array({"torchrun", "train.py"})},
                                             {"env", json::array({{{"name", "MASTER_PORT"}, {"value", "1234"}}})},
                                             {"resources", {{"limits", {{"memory", "900Gi"}}}}}}})}}}}}}}};
}

/// A cheap spot pool and a dearer one, one node each, and the job.
inline World two_pools_and_a_job(const json& job = llama()) {
  World world;
  world.put(resources::kGPUPools, a100_pool("spot", true, "1.50"));
  world.put(resources::kGPUPools, a100_pool("steady", false, "2.40"));
  world.add_node("spot-0", a100_labels("spot", true));
  world.add_node("steady-0", a100_labels("steady", false));
  world.put(resources::kTrainingJobs, job);
  return world;
}

}  // namespace loadline::controller
