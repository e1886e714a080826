#include "kube/resource.h"

namespace loadline::kube {

std::string Resource::api_version() const { return group.empty() ? version : group + "/" + version; }

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4U];
    out += kHex[byte & 15U];
  }
  return out;
}

std::string collection_path(const Resource& resource, std::string_view ns) {
  std::string path = resource.group.empty() ? "/api/" : "/apis/" + resource.group + "/";
  path += resource.version;
  if (resource.namespaced && !ns.empty()) path += "/namespaces/" + percent_encode(ns);
  return path + "/" + resource.plural;
}

std::string object_path(const Resource& resource, std::string_view ns, std::string_view name,
                        std::string_view subresource) {
  std::string path = collection_path(resource, ns) + "/" + percent_encode(name);
  if (!subresource.empty()) path += "/" + percent_encode(subresource);
  return path;
}

}  // namespace loadline::kube
