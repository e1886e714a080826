// Golden files: what users read, kept word for word. LOADLINE_UPDATE_GOLDEN=1 writes them anew; the
// diff is then reviewed like any other change.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace loadline::testing {

inline void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(LOADLINE_SOURCE_DIR) + "/tests/data/golden/cli/" + name;
  if (std::getenv("LOADLINE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream stream(path, std::ios::binary);
  ASSERT_TRUE(stream) << path << " is missing; LOADLINE_UPDATE_GOLDEN=1 writes it";
  const std::string wanted((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  EXPECT_EQ(text, wanted) << path;
}

}  // namespace loadline::testing
