#include "kube/kubeconfig.h"

#include <yaml-cpp/yaml.h>

#include <filesystem>

#include "base/text.h"
#include "kube/files.h"

namespace loadline::kube {
namespace {

// yaml-cpp nodes are handles that operator[] on a non-const one would edit, and assignment rebinds; so walk
// by fresh const copies.
YAML::Node node_at(const YAML::Node& from, std::string_view path) {
  if (!from.IsMap()) return YAML::Node(YAML::NodeType::Undefined);
  const auto dot = path.find('.');
  const YAML::Node child = from[std::string(path.substr(0, dot))];
  if (!child.IsDefined() || dot == std::string_view::npos)
    return child.IsDefined() ? child : YAML::Node(YAML::NodeType::Undefined);
  return node_at(child, path.substr(dot + 1));
}

std::string scalar(const YAML::Node& node) { return node.IsDefined() && node.IsScalar() ? node.Scalar() : ""; }

void merge_list(const YAML::Node& document, const char* list, const char* item, const std::string& file,
                std::map<std::string, KubeconfigEntry>& into) {
  const YAML::Node entries = node_at(document, list);
  if (!entries.IsDefined() || !entries.IsSequence()) return;
  for (const YAML::Node& entry : entries) {
    const std::string name = scalar(node_at(entry, "name"));
    const YAML::Node body = node_at(entry, item);
    if (name.empty() || !body.IsDefined() || !body.IsMap()) continue;
    into.emplace(name, KubeconfigEntry{file, std::make_shared<const YAML::Node>(body)});
  }
}

Status merge_file(const std::string& path, const std::string& text, Kubeconfig& into) {
  try {
    const YAML::Node document = YAML::Load(text);
    if (into.current_context.empty()) into.current_context = scalar(node_at(document, "current-context"));
    merge_list(document, "clusters", "cluster", path, into.clusters);
    merge_list(document, "users", "user", path, into.users);
    merge_list(document, "contexts", "context", path, into.contexts);
    return {};
  } catch (const YAML::Exception& e) {
    return Error::make(Error::Code::Invalid, path + ": " + e.what());
  }
}

}  // namespace

std::string KubeconfigEntry::folder() const {
  std::error_code failure;
  const std::filesystem::path absolute = std::filesystem::absolute(file, failure);
  return (failure ? std::filesystem::path(file) : absolute).parent_path().string();
}

bool KubeconfigEntry::has(std::string_view path) const {
  const YAML::Node found = node_at(*node, path);
  return found.IsDefined() && !found.IsNull();
}

std::string KubeconfigEntry::text(std::string_view path) const { return scalar(node_at(*node, path)); }

std::vector<std::string> KubeconfigEntry::texts(std::string_view path) const {
  std::vector<std::string> out;
  const YAML::Node found = node_at(*node, path);
  if (!found.IsDefined() || !found.IsSequence()) return out;
  for (const YAML::Node& entry : found) out.push_back(scalar(entry));
  return out;
}

std::map<std::string, std::string> KubeconfigEntry::named_values(std::string_view path) const {
  std::map<std::string, std::string> out;
  const YAML::Node found = node_at(*node, path);
  if (!found.IsDefined() || !found.IsSequence()) return out;
  for (const YAML::Node& entry : found) out[scalar(node_at(entry, "name"))] = scalar(node_at(entry, "value"));
  return out;
}

Result<Kubeconfig> Kubeconfig::load(const std::vector<std::string>& paths, bool all_must_exist) {
  Kubeconfig merged;
  bool any = false;
  for (const std::string& path : paths) {
    const Result<std::string> text = read_file(path);
    if (!text && text.error().code == Error::Code::NotFound && !all_must_exist) continue;
    if (!text) return text.error();
    if (Status status = merge_file(path, *text, merged); !status) return status.error();
    any = true;
  }
  merged.files = join(paths, ":");
  if (!any) return Error::make(Error::Code::NotFound, "no kubeconfig file (" + merged.files + ")");
  return merged;
}

std::vector<std::string> split_list(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const auto colon = list.find(':');
    if (colon != 0) out.emplace_back(list.substr(0, colon));
    list = colon == std::string_view::npos ? std::string_view() : list.substr(colon + 1);
  }
  return out;
}

}  // namespace loadline::kube
