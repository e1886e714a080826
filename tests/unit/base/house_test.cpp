// The rules of the house, which no compiler checks: include arrows between folders point down only, the HTTP client
// library stays behind its transport, and every header says what it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace loadline {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

// What each folder may include beside itself.
const std::map<std::string, std::set<std::string>>& arrows() {
  static const std::map<std::string, std::set<std::string>> allowed{
      {"base", {}},
      {"kube", {"base"}},
      {"api", {"base"}},
      {"estimator", {"base", "api"}},
      {"placement", {"base", "api", "estimator"}},
      {"serve", {"base"}},
      {"webhook", {"base", "kube", "api", "estimator", "placement", "serve"}},
      {"operator", {"base", "kube", "api", "estimator", "placement", "serve"}},
      {"cli", {"base", "kube", "api", "estimator", "placement"}},
      {"score", {"base", "api", "estimator"}}};
  return allowed;
}

struct Include {
  std::string file, path;
};

std::vector<std::string> lines_of(const fs::path& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<fs::path> sources_in(const std::string& folder) {
  std::vector<fs::path> files;
  const fs::path root = fs::path(LOADLINE_SOURCE_DIR) / folder;
  if (!fs::exists(root)) return files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const auto extension = entry.path().extension();
    if (extension == ".h" || extension == ".cpp") files.push_back(entry.path());
  }
  return files;
}

std::string from_root(const fs::path& path) { return fs::relative(path, LOADLINE_SOURCE_DIR).string(); }

std::vector<Include> includes_in(const std::string& folder) {
  static const std::regex pattern(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
  std::vector<Include> out;
  for (const fs::path& path : sources_in(folder)) {
    for (const std::string& line : lines_of(path)) {
      std::smatch match;
      if (std::regex_search(line, match, pattern)) out.push_back({from_root(path), match[1]});
    }
  }
  return out;
}

// The folder an include names; empty for a library's header.
std::string folder_of(const std::string& include) {
  const std::string first = include.substr(0, include.find('/'));
  return arrows().contains(first) && include.find('/') != std::string::npos ? first : "";
}

std::vector<std::string> broken_arrows(const std::string& folder, const std::vector<Include>& includes) {
  std::vector<std::string> out;
  for (const Include& include : includes) {
    const std::string target = folder_of(include.path);
    if (target.empty() || target == folder || arrows().at(folder).contains(target)) continue;
    out.push_back(include.file + " includes " + include.path);
  }
  return out;
}

TEST(House, HasNoFolderThatIncludesAHigherOne) {
  for (const auto& [folder, allowed] : arrows()) EXPECT_THAT(broken_arrows(folder, includes_in(folder)), IsEmpty());
}

TEST(House, TellsAnArrowThatPointsUp) {
  EXPECT_THAT(broken_arrows("placement", {{"placement/a.cpp", "base/text.h"},
                                          {"placement/a.cpp", "placement/plan.h"},
                                          {"placement/a.cpp", "kube/client.h"},
                                          {"placement/a.cpp", "operator/decide.h"},
                                          {"placement/a.cpp", "vector"}}),
              ElementsAre("placement/a.cpp includes kube/client.h", "placement/a.cpp includes operator/decide.h"));
}

TEST(House, ListsEveryFolderThatHasSources) {
  const fs::path root(LOADLINE_SOURCE_DIR);
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory() || name == "tests" || name == "build" || !fs::exists(entry.path() / "CMakeLists.txt"))
      continue;
    EXPECT_TRUE(arrows().contains(name)) << name << "/ has no arrows";
  }
}

TEST(House, KeepsTheHttpClientLibraryBehindItsTransport) {
  std::set<std::string> users;
  for (const auto& [folder, allowed] : arrows()) {
    for (const Include& include : includes_in(folder)) {
      if (include.path.starts_with("cpprest/") || include.path.starts_with("pplx/")) users.insert(include.file);
    }
  }
  EXPECT_LE(users.size(), 2U) << testing::PrintToString(users);
  for (const std::string& file : users) {
    EXPECT_TRUE(file.starts_with("kube/") && file.ends_with(".cpp")) << file;
  }
}

TEST(House, HasHeadersThatSayWhatTheyAre) {
  for (const auto& [folder, allowed] : arrows()) {
    for (const fs::path& path : sources_in(folder)) {
      if (path.extension() != ".h") continue;
      const auto lines = lines_of(path);
      ASSERT_FALSE(lines.empty()) << path;
      EXPECT_TRUE(lines.front().starts_with("// ")) << from_root(path) << " has no opening comment";
      EXPECT_NE(std::find(lines.begin(), lines.end(), "#pragma once"), lines.end()) << from_root(path);
    }
  }
}

}  // namespace
}  // namespace loadline
