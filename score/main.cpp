// loadline-score: how well the estimator meets measured runs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "estimator/estimate.h"
#include "estimator/explain.h"
#include "score/corpus.h"
#include "score/report.h"
#include "score/scores.h"

namespace {

/// The sum behind one prediction, as a TrainingJob would show it.
int explain(const std::vector<loadline::score::Run>& runs, const std::string& id) {
  using namespace loadline;
  for (const score::Run& run : runs) {
    if (run.text("id") != id) continue;
    const std::variant<score::Job, score::Skipped> read = score::Readings::builtin().read(run);
    if (const auto* skipped = std::get_if<score::Skipped>(&read)) {
      std::cout << "left out: " << skipped->reason << "\n";
      return 0;
    }
    const score::Job& job = std::get<score::Job>(read);
    for (const std::string& line :
         estimator::explain(job.workload, job.layout, estimator::estimate(job.workload, job.layout))) {
      std::cout << line << "\n";
    }
    return 0;
  }
  std::cerr << "loadline-score: no run is called " << id << "\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace loadline;
  CLI::App app{"Estimates against measured runs: one row per run of a CSV file"};
  std::string path, family, category, id;
  std::size_t worst = 10;
  bool as_json = false;
  app.add_option("--corpus", path, "CSV file with the columns of tests/data/measured-runs.csv")->required();
  app.add_option("--family", family, "only runs of this family");
  app.add_option("--class", category, "only runs of this class (column category)");
  app.add_option("--worst", worst, "how many of the largest errors to name");
  app.add_option("--explain", id, "only the sum behind the prediction of the run with this id");
  app.add_flag("--json", as_json, "rows and summary as JSON");
  CLI11_PARSE(app, argc, argv);

  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::cerr << "loadline-score: cannot read " << path << "\n";
    return 2;
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Result<std::vector<score::Run>> runs = score::parse_corpus(text);
  if (!runs) {
    std::cerr << "loadline-score: " << path << ": " << runs.error().message << "\n";
    return 2;
  }
  if (!id.empty()) return explain(*runs, id);
  runs->erase(std::remove_if(runs->begin(), runs->end(),
                             [&](const score::Run& run) {
                               return (!family.empty() && run.text("family") != family) ||
                                      (!category.empty() && run.text("category") != category);
                             }),
              runs->end());
  const std::vector<score::Outcome> outcomes = score::score(*runs, score::Readings::builtin());
  if (as_json) {
    std::cout << score::report_json(outcomes).dump(1) << "\n";
  } else {
    std::cout << score::report_text(outcomes, worst);
  }
  return 0;
}
