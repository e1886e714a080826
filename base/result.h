// Result<T>: a value or an Error. Errors are values between layers; nothing above
// this header lets an exception leave the function it was caught in.
//
// Thread-safety: plain values, no shared state.
// Ownership: Result owns its value or its Error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace loadline {

/// What went wrong with one field of a user's object, in the words kubectl prints.
struct FieldError {
  enum class Type { Invalid, Required, Forbidden, Duplicate, NotSupported, TooLarge };

  Type type = Type::Invalid;
  std::string field;   ///< path as the user would type it: "spec.training.sequenceLength"
  std::string value;   ///< the value as typed; empty when the field is absent
  std::string detail;  ///< what is allowed and what to do, one sentence, no line break

  bool operator==(const FieldError&) const = default;
};

/// "spec.gpus.count: Invalid value: -3: must be at least 1"
[[nodiscard]] std::string to_string(const FieldError& error);

/// All of them on one line, "; " between them.
[[nodiscard]] std::string to_string(const std::vector<FieldError>& errors);

/// A failure. `fields` is filled when the cause is the user's object.
struct Error {
  enum class Code {
    Invalid,  ///< the caller's or user's input; trying again cannot help
    NotFound,
    Conflict,  ///< somebody else wrote first, or the name is taken
    Forbidden,
    Unavailable,  ///< transport, timeout, 429, 5xx: trying again may help
    Internal,     ///< our fault
  };

  Code code = Code::Internal;
  std::string message;
  std::vector<FieldError> fields;

  [[nodiscard]] static Error invalid(std::vector<FieldError> causes);
  [[nodiscard]] static Error make(Code code, std::string message) { return {code, std::move(message), {}}; }
};

/// Result<T> holds a T or an Error. Result<void> is `Status`. A layer with more to say about a failure
/// derives its own E from Error; `return result.error();` then still fits any Result<U>.
template <class T, class E = Error>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return ok(); }

  /// Precondition: ok().
  [[nodiscard]] T& value() & { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const& { return std::get<0>(state_); }
  [[nodiscard]] T&& value() && { return std::get<0>(std::move(state_)); }
  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return value(); }
  [[nodiscard]] T&& operator*() && { return std::move(*this).value(); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &value(); }

  /// Precondition: !ok().
  [[nodiscard]] const E& error() const& { return std::get<1>(state_); }
  [[nodiscard]] E&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, E> state_;
};

template <class E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(E error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] bool ok() const noexcept { return !error_.has_value(); }
  explicit operator bool() const noexcept { return ok(); }
  /// Precondition: !ok().
  [[nodiscard]] const E& error() const { return *error_; }

 private:
  std::optional<E> error_;
};

using Status = Result<void>;

}  // namespace loadline
