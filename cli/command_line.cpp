#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "base/nearest.h"
#include "cli/estimate.h"
#include "cli/inputs.h"
#include "cli/manifests.h"
#include "cli/plan.h"

namespace loadline::cli {
namespace {

enum ExitCode { kFits = 0, kDoesNotFit = 1, kBadInput = 2 };

struct Arguments {
  std::vector<std::string> files, pools, policies, nodes;
  std::string output = "text";
  EstimateOptions estimate;
};

Result<Inputs> read_inputs(const Arguments& arguments, std::istream& input) {
  std::vector<std::string> paths = arguments.files;
  for (const auto* more : {&arguments.pools, &arguments.policies, &arguments.nodes}) {
    paths.insert(paths.end(), more->begin(), more->end());
  }
  if (std::count(paths.begin(), paths.end(), "-") > 1) {
    return Error::make(Error::Code::Invalid, "standard input (-) can be read only once");
  }
  const auto manifests = read_manifests(paths, input);
  if (!manifests) return manifests.error();
  return inputs_from(*manifests);
}

/// A list when several jobs were read, however many of them could be reported on.
void print_json(const nlohmann::json& reports, bool several, const Surroundings& around) {
  if (several) {
    around.output << reports.dump(2) << "\n";
  } else if (!reports.empty()) {
    around.output << reports[0].dump(2) << "\n";
  }
}

/// Reports on every job; the worst answer is the exit code. One bad job does not hide the others.
template <class ReportOn>
int report_all(const Arguments& arguments, const Surroundings& around, ReportOn report_on) {
  const auto inputs = read_inputs(arguments, around.input);
  if (!inputs) {
    around.errors << inputs.error().message << "\n";
    return kBadInput;
  }
  for (const std::string& warning : inputs->warnings) around.errors << "Warning: " << warning << "\n";
  int worst = kFits;
  nlohmann::json all = nlohmann::json::array();
  bool first = true;
  for (const auto& [source, job] : inputs->jobs) {
    const Result<Report> report = report_on(job, *inputs);
    if (!report) {
      around.errors << invalid_text(source, api::TrainingJob::kKind, job.metadata.name, report.error()) << "\n";
      worst = kBadInput;
      continue;
    }
    if (!report->fits) worst = std::max<int>(worst, kDoesNotFit);
    if (arguments.output == "json") {
      all.push_back(report->data);
    } else {
      around.output << (first ? "" : "\n---\n\n") << report->text;
    }
    first = false;
  }
  if (arguments.output == "json") print_json(all, inputs->jobs.size() > 1, around);
  return worst;
}

void add_common(CLI::App& command, Arguments& arguments) {
  command.add_option("-f,--filename", arguments.files, "Files or directories of TrainingJobs; - is standard input")
      ->required()
      ->type_name("PATH");
  command.add_option("-o,--output", arguments.output, "text or json")->check(CLI::IsMember({"text", "json"}));
}

void add_estimate(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("estimate", "The memory a job needs on each GPU, as a sum, without any pool");
  add_common(*command, arguments);
  command->add_option("--gpu", arguments.estimate.gpu, "The card, as A100-80GB; default: the smallest that holds it")
      ->type_name("PRODUCT");
  command->add_option("--gpus", arguments.estimate.gpus, "How many, instead of spec.gpus")
      ->check(CLI::Range(1, 65'536));
  command->add_option("--gpus-per-node", arguments.estimate.gpus_per_node, "On one node")->check(CLI::Range(1, 64));
}

void add_plan(CLI::App& app, Arguments& arguments) {
  CLI::App* command = app.add_subcommand("plan", "Where a job would run, and why not elsewhere");
  add_common(*command, arguments);
  command->add_option("--pools", arguments.pools, "Files or directories of GPUPools")->type_name("PATH");
  command->add_option("--policies", arguments.policies, "Files or directories of PlacementPolicies")->type_name("PATH");
  command
      ->add_option("--nodes", arguments.nodes,
                   "Nodes (and Pods) as `kubectl get -o yaml` prints them; without them a"
                   " pool counts as able to bring its scaling.maxNodes")
      ->type_name("PATH");
}

/// CLI11 would only say that a subcommand is required.
std::optional<std::string> unknown_command(const std::vector<std::string>& arguments) {
  static constexpr std::array<std::string_view, 2> kCommands{"estimate", "plan"};
  if (arguments.empty() || arguments[0].starts_with("-")) return std::nullopt;
  if (std::find(kCommands.begin(), kCommands.end(), arguments[0]) != kCommands.end()) return std::nullopt;
  const auto meant = nearest(arguments[0], kCommands);
  return "unknown command \"" + cut_utf8(arguments[0], 64) +
         "\": " + (meant ? "did you mean \"" + std::string(*meant) + "\"? " : "") + "There are estimate and plan";
}

int parse_failed(const CLI::App& app, const CLI::ParseError& problem, const Surroundings& around) {
  return app.exit(problem, around.output, around.errors) == 0 ? kFits : kBadInput;
}

}  // namespace

int run(const std::vector<std::string>& arguments, const Surroundings& around) {
  Arguments parsed;
  CLI::App app(
      "Sizes and places TrainingJobs offline, in the words that `kubectl describe` uses.\n"
      "Exit code: 0 every job fits, 1 some job does not, 2 bad input.",
      "kubectl loadline");
  app.set_version_flag("--version", "kubectl-loadline " LOADLINE_VERSION);
  app.require_subcommand(1);
  add_estimate(app, parsed);
  add_plan(app, parsed);
  if (const auto complaint = unknown_command(arguments)) {
    around.errors << *complaint << "\n";
    return kBadInput;
  }
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // CLI11 takes them last first
  } catch (const CLI::ParseError& problem) {
    return parse_failed(app, problem, around);
  }
  if (app.got_subcommand("estimate")) {
    return report_all(parsed, around, [&](const api::TrainingJob& job, const Inputs& /*inputs*/) {
      return estimate_report(job, parsed.estimate);
    });
  }
  return report_all(parsed, around, [&](const api::TrainingJob& job, const Inputs& inputs) {
    return plan_report(job, inputs, around.now);
  });
}

}  // namespace loadline::cli
