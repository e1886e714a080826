// Every name that Loadline writes into a cluster: group, labels, annotations, finalizer,
// environment, condition types and reasons. One place, so that YAML, code and docs agree.
#pragma once

namespace loadline::api {

inline constexpr const char* kGroup = "loadline.dev";
inline constexpr const char* kVersion = "v1alpha1";
inline constexpr const char* kApiVersion = "loadline.dev/v1alpha1";

namespace label {
inline constexpr const char* kJobName = "loadline.dev/job-name";
inline constexpr const char* kJobUID = "loadline.dev/job-uid";
inline constexpr const char* kAttempt = "loadline.dev/attempt";
inline constexpr const char* kPool = "loadline.dev/pool";
inline constexpr const char* kManagedBy = "app.kubernetes.io/managed-by";  ///< value "loadline"
/// On a Namespace, with any value: neither the webhook nor the operator touches the jobs in it.
inline constexpr const char* kIgnore = "loadline.dev/ignore";
}  // namespace label

namespace condition {
inline constexpr const char* kAdmitted = "Admitted";
inline constexpr const char* kSized = "Sized";
inline constexpr const char* kPlaced = "Placed";
inline constexpr const char* kCheckpointReady = "CheckpointReady";
inline constexpr const char* kRunning = "Running";
inline constexpr const char* kSucceeded = "Succeeded";
inline constexpr const char* kFailed = "Failed";
inline constexpr const char* kSuspended = "Suspended";
inline constexpr const char* kFinished = "Finished";
}  // namespace condition

inline constexpr const char* kTrainerContainer = "trainer";
inline constexpr const char* kFinalizer = "loadline.dev/cleanup";
inline constexpr const char* kFieldManager = "loadline";

}  // namespace loadline::api
