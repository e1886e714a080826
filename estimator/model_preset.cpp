#include <algorithm>

#include "base/text.h"
#include "estimator/model.h"
#include "estimator/tables.h"

namespace loadline::estimator {
namespace {

/// Edits between two short names (Levenshtein), to suggest what was probably meant.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

std::string nearest_names(std::string_view wanted, const Tables& tables) {
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const ModelRow& row : tables.models) near.emplace_back(edit_distance(wanted, row.model.name), row.model.name);
  std::sort(near.begin(), near.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, near.size()); ++i) names.push_back(near[i].second);
  return join(names, ", ");
}

}  // namespace

Result<Model> model_from_preset(std::string_view name) { return model_from_preset(name, Tables::builtin()); }

Result<Model> model_from_preset(std::string_view name, const Tables& tables) {
  if (const ModelRow* row = tables.model(name)) return row->model;
  const std::string typed = cut_utf8(name, 128);
  return Error::invalid(
      {{FieldError::Type::NotSupported, "spec.model.preset", typed,
        "no such preset; nearest: " + nearest_names(typed, tables) + "; or give huggingFaceConfig or architecture"}});
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const ModelRow& row : Tables::builtin().models) names.push_back(row.model.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace loadline::estimator
