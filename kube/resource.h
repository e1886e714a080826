// A resource type as the API server addresses it, and the paths that follow from it.
//
// Thread-safety: plain values; the constants are immutable.
#pragma once

#include <string>
#include <string_view>

namespace loadline::kube {

/// Group, version and plural name the type in a URL; kind names it in an object.
struct Resource {
  std::string group;  ///< "" for the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  /// "v1" or "batch/v1", as in an object's apiVersion.
  [[nodiscard]] std::string api_version() const;
  bool operator==(const Resource&) const = default;
};

/// Path of the collection: of one namespace, or of all when `ns` is empty or the type is cluster-scoped.
/// Names are percent-encoded.
[[nodiscard]] std::string collection_path(const Resource& resource, std::string_view ns = {});
/// Path of one object or, with `subresource` ("status", "log", "scale"), of a part of it.
[[nodiscard]] std::string object_path(const Resource& resource, std::string_view ns, std::string_view name,
                                      std::string_view subresource = {});
/// Percent-encodes everything but RFC 3986's unreserved characters: right in a path segment and in a query value.
[[nodiscard]] std::string percent_encode(std::string_view text);

/// Types every cluster has.
namespace resources {
inline const Resource kPods{"", "v1", "pods", "Pod", true};
inline const Resource kNodes{"", "v1", "nodes", "Node", false};
inline const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
inline const Resource kServices{"", "v1", "services", "Service", true};
inline const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
inline const Resource kSecrets{"", "v1", "secrets", "Secret", true};
inline const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
inline const Resource kPersistentVolumeClaims{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
inline const Resource kPersistentVolumes{"", "v1", "persistentvolumes", "PersistentVolume", false};
inline const Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false};
inline const Resource kJobs{"batch", "v1", "jobs", "Job", true};
inline const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
inline const Resource kEvents{"events.k8s.io", "v1", "events", "Event", true};
inline const Resource kPriorityClasses{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false};
inline const Resource kMutatingWebhooks{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
                                        "MutatingWebhookConfiguration", false};
inline const Resource kValidatingWebhooks{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
                                          "ValidatingWebhookConfiguration", false};
inline const Resource kCustomResourceDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                                 "CustomResourceDefinition", false};
}  // namespace resources

}  // namespace loadline::kube
