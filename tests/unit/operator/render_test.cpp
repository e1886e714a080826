#include "operator/render.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "api/codec.h"
#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

void emit(YAML::Emitter& out, const json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, child] : value.items()) {
      out << YAML::Key << key << YAML::Value;
      emit(out, child);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const json& child : value) emit(out, child);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    const auto text = value.get<std::string>();
    if (text.find('\n') != std::string::npos) {
      out << YAML::Literal << text;
    } else {
      out << YAML::DoubleQuoted << text;
    }
  } else {
    out << value.dump();
  }
}

void expect_golden(const std::string& name, const json& object) {
  YAML::Emitter out;
  emit(out, object);
  const std::string text = std::string(out.c_str()) + "\n";
  const std::string path = std::string(LOADLINE_SOURCE_DIR) + "/tests/data/golden/operator/" + name;
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream stream(path, std::ios::binary);
  ASSERT_TRUE(stream) << path << " is missing; LOADLINE_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(text, std::string((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>())) << path;
}

/// Two nodes of EFA machines, second attempt, in a zone.
struct Fixture {
  Fixture() {
    auto parsed = api::parse_training_job(llama(), api::UnknownFields::Reject);
    EXPECT_TRUE(parsed) << (parsed ? "" : parsed.error().message);
    if (parsed) job = *std::move(parsed);
    job.metadata.uid = "11111111-2222-3333-4444-555555555555";
    api::LayoutStatus layout;
    layout.gpus = 16;
    layout.nodes = 2;
    layout.gpusPerNode = 8;
    layout.data = 16;
    layout.sharding = api::Sharding::Zero3;
    layout.microBatchSize = 2;
    layout.gradientAccumulation = 2;
    layout.activationCheckpointing = api::ActivationCheckpointing::Full;
    layout.text = "ZeRO-3 over 16, micro-batch 2, full recompute";
    job.status.placement.emplace();
    job.status.placement->pool = "eks-p5";
    job.status.placement->zone = "us-east-1a";
    job.status.placement->gpu = "NVIDIA-H100-80GB-HBM3";
    job.status.placement->layout = layout;
    job.status.checkpoint.emplace();
    job.status.checkpoint->claim = "llama-checkpoint";
    job.status.checkpoint->checkpointMiB = 105'000;
    job.status.checkpoint->intervalSeconds = 840;
    attempt.number = 2;
    attempt.pool = "eks-p5";
    pool.name = "eks-p5";
    pool.node_selector = {{"eks.amazonaws.com/nodegroup", "p5"}};
    pool.extra_resources = {{"vpc.amazonaws.com/efa", 32}};
    pool.write_mib_per_s = 2000;
    api::Toleration toleration;
    toleration.key = "nvidia.com/gpu";
    toleration.op = "Exists";
    toleration.effect = "NoSchedule";
    pool.tolerations = {toleration};
  }
  [[nodiscard]] Rendering rendering() const { return {job, job.status, attempt, pool}; }

  api::TrainingJob job;
  api::AttemptStatus attempt;
  placement::Pool pool;
};

TEST(Rendering, OfAJobIsAsReviewed) { expect_golden("job.yaml", render_job(Fixture().rendering())); }
TEST(Rendering, OfAServiceIsAsReviewed) { expect_golden("service.yaml", render_service(Fixture().rendering())); }
TEST(Rendering, OfAPlanIsAsReviewed) { expect_golden("plan.yaml", render_plan_config(Fixture().rendering())); }

TEST(Rendering, TellsAccelerateToShardInsideGroupsWhenTheLayoutDoes) {
  Fixture f;
  f.job.status.placement->layout->replicate = 2;
  const auto accelerate = render_plan_config(f.rendering())["data"]["accelerate.yaml"].get<std::string>();
  EXPECT_NE(accelerate.find("fsdp_sharding_strategy: HYBRID_SHARD\n"), std::string::npos) << accelerate;
}

TEST(Rendering, OfAClaimIsAsReviewed) {
  const Fixture f;
  placement::CheckpointPlan plan;
  plan.claim = "llama-checkpoint";
  plan.bytes = 345 * kGiB - 17;
  plan.access_modes = {"ReadWriteMany"};
  plan.storage_class = "fast-rwx";
  expect_golden("claim.yaml", render_claim(f.job, plan));
}

