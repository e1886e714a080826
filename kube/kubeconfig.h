// kubeconfig files as read and merged, before anybody gives their fields a meaning.
//
// Thread-safety: plain values. Errors: Invalid with the file and line; NotFound when no file exists.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace YAML {
class Node;
}

namespace loadline::kube {

/// One cluster, user or context. Fields are named by dotted path: "exec.command".
struct KubeconfigEntry {
  std::string file;  ///< where it was read: its relative paths start there
  std::shared_ptr<const YAML::Node> node;

  [[nodiscard]] std::string folder() const;
  [[nodiscard]] bool has(std::string_view path) const;
  /// A scalar as text; empty when absent, null or not a scalar.
  [[nodiscard]] std::string text(std::string_view path) const;
  /// A sequence of scalars.
  [[nodiscard]] std::vector<std::string> texts(std::string_view path) const;
  /// A sequence of {name, value}.
  [[nodiscard]] std::map<std::string, std::string> named_values(std::string_view path) const;
};

struct Kubeconfig {
  std::string files;  ///< the paths read, for messages
  std::string current_context;
  std::map<std::string, KubeconfigEntry> clusters;
  std::map<std::string, KubeconfigEntry> users;
  std::map<std::string, KubeconfigEntry> contexts;

  /// Merges the files: the first to name an entry, or to set current-context, wins.
  [[nodiscard]] static Result<Kubeconfig> load(const std::vector<std::string>& paths, bool all_must_exist);
};

/// "a:b::c" as a, b, c.
[[nodiscard]] std::vector<std::string> split_list(std::string_view list);

}  // namespace loadline::kube
