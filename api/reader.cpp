#include "api/reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/nearest.h"
#include "base/text.h"

namespace loadline::api {
namespace {

using nlohmann::json;

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string quoted_list(const std::vector<std::string_view>& words) {
  std::vector<std::string> parts;
  parts.reserve(words.size());
  for (const std::string_view word : words) parts.push_back(in_quotes(word));
  return join(parts, ", ");
}

// Text of scalars and of small containers. Stops when `out` is long enough, so that neither a long nor a deep
// document costs more than the line that is shown.
void append_value(const json& value, std::size_t max_bytes, int levels, std::string& out) {
  if (out.size() > max_bytes) return;
  if (!value.is_structured()) {
    const auto* text = value.get_ptr<const std::string*>();
    const json shown = text != nullptr ? json(cut_utf8(*text, max_bytes)) : value;
    out += shown.dump(-1, ' ', false, json::error_handler_t::replace);
    return;
  }
  const bool list = value.is_array();
  out += list ? '[' : '{';
  if (levels == 0 && !value.empty()) {
    out += "...";
  } else {
    bool first = true;
    for (const auto& [key, element] : value.items()) {
      if (out.size() > max_bytes) break;
      if (!std::exchange(first, false)) out += ", ";
      if (!list) out += cut_utf8(key, max_bytes) + ": ";
      append_value(element, max_bytes, levels - 1, out);
    }
  }
  out += list ? ']' : '}';
}

// Iterative, since what is measured may be deeper than the stack.
bool deeper_than(const json& root, int levels) {
  std::vector<std::pair<const json*, int>> open{{&root, 1}};
  while (!open.empty()) {
    const auto [value, depth] = open.back();
    open.pop_back();
    if (!value->is_structured()) continue;
    if (depth > levels) return true;
    for (const json& element : *value) {
      if (element.is_structured()) open.emplace_back(&element, depth + 1);
    }
  }
  return false;
}

bool reads_as_number(const json& value) {
  const auto* text = value.get_ptr<const std::string*>();
  return text != nullptr && text->size() < 64 && json::accept(*text) &&
         text->find_first_not_of("+-.0123456789eE") == std::string::npos;
}

std::string with_quotes_hint(const json& value, const char* wanted) {
  return std::string("must be ") + wanted + (reads_as_number(value) ? ", without quotes" : "");
}

}  // namespace

std::string value_text(const json& value, std::size_t max_bytes) {
  std::string out;
  append_value(value, max_bytes, /*levels=*/3, out);
  // Control characters are escaped inside strings already; keys of objects are shown bare.
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20U || c == 0x7F) c = '?';
  }
  return cut_utf8(out, max_bytes);
}

void Reader::read(const json& value, bool& out) {
  if (const auto* given = value.get_ptr<const bool*>(); given != nullptr) {
    out = *given;
    return;
  }
  const auto* text = value.get_ptr<const std::string*>();
  const bool as_text = text != nullptr && (*text == "true" || *text == "false");
  add_error(FieldError::Type::Invalid, value,
            as_text ? "must be true or false, without quotes" : "must be true or false");
}

void Reader::read(const json& value, std::int64_t& out) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  const auto too_large = [&] {
    add_error(FieldError::Type::TooLarge, value, "must be at most " + std::to_string(kMost));
  };
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > static_cast<std::uint64_t>(kMost)) return too_large();
    out = static_cast<std::int64_t>(number);
  } else if (value.is_number_integer()) {
    out = value.get<std::int64_t>();
  } else if (value.is_number_float()) {
    // The API server keeps a whole number as it was written, 8.03e+09 included.
    const auto number = value.get<double>();
    if (number != std::floor(number)) return add_error(FieldError::Type::Invalid, value, "must be a whole number");
    if (std::abs(number) >= 9.2233720368547748e18) return too_large();
    out = static_cast<std::int64_t>(number);
  } else {
    add_error(FieldError::Type::Invalid, value, with_quotes_hint(value, "a whole number"));
  }
}

void Reader::read(const json& value, double& out) {
  if (!value.is_number()) return add_error(FieldError::Type::Invalid, value, with_quotes_hint(value, "a number"));
  const auto number = value.get<double>();
  if (!std::isfinite(number)) return add_error(FieldError::Type::Invalid, value, "must be a finite number");
  out = number;
}

void Reader::read(const json& value, std::string& out) {
  if (const auto* text = value.get_ptr<const std::string*>(); text != nullptr) {
    out = *text;
  } else if (value.is_number() || value.is_boolean()) {
    add_error(FieldError::Type::Invalid, value, "must be text: write it in quotes, " + in_quotes(value_text(value)));
  } else {
    add_error(FieldError::Type::Invalid, value, "must be text");
  }
}

void Reader::read(const json& value, json& out) {
  if (!value.is_object()) return add_error(FieldError::Type::Invalid, value, "must be an object with fields");
  if (deeper_than(value, kMaxDepth)) {
    return add_error(FieldError::Type::TooLarge, value,
                     "must nest at most " + std::to_string(kMaxDepth) + " levels deep");
  }
  out = value;
}

void Reader::add_error(FieldError::Type type, const json& value, std::string detail) {
  if (errors_.size() >= kMaxErrors) {
    ++dropped_;
    return;
  }
  std::string text = type == FieldError::Type::Required ? std::string() : value_text(value);
  errors_.push_back({type, path_.empty() ? "object" : path_, std::move(text), std::move(detail)});
}

std::vector<FieldError> Reader::take_errors() && {
  if (dropped_ > 0) {
    errors_.push_back({FieldError::Type::Invalid, "object", std::to_string(errors_.size() + dropped_) + " errors",
                       "only the first " + std::to_string(errors_.size()) + " are listed"});
  }
  return std::move(errors_);
}

std::string Reader::member_step(std::string_view name) const {
  return path_.empty() ? std::string(name) : "." + std::string(name);
}

void Reader::report_unknown(const json& object, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    if (path_.empty() && (key == "apiVersion" || key == "kind")) continue;
    const auto meant = nearest(key, known);
    std::string name = value_text(json(key), 66);
    const Step step(path_, member_step(std::string_view(name).substr(1, name.size() - 2)));
    add_error(FieldError::Type::Invalid, value,
              meant ? "unknown field; did you mean " + in_quotes(*meant) + "?" : "unknown field");
  }
}

void Reader::report_word(const json& value, const std::vector<std::string_view>& words) {
  const auto* word = value.get_ptr<const std::string*>();
  const auto meant = word != nullptr ? nearest(*word, words) : std::nullopt;
  add_error(FieldError::Type::NotSupported, value,
            (meant ? "did you mean " + in_quotes(*meant) + "? " : "") + "supported values: " + quoted_list(words));
}

}  // namespace loadline::api
