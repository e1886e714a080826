#include "operator/endings.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "operator/embedded.h"

namespace loadline::controller {
namespace {

constexpr std::size_t kDetailBytes = 512;
constexpr std::size_t kLogLineBytes = 200;

std::vector<std::string> words_of(const YAML::Node& node) {
  if (!node) return {};
  if (node.IsScalar()) return {node.as<std::string>()};
  return node.as<std::vector<std::string>>();
}

EndingRow row_of(const YAML::Node& yaml) {
  EndingRow row;
  row.name = yaml["name"].as<std::string>();
  row.words = yaml["words"].as<std::string>();
  row.source = yaml["source"].as<std::string>();
  const auto cause = api::value_named<api::AttemptCause>(yaml["cause"].as<std::string>());
  if (!cause) throw YAML::Exception(yaml["cause"].Mark(), "unknown cause");
  row.cause = *cause;
  row.fatal = yaml["fatal"].as<bool>(false);
  row.settle = std::chrono::seconds(yaml["settleSeconds"].as<int>(0));
  const YAML::Node when = yaml["when"];
  const std::map<std::string, std::vector<std::string>*> columns = {
      {"node", &row.node},         {"disruption", &row.disruption},
      {"pod", &row.pod},           {"container", &row.container},
      {"waiting", &row.waiting},   {"job", &row.job},
      {"capacity", &row.capacity}, {"log", &row.log},
      {"exit", &row.exit}};
  for (const auto& entry : when) {
    const auto column = columns.find(entry.first.as<std::string>());
    if (column == columns.end()) throw YAML::Exception(entry.first.Mark(), "unknown evidence");
    *column->second = words_of(entry.second);
  }
  return row;
}

bool any(const std::vector<std::string>& wanted, const std::string& seen) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), seen) != wanted.end();
}

bool any_part(const std::vector<std::string>& wanted, const std::string& text) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(),
                                       [&](const std::string& w) { return text.find(w) != std::string::npos; });
}

bool any_exit(const std::vector<std::string>& wanted, std::optional<std::int64_t> code) {
  if (wanted.empty()) return true;
  if (!code) return false;
  constexpr std::int64_t kKilled = 137, kTerminated = 143;
  const bool own_failure = *code != 0 && *code != kKilled && *code != kTerminated;
  return std::any_of(wanted.begin(), wanted.end(), [&](const std::string& w) {
    return w == "any-failure" ? own_failure : w == std::to_string(*code);
  });
}

bool matches(const EndingRow& row, const Evidence& e) {
  return any(row.node, e.node_state) && any(row.disruption, e.disruption) && any(row.pod, e.pod_reason) &&
         any(row.container, e.container_reason) && any(row.waiting, e.waiting_reason) && any(row.job, e.job_reason) &&
         any(row.capacity, e.capacity) && any_part(row.log, e.log_tail) && any_exit(row.exit, e.exit_code);
}

/// The line of the log that tells most: the one with the row's words, else the last that is not empty.
std::string telling_line(const std::string& log, const std::vector<std::string>& words) {
  std::string last;
  std::size_t begin = 0;
  while (begin < log.size()) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    const std::string line = log.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    last = line;
    if (!words.empty() && any_part(words, line)) break;
  }
  return cut_utf8(last, kLogLineBytes);
}

std::string fill(std::string text, const std::map<std::string, std::string>& values) {
  for (const auto& [key, value] : values) {
    const std::string mark = "{" + key + "}";
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size())) {
      text.replace(at, mark.size(), value);
    }
  }
  // Foreign text may hold line breaks; a detail is one line.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return cut_utf8(text, kDetailBytes);
}

/// The pod and, as far as it is known, its node.
std::string member_words(const Evidence& e) {
  if (e.pod.empty()) return "a pod";
  return "pod " + e.pod + (e.node.empty() ? "" : " on " + e.node);
}

Ending ending_of(const EndingRow& row, const Evidence& e) {
  const auto known = [](const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; };
  const std::string reason = !e.pod_reason.empty() ? e.pod_reason : e.waiting_reason;
  Ending ending;
  ending.cause = row.cause;
  ending.row = row.name;
  ending.node = e.node;
  ending.fatal = row.fatal;
  ending.settle = row.settle;
  ending.detail = fill(row.words, {{"pod", known(e.pod, "?")},
                                   {"node", known(e.node, "(unknown)")},
                                   {"member", member_words(e)},
                                   {"signal", known(e.node_signal, "no sign of life")},
                                   {"reason", known(reason, "no reason given")},
                                   {"exit", e.exit_code ? std::to_string(*e.exit_code) : "unknown"},
                                   {"message", known(e.message, "no message")},
                                   {"log", known(telling_line(e.log_tail, row.log), "its log says nothing more")}});
  return ending;
}

}  // namespace

Result<std::vector<EndingRow>> parse_ending_rows(std::string_view yaml) {
  try {
    std::vector<EndingRow> rows;
    for (const YAML::Node& row : YAML::Load(std::string(yaml))["rows"]) rows.push_back(row_of(row));
    return rows;
  } catch (const YAML::Exception& e) {
    return Error::make(Error::Code::Invalid, std::string("endings table: ") + e.what());
  }
}

const std::vector<EndingRow>& ending_rows() {
  static const std::vector<EndingRow> rows = [] {
    auto parsed = parse_ending_rows(data::endings_yaml);
    return parsed ? *std::move(parsed) : std::vector<EndingRow>{};
  }();
  return rows;
}

std::optional<Ending> classify(const std::vector<Evidence>& gang) {
  for (const EndingRow& row : ending_rows()) {
    for (const Evidence& e : gang) {
      if (matches(row, e)) return ending_of(row, e);
    }
  }
  return std::nullopt;
}

}  // namespace loadline::controller
