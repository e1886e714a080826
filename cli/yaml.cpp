#include "cli/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>
#include <system_error>
#include <utility>

namespace loadline::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 100;
constexpr int kMaxValues = 200'000;

/// Thrown and caught in this file only: it passes through the parser.
struct Refused {
  int line;  ///< counted from 1
  std::string why;
};

template <class Number>
std::optional<Number> number_from(std::string_view text, int base) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<json> integer(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0o")) {
    base = text[1] == 'x' ? 16 : 8;
    text.remove_prefix(2);
  }
  const bool plus = text.starts_with('+');
  if (plus) text.remove_prefix(1);
  if ((plus || base != 10) && (text.starts_with('-') || text.starts_with('+'))) return std::nullopt;
  // As JSON's own parser does: unsigned unless negative.
  if (const auto value = number_from<std::uint64_t>(text, base)) return json(*value);
  if (const auto value = number_from<std::int64_t>(text, base)) return json(*value);
  return std::nullopt;
}

/// The core schema's floating point form; integers too large for 64 bits end here as well.
std::optional<json> floating(std::string_view text) {
  static const std::regex form(R"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?)");
  if (text.size() > 400 || !std::regex_match(text.begin(), text.end(), form)) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{}) return std::nullopt;  // out of a double's range: stays the text that was typed
  return json(value);
}

json plain_scalar(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return nullptr;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  if (auto value = integer(text)) return *value;
  if (auto value = floating(text)) return *value;
  return text;
}

/// Builds JSON from the parser's events. yaml-cpp's own tree is not used: its LoadAll does not end on a text such
/// as ",-", and duplicate keys are lost in it.
class JsonBuilder : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    // The parser gives an empty document, again and again, where it cannot go on.
    if (mark.pos == last_start_) refuse(mark, "unexpected character");
    last_start_ = mark.pos;
    anchors_.clear();
    document_ = nullptr;
  }
  void OnDocumentEnd() override {
    if (!document_.is_null()) documents.push_back(std::move(document_));
  }
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(mark, {nullptr, 1, 0}, anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    if (awaits_key()) {
      take_key(mark, value, tag == "?");
      remember(anchor, {value, 1, 0});
    } else {
      add(mark, {scalar(mark, tag, value), 1, 0}, anchor);
    }
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) refuse(mark, "an alias inside of what it stands for");
    add(mark, found->second, 0);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    open(mark, json::array(), anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    open(mark, json::object(), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override {
    // Keys of the map itself win over merged ones.
    Frame& frame = frames_.back();
    for (auto& [key, value] : frame.merged.items()) frame.built.value.emplace(key, std::move(value));
    close();
  }

  std::vector<json> documents;

 private:
  /// A finished value, with what copying it costs.
  struct Built {
    json value;
    int values = 1;
    int depth = 0;
  };
  /// A sequence or map that is still open.
  struct Frame {
    YAML::Mark mark;
    YAML::anchor_t anchor = 0;
    Built built;
    json merged = json::object();
    std::optional<std::string> key;
    bool key_is_merge = false;
  };

  [[noreturn]] static void refuse(const YAML::Mark& mark, std::string why) {
    throw Refused{mark.line + 1, std::move(why)};
  }

  static json scalar(const YAML::Mark& mark, const std::string& tag, const std::string& value) {
    // yaml-cpp tags a plain scalar "?", a quoted one "!".
    if (tag == "?" || tag.empty()) return plain_scalar(value);
    if (tag == "!" || tag == "tag:yaml.org,2002:str") return value;
    if (tag == "tag:yaml.org,2002:int" || tag == "tag:yaml.org,2002:float" || tag == "tag:yaml.org,2002:bool") {
      return plain_scalar(value);
    }
    refuse(mark, "unknown tag " + tag);
  }

  [[nodiscard]] bool awaits_key() const {
    return !frames_.empty() && frames_.back().built.value.is_object() && !frames_.back().key;
  }

  void take_key(const YAML::Mark& mark, const std::string& key, bool plain) {
    Frame& frame = frames_.back();
    frame.key_is_merge = plain && key == "<<";
    if (!frame.key_is_merge && frame.built.value.contains(key)) refuse(mark, "duplicate key \"" + key + "\"");
    frame.key = key;
  }

  void open(const YAML::Mark& mark, json empty, YAML::anchor_t anchor) {
    if (awaits_key()) refuse(mark, "a key must be a plain word");
    if (frames_.size() >= kMaxDepth) refuse(mark, "nested deeper than " + std::to_string(kMaxDepth));
    frames_.push_back(Frame{mark, anchor, {std::move(empty), 1, 0}, json::object(), std::nullopt, false});
  }

  void close() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    add(frame.mark, std::move(frame.built), frame.anchor);
  }

  void remember(YAML::anchor_t anchor, const Built& built) {
    if (anchor != 0) anchors_[anchor] = built;
  }

  void add(const YAML::Mark& mark, Built built, YAML::anchor_t anchor) {
    remember(anchor, built);
    values_ += built.values;
    if (values_ > kMaxValues) refuse(mark, "expands to more than " + std::to_string(kMaxValues) + " values");
    if (frames_.empty()) {
      document_ = std::move(built.value);
      return;
    }
    Frame& frame = frames_.back();
    frame.built.values += built.values;
    frame.built.depth = std::max(frame.built.depth, built.depth + 1);
    if (frames_.size() + static_cast<std::size_t>(built.depth) > kMaxDepth) {
      refuse(mark, "nested deeper than " + std::to_string(kMaxDepth));
    }
    if (frame.built.value.is_array()) {
      frame.built.value.push_back(std::move(built.value));
    } else if (!frame.key) {
      refuse(mark, "a key must be a plain word");
    } else {
      set_member(mark, frame, std::move(built.value));
      frame.key.reset();
    }
  }

  static void set_member(const YAML::Mark& mark, Frame& frame, json value) {
    if (!frame.key_is_merge) {
      frame.built.value[*frame.key] = std::move(value);
      return;
    }
    const json sources = value.is_array() ? std::move(value) : json::array({std::move(value)});
    for (const json& source : sources) {
      if (!source.is_object()) refuse(mark, "\"<<\" takes a map or a list of maps");
      for (const auto& [key, member] : source.items()) frame.merged.emplace(key, member);
    }
  }

  std::vector<Frame> frames_;
  std::map<YAML::anchor_t, Built> anchors_;
  json document_;
  int values_ = 0;
  int last_start_ = -1;
};

Error located(const std::string& source, int line, const std::string& why) {
  return Error::make(Error::Code::Invalid, source + ":" + std::to_string(line) + ": " + why);
}

}  // namespace

Result<std::vector<json>> json_from_yaml(std::string_view text, const std::string& source) {
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    JsonBuilder builder;
    while (parser.HandleNextDocument(builder)) {
    }
    return std::move(builder.documents);
  } catch (const Refused& refused) {
    return located(source, refused.line, refused.why);
  } catch (const YAML::Exception& problem) {
    return located(source, problem.mark.is_null() ? 1 : problem.mark.line + 1, problem.msg);
  }
}

}  // namespace loadline::cli
