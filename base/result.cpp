#include "base/result.h"

namespace loadline {
namespace {

const char* label(FieldError::Type type) {
  switch (type) {
    case FieldError::Type::Invalid: return "Invalid value";
    case FieldError::Type::Required: return "Required value";
    case FieldError::Type::Forbidden: return "Forbidden";
    case FieldError::Type::Duplicate: return "Duplicate value";
    case FieldError::Type::NotSupported: return "Unsupported value";
    case FieldError::Type::TooLarge: return "Too large";
  }
  return "Invalid value";
}

}  // namespace

std::string to_string(const FieldError& error) {
  std::string text = error.field + ": " + label(error.type) + ": ";
  if (!error.value.empty()) text += error.value + ": ";
  return text + error.detail;
}

std::string to_string(const std::vector<FieldError>& errors) {
  std::string text;
  for (const FieldError& error : errors) {
    if (!text.empty()) text += "; ";
    text += to_string(error);
  }
  return text;
}

Error Error::invalid(std::vector<FieldError> causes) {
  std::string message = to_string(causes);
  return {Code::Invalid, std::move(message), std::move(causes)};
}

}  // namespace loadline
