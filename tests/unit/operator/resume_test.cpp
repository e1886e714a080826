// What a trainer finds in LOADLINE_RESUME_FROM: the rendered command is run by real shells on a real directory.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "api/codec.h"
#include "operator/render.h"
#include "tests/process/command.h"
#include "tests/unit/operator/jobs.h"

namespace loadline::controller {
namespace {

namespace fs = std::filesystem;
using testing::CommandResult;

/// A second attempt on a directory of checkpoints.
class Resume : public ::testing::TestWithParam<const char*> {
 protected:
  Resume() {
    fs::remove_all(directory_);
    fs::create_directories(directory_);
    stored_["spec"]["checkpoint"]["path"] = directory_.string();
  }
  ~Resume() override { fs::remove_all(directory_); }

  json& trainer() { return stored_["spec"]["template"]["spec"]["containers"][0]; }

  /// A checkpoint whose marker is so many minutes old; without a marker while it is being written.
  void checkpoint(const std::string& name, std::optional<int> minutes, const std::string& marker = ".complete") const {
    fs::create_directories(directory_ / name);
    std::ofstream(directory_ / name / "weights") << "x";
    if (!minutes) return;
    std::ofstream(directory_ / name / marker) << "";
    const auto age = std::chrono::minutes(*minutes);
    fs::last_write_time(directory_ / name / marker, fs::file_time_type::clock::now() - age);
  }

  [[nodiscard]] json rendered() const {
    api::TrainingJob job = api::parse_training_job(stored_, api::UnknownFields::Reject).value();
    job.status.placement.emplace().layout.emplace().gpusPerNode = 8;
    job.status.checkpoint.emplace().claim = "llama-checkpoint";
    api::AttemptStatus attempt;
    attempt.number = 2;
    const placement::Pool pool;
    return render_job({job, job.status, attempt, pool})["spec"]["template"]["spec"]["containers"][0];
  }

  /// Runs the container as a kubelet would, with nothing on PATH, by the shell under test.
  [[nodiscard]] CommandResult run() const {
    const json container = rendered();
    std::vector<std::string> words{"/usr/bin/env", "-i", "PATH=/nowhere"};
    for (const json& variable : container["env"]) {
      if (!variable.contains("value")) continue;
      words.push_back(variable["name"].get<std::string>() + "=" + variable["value"].get<std::string>());
    }
    auto command = container["command"].get<std::vector<std::string>>();
    if (command.front() == "/bin/sh") command.front() = GetParam();
    words.insert(words.end(), command.begin(), command.end());
    for (const json& word : container.value("args", json::array())) words.push_back(word.get<std::string>());
    return testing::run_command(words);
  }
  /// What the trainer says LOADLINE_RESUME_FROM is, below the directory.
  [[nodiscard]] std::string resumes_from() {
    trainer()["command"] = {"/bin/sh", "-c", "printf %s \"$LOADLINE_RESUME_FROM\""};
    const CommandResult result = run();
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(result.error, "");
    return result.output.empty() ? "" : fs::relative(result.output, directory_).string();
  }

  const fs::path directory_ = fs::temp_directory_path() / ("loadline resume " + std::to_string(getpid()));
  json stored_ = llama();
};

TEST_P(Resume, FromTheNewestCompleteCheckpoint) {
  checkpoint("step-300", 30);
  checkpoint("step-1000", 10);
  checkpoint("step-900", 20);
  checkpoint("step-1100", std::nullopt);
  EXPECT_EQ(resumes_from(), "step-1000");
}

TEST_P(Resume, FromNothingWhenNoCheckpointIsComplete) {
  EXPECT_EQ(resumes_from(), "");
  checkpoint("step-100", std::nullopt);
  EXPECT_EQ(resumes_from(), "");
}

TEST_P(Resume, FromTheLaterNameWhenTheFileSystemTellsNoAge) {
  checkpoint("step-100", 10);
  checkpoint("step-200", 10);
  const auto age = fs::last_write_time(directory_ / "step-100" / ".complete");
  fs::last_write_time(directory_ / "step-200" / ".complete", age);
  EXPECT_EQ(resumes_from(), "step-200");
}

TEST_P(Resume, GoesByTheMarkerOfTheJob) {
  stored_["spec"]["checkpoint"]["completeMarker"] = ".metadata";
  checkpoint("ours", 5);
  checkpoint("theirs of last week", 10, ".metadata");
  EXPECT_EQ(resumes_from(), "theirs of last week");
}

TEST_P(Resume, IsNotFooledByOddNames) {
  checkpoint("step 1\n*", 10);
  checkpoint("$(exit 3)", 20);
  EXPECT_EQ(resumes_from(), "step 1\n*");
}

TEST_P(Resume, KeepsTheCommandItsArgumentsAndItsExitCode) {
  checkpoint("step-100", 10);
  trainer()["command"] = {"/bin/sh", "-c", "for word; do printf '<%s>' \"$word\"; done; exit 7", "name"};
  trainer()["args"] = {"--lr", "1e-4", "two words", "", "$HOME", "*"};
  const CommandResult result = run();
  EXPECT_EQ(result.output, "<--lr><1e-4><two words><><$HOME><*>");
  EXPECT_EQ(result.exit_code, 7);
}

TEST_P(Resume, LeavesTheTrainerAsTheProcessThatGetsTheSignals) {
  trainer()["command"] = {"/bin/sh", "-c", "kill -TERM $$"};
  EXPECT_EQ(run().exit_code, 128 + SIGTERM);
}

TEST_P(Resume, LeavesTheTrainersOwnVariablesAlone) {
  trainer()["env"].push_back({{"name", "marker"}, {"value", "mine"}});
  trainer()["env"].push_back({{"name", "newest"}, {"value", "too"}});
  checkpoint("step-100", 10);
  trainer()["command"] = {"/bin/sh", "-c", "printf %s \"$marker $newest\""};
  EXPECT_EQ(run().output, "mine too");
}

INSTANTIATE_TEST_SUITE_P(Shells, Resume, ::testing::Values("/bin/sh", "/bin/bash"),
                         [](const auto& shell) { return fs::path(shell.param).filename().string(); });

TEST(ResumeFrom, IsLeftToTheTrainerWithoutACommandOrWithItsOwnWord) {
  json stored = llama();
  const auto command = [&] {
    api::TrainingJob job = api::parse_training_job(stored, api::UnknownFields::Reject).value();
    job.status.placement.emplace().layout.emplace();
    job.status.checkpoint.emplace().claim = "llama-checkpoint";
    api::AttemptStatus attempt;
    attempt.number = 2;
    const placement::Pool pool;
    return render_job({job, job.status, attempt, pool})["spec"]["template"]["spec"]["containers"][0].value("command",
                                                                                                           json());
  };
  json& trainer = stored["spec"]["template"]["spec"]["containers"][0];
  EXPECT_EQ(command()[0], "/bin/sh");
  const json own = trainer["command"];
  trainer["env"].push_back({{"name", "LOADLINE_RESUME_FROM"}, {"value", "/elsewhere"}});
  EXPECT_EQ(command(), own);
  trainer.erase("env");
  trainer.erase("command");
  EXPECT_EQ(command(), json());
}

}  // namespace
}  // namespace loadline::controller
