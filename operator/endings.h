// Why an attempt ended, decided by a table (data/endings.yaml) from what pods, nodes and the Job say.
//
// Thread-safety: pure functions over an immutable table, read once.
// Errors: none; a gang without any evidence ended for infrastructure, and the words say that nothing was found.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/enums.h"
#include "base/result.h"

namespace loadline::controller {

/// What is known of one pod of the gang. Empty strings: nothing known.
struct Evidence {
  std::string pod, node;
  std::string node_state;   ///< gone | lost | ending | tainted-lost; empty while the node is well
  std::string node_signal;  ///< what shows it, in words: "taint aws-node-termination-handler/spot-itn"
  std::string disruption;   ///< reason of the pod's DisruptionTarget condition
  std::string pod_reason;   ///< status.reason
  std::string container_reason, waiting_reason;
  std::optional<std::int64_t> exit_code;
  std::string message;  ///< of whatever has one
  std::string log_tail;
  std::string job_reason;  ///< of the Job's Failed condition, for the pod that it names
  std::string capacity;    ///< of the attempt's pool: spot, on-demand, reserved
  bool terminal = true;    ///< the pod has ended for good
};

struct Ending {
  api::AttemptCause cause = api::AttemptCause::Infrastructure;
  std::string row;     ///< name of the row that decided
  std::string detail;  ///< in words, one line, at most 512 bytes
  std::string node;    ///< the node it happened on
  bool fatal = false;  ///< trying again cannot help
  std::chrono::seconds settle{0};
};

struct EndingRow {
  std::string name, words, source;
  api::AttemptCause cause = api::AttemptCause::Infrastructure;
  std::vector<std::string> node, disruption, pod, container, waiting, job, capacity, log, exit;
  bool fatal = false;
  std::chrono::seconds settle{0};
};

/// The rows of data/endings.yaml, top row first.
[[nodiscard]] const std::vector<EndingRow>& ending_rows();
/// Error: Code::Invalid with the row's name.
[[nodiscard]] Result<std::vector<EndingRow>> parse_ending_rows(std::string_view yaml);

/// The ending that the gang's evidence proves; nothing when no row matches any of it.
[[nodiscard]] std::optional<Ending> classify(const std::vector<Evidence>& gang);

}  // namespace loadline::controller
