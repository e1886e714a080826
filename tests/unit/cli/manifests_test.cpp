#include "cli/manifests.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace loadline::cli {
namespace {

namespace fs = std::filesystem;

class Manifests : public testing::Test {
 protected:
  Manifests() : folder_(fs::path(testing::TempDir()) / ("manifests-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~Manifests() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static Result<std::vector<Manifest>> read(const std::vector<std::string>& paths, const std::string& input = "") {
    std::istringstream stream(input);
    return read_manifests(paths, stream);
  }

  fs::path folder_;
};

TEST_F(Manifests, ReadsADirectoryInTheOrderOfNamesAndOnlyItsManifests) {
  write("b.yaml", "kind: B\n");
  write("a.json", R"({"kind": "A"})");
  write("notes.txt", "kind: [");
  const auto found = read({folder_});
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(0).object.at("kind"), "A");
  EXPECT_EQ(found->at(1).source, (folder_ / "b.yaml").string());
}

TEST_F(Manifests, ReadsStandardInputAndOpensLists) {
  const auto found = read({"-"}, "kind: List\nitems:\n- kind: A\n- kind: GPUPoolList\n  items: [{kind: GPUPool}]\n");
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ(found->at(1).object.at("kind"), "GPUPool");
}

TEST_F(Manifests, NamesTheFileThatIsMissingOrWrong) {
  EXPECT_EQ(read({"/no/such/file.yaml"}).error().message, "/no/such/file.yaml: cannot be opened");
  const std::string scalar = write("s.yaml", "just words\n");
  EXPECT_EQ(read({scalar}).error().message, scalar + ": not a Kubernetes object");
  const std::string bare = write("k.yaml", "metadata: {name: x}\n");
  EXPECT_EQ(read({bare}).error().message, bare + ": kind: Required value: which kind of object this is");
}

TEST_F(Manifests, RefusesAFileThatIsTooLarge) {
  const std::string big = write("big.yaml", std::string(9u << 20, '#'));
  EXPECT_EQ(read({big}).error().message, big + ": larger than 8 MiB");
}

}  // namespace
}  // namespace loadline::cli
