#include "score/csv.h"

#include <utility>

namespace loadline::score {
namespace {

/// Takes a text apart into records of fields.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  /// One record; nothing is left open unless the text ends inside quotes.
  Result<std::vector<std::string>> record() {
    std::vector<std::string> fields(1);
    bool quoted = false;
    const std::size_t first = line_;
    while (!done()) {
      const char c = text_[at_++];
      if (c == '\n') ++line_;
      if (quoted) {
        if (c != '"') {
          fields.back() += c;
        } else if (!done() && text_[at_] == '"') {
          fields.back() += text_[at_++];
        } else {
          quoted = false;
        }
      } else if (c == '"') {
        quoted = true;
      } else if (c == ',') {
        fields.emplace_back();
      } else if (c == '\n') {
        return fields;
      } else if (c != '\r') {
        fields.back() += c;
      }
    }
    if (quoted) return Error::make(Error::Code::Invalid, "line " + std::to_string(first) + ": a quote never ends");
    return fields;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

Result<Csv> parse_csv(std::string_view text) {
  Csv csv;
  Parser parser(text);
  while (!parser.done()) {
    const std::size_t line = parser.line();
    Result<std::vector<std::string>> record = parser.record();
    if (!record) return record.error();
    if (record->size() == 1 && record->front().empty()) continue;
    if (csv.columns.empty()) {
      csv.columns = std::move(*record);
    } else if (record->size() != csv.columns.size()) {
      return Error::make(Error::Code::Invalid, "line " + std::to_string(line) + ": " + std::to_string(record->size()) +
                                                   " fields where the header has " +
                                                   std::to_string(csv.columns.size()));
    } else {
      csv.rows.push_back(std::move(*record));
    }
  }
  if (csv.columns.empty()) return Error::make(Error::Code::Invalid, "no header line");
  return csv;
}

}  // namespace loadline::score
