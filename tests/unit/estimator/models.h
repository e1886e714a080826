// Models by name, and names that GoogleTest takes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <string>

#include "estimator/model.h"

namespace loadline::estimator {

inline Model preset(const char* name) {
  auto model = model_from_preset(name);
  EXPECT_TRUE(model.ok()) << name;
  return model.ok() ? *model : Model{};
}

/// For the name of a case: letters and digits stay.
inline std::string test_name(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace loadline::estimator
