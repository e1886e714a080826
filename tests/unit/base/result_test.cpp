// What a person reads of an error.
#include "base/result.h"

#include <gtest/gtest.h>

#include <string>

namespace loadline {
namespace {

TEST(FieldErrorText, ReadsAsKubectlPrintsIt) {
  using enum FieldError::Type;
  EXPECT_EQ(to_string(FieldError{Invalid, "spec.gpus.count", "-3", "must be at least 1"}),
            "spec.gpus.count: Invalid value: -3: must be at least 1");
  EXPECT_EQ(to_string(FieldError{Required, "spec.model", "", "must be given"}),
            "spec.model: Required value: must be given");
  EXPECT_EQ(to_string(FieldError{Forbidden, "spec.queueName", "", "cannot change"}),
            "spec.queueName: Forbidden: cannot change");
  EXPECT_EQ(to_string(FieldError{Duplicate, "spec.placement.pools[1]", "\"a\"", "is there already"}),
            "spec.placement.pools[1]: Duplicate value: \"a\": is there already");
  EXPECT_EQ(to_string(FieldError{NotSupported, "spec.launcher", "\"x\"", "supported values: \"none\""}),
            "spec.launcher: Unsupported value: \"x\": supported values: \"none\"");
  EXPECT_EQ(to_string(FieldError{TooLarge, "spec.gpus.count", "1e30", "must be at most 65536"}),
            "spec.gpus.count: Too large: 1e30: must be at most 65536");
}

TEST(ErrorOfAUser, ListsEveryCause) {
  const Error error =
      Error::invalid({{FieldError::Type::Invalid, "a", "1", "x"}, {FieldError::Type::Required, "b", "", "y"}});
  EXPECT_EQ(error.code, Error::Code::Invalid);
  EXPECT_EQ(error.message, "a: Invalid value: 1: x; b: Required value: y");
  EXPECT_EQ(error.fields.size(), 2U);
}

TEST(ResultOfACall, HoldsAValueOrAnError) {
  const Result<std::string> good = std::string("text");
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good->size(), 4U);
  const Result<std::string> bad = Error::make(Error::Code::NotFound, "no such thing");
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.error().message, "no such thing");
  EXPECT_TRUE(Status().ok());
  EXPECT_FALSE(Status(bad.error()).ok());
}

}  // namespace
}  // namespace loadline
