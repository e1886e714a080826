// Names of a TrainingJob's children. Deterministic, so that a create can be repeated and a child be found again;
// with the attempt's number, so that an attempt never meets the pods of the one before under its own name.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>

namespace loadline::controller {

/// The value of spec.managedBy that means us; absent means us too.
inline constexpr const char* kManagerName = "loadline.dev/operator";

/// The base of all children's names: the job's name when pods named after it ("NAME-aN-INDEX") fit in a DNS label of
/// 63 characters and it may name a Service; otherwise a cut form with a hash of the whole name.
[[nodiscard]] std::string stem(const std::string& job_name);

[[nodiscard]] std::string service_name(const std::string& job_name);                      ///< "NAME"
[[nodiscard]] std::string attempt_job_name(const std::string& job_name, std::int64_t n);  ///< "NAME-aN"
[[nodiscard]] std::string plan_config_name(const std::string& job_name, std::int64_t n);  ///< "NAME-aN-plan"
[[nodiscard]] std::string checkpoint_claim_name(const std::string& job_name);             ///< "NAME-checkpoint"
/// The address of rank 0's pod: "NAME-aN-0.NAME.NAMESPACE.svc".
[[nodiscard]] std::string master_address(const std::string& job_name, const std::string& ns, std::int64_t n);

}  // namespace loadline::controller