TEST(Rendering, KeepsAnAbsentStorageClassAbsentAndAnEmptyOneEmpty) {
  const Fixture f;
  placement::CheckpointPlan plan;
  plan.claim = "c";
  EXPECT_FALSE(render_claim(f.job, plan)["spec"].contains("storageClassName"));
  plan.storage_class = "";
  EXPECT_EQ(render_claim(f.job, plan)["spec"]["storageClassName"], "");
}

TEST(Rendering, GivesTheClaimNoOwnerAndAllOtherChildrenOne) {
  const Fixture f;
  placement::CheckpointPlan plan;
  EXPECT_FALSE(render_claim(f.job, plan)["metadata"].contains("ownerReferences"));
  for (const json& child :
       {render_job(f.rendering()), render_service(f.rendering()), render_plan_config(f.rendering())}) {
    EXPECT_EQ(child["metadata"]["ownerReferences"][0]["uid"], f.job.metadata.uid);
    EXPECT_EQ(child["metadata"]["namespace"], f.job.metadata.namespaceName) << "owners reach no other namespace";
  }
}

TEST(Rendering, LetsTheUsersEnvironmentWinAndReportsIt) {
  const Fixture f;
  const json job = render_job(f.rendering());
  const json& env = job["spec"]["template"]["spec"]["containers"][0]["env"];
  int ports = 0;
  for (const json& entry : env) {
    if (entry["name"] != "MASTER_PORT") continue;
    ++ports;
    EXPECT_EQ(entry["value"], "1234");
  }
  EXPECT_EQ(ports, 1);
  EXPECT_EQ(user_environment(f.rendering()), std::vector<std::string>{"MASTER_PORT"});
  EXPECT_EQ(plan_file(f.rendering())["environmentKeptFromTemplate"], json::array({"MASTER_PORT"}));
}

TEST(Rendering, HasNothingToResumeFromOnAFirstAttemptWithAFreshVolume) {
  Fixture f;
  const auto resume_from = [&] {
    for (const json& entry : environment(f.rendering())) {
      if (entry["name"] == "LOADLINE_RESUME_FROM") return entry["value"].get<std::string>();
    }
    return std::string("absent");
  };
  EXPECT_EQ(resume_from(), "/checkpoints");
  f.attempt.number = 1;
  EXPECT_EQ(resume_from(), "");
  f.job.spec.checkpoint->volume.emplace();
  f.job.spec.checkpoint->volume->claimName = "from-last-week";
  EXPECT_EQ(resume_from(), "/checkpoints");
}

TEST(Rendering, KeepsTheGangOffNodesThatRefusedIt) {
  const Fixture f;
  Rendering r{f.job, f.job.status, f.attempt, f.pool, {"bad-node"}};
  const json job = render_job(r);
  const json& terms = job["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
                         ["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"];
  ASSERT_EQ(terms.size(), 1U);
  EXPECT_EQ(terms[0]["matchExpressions"][0]["values"], json::array({"bad-node"}));
}

TEST(Rendering, AsksForThePoolsGpusWhateverTheTemplateWasWrittenFor) {
  Fixture f;
  f.pool.resource = "amd.com/gpu";
  f.job.spec.podTemplate["spec"]["containers"][0]["resources"] = {
      {"requests", {{"cpu", "8"}}}, {"limits", {{"nvidia.com/gpu", "4"}, {"nvidia.com/mig-1g.10gb", "1"}}}};
  const json job = render_job(f.rendering());
  const json& trainer = job["spec"]["template"]["spec"]["containers"][0];
  const json wanted = {{"amd.com/gpu", "8"}, {"vpc.amazonaws.com/efa", "32"}};
  EXPECT_EQ(trainer["resources"]["limits"], wanted);
  EXPECT_EQ(trainer["resources"]["requests"]["amd.com/gpu"], "8");
  EXPECT_EQ(trainer["resources"]["requests"]["cpu"], "8");
}

TEST(Rendering, KeepsWhatTheTemplateSaysOfGraceAndSelectors) {
  Fixture f;
  f.job.spec.podTemplate["spec"]["terminationGracePeriodSeconds"] = 17;
  f.job.spec.podTemplate["spec"]["nodeSelector"] = {{"disk", "fast"}};
  const json job = render_job(f.rendering());
  const json& pod = job["spec"]["template"]["spec"];
  EXPECT_EQ(pod["terminationGracePeriodSeconds"], 17);
  EXPECT_EQ(pod["nodeSelector"]["disk"], "fast");
  EXPECT_EQ(pod["nodeSelector"]["eks.amazonaws.com/nodegroup"], "p5");
}

}  // namespace
}  // namespace loadline::controller
