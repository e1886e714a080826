#include "score/corpus.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

#include "score/csv.h"

namespace loadline::score {

const std::string& Run::text(std::string_view column) const {
  static const std::string kEmpty;
  const auto it = fields_.find(column);
  return it == fields_.end() ? kEmpty : it->second;
}

std::optional<double> Run::number(std::string_view column) const {
  const std::string& field = text(column);
  char* end = nullptr;
  const double value = std::strtod(field.c_str(), &end);
  if (end == field.c_str()) return std::nullopt;
  return value;
}

std::string Run::lowered(std::string_view column) const {
  std::string field = text(column);
  std::transform(field.begin(), field.end(), field.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return field;
}

Result<std::vector<Run>> parse_corpus(std::string_view csv) {
  static constexpr std::array<std::string_view, 9> kNeeded{
      "id", "family", "use", "metric_class", "model", "method", "measured_gib", "confidence", "category"};
  Result<Csv> table = parse_csv(csv);
  if (!table) return table.error();
  for (const std::string_view needed : kNeeded) {
    if (std::find(table->columns.begin(), table->columns.end(), needed) == table->columns.end()) {
      return Error::make(Error::Code::Invalid, "column " + std::string(needed) + " is missing");
    }
  }
  std::vector<Run> runs;
  for (const std::vector<std::string>& row : table->rows) {
    std::map<std::string, std::string, std::less<>> fields;
    for (std::size_t i = 0; i < row.size(); ++i) fields[table->columns[i]] = row[i];
    runs.emplace_back(std::move(fields));
  }
  return runs;
}

}  // namespace loadline::score
