// Object metadata and conditions: the part of every Kubernetes object that we read.
//
// Every type of this folder lists its fields once, in `fields(self, visit)`, under their
// JSON names. Parsing, serialising, comparing with the CRD schema and printing all walk
// that list, so a field cannot be known to one and not to the other.
// An absent optional field is std::nullopt and stays absent when written: absent is not zero.
// A field named in `kRequired` must be given; the schema says the same. `kPartOfKubernetes`
// marks types of which only the fields that we use are listed.
//
// Thread-safety: plain values. Ownership: none shared.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/enums.h"

namespace loadline::api {

struct OwnerReference {
  static constexpr bool kPartOfKubernetes = true;

  std::optional<std::string> apiVersion, kind, name, uid;
  std::optional<bool> controller, blockOwnerDeletion;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("apiVersion", self.apiVersion);
    visit("kind", self.kind);
    visit("name", self.name);
    visit("uid", self.uid);
    visit("controller", self.controller);
    visit("blockOwnerDeletion", self.blockOwnerDeletion);
  }
  bool operator==(const OwnerReference&) const = default;
};

struct ObjectMeta {
  static constexpr bool kPartOfKubernetes = true;

  std::string name;
  std::string namespaceName;  ///< metadata.namespace; empty for cluster-scoped kinds
  std::string uid;
  std::string resourceVersion;
  std::optional<std::int64_t> generation;
  std::optional<std::string> creationTimestamp, deletionTimestamp;
  std::map<std::string, std::string> labels, annotations;
  std::vector<std::string> finalizers;
  std::vector<OwnerReference> ownerReferences;

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("name", self.name);
    visit("namespace", self.namespaceName);
    visit("uid", self.uid);
    visit("resourceVersion", self.resourceVersion);
    visit("generation", self.generation);
    visit("creationTimestamp", self.creationTimestamp);
    visit("deletionTimestamp", self.deletionTimestamp);
    visit("labels", self.labels);
    visit("annotations", self.annotations);
    visit("finalizers", self.finalizers);
    visit("ownerReferences", self.ownerReferences);
  }
  bool operator==(const ObjectMeta&) const = default;
};

/// metav1.Condition.
struct Condition {
  std::string type;
  ConditionStatus status = ConditionStatus::Unknown;
  std::optional<std::int64_t> observedGeneration;
  std::string lastTransitionTime;  ///< RFC 3339
  std::string reason;              ///< CamelCase word for machines
  std::string message;             ///< at most 2 KiB, for people

  template <class Self, class Visit>
  static void fields(Self& self, Visit&& visit) {
    visit("type", self.type);
    visit("status", self.status);
    visit("observedGeneration", self.observedGeneration);
    visit("lastTransitionTime", self.lastTransitionTime);
    visit("reason", self.reason);
    visit("message", self.message);
  }
  bool operator==(const Condition&) const = default;
};

}  // namespace loadline::api
