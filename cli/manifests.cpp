#include "cli/manifests.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/yaml.h"

namespace loadline::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMaxFileBytes = 8u << 20;

Error bad(const std::string& message) { return Error::make(Error::Code::Invalid, message); }

Result<std::string> read_all(std::istream& stream, const std::string& source) {
  std::string text(kMaxFileBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (stream.bad()) return bad(source + ": cannot be read");
  if (text.size() > kMaxFileBytes) return bad(source + ": larger than 8 MiB");
  return text;
}

/// Files of a directory in the order of their names; a file itself.
Result<std::vector<std::string>> files_at(const std::string& path) {
  std::error_code failure;
  if (!fs::is_directory(path, failure)) return std::vector<std::string>{path};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(path, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string extension = entry->path().extension();
    if (extension == ".yaml" || extension == ".yml" || extension == ".json") files.push_back(entry->path());
  }
  if (failure) return bad(path + ": " + failure.message());
  std::sort(files.begin(), files.end());
  return files;
}

Status append(const json& document, const std::string& source, std::vector<Manifest>& out) {
  if (!document.is_object()) return bad(source + ": not a Kubernetes object");
  const json kind = document.value("kind", json());
  if (!kind.is_string()) return bad(source + ": kind: Required value: which kind of object this is");
  if (!kind.get<std::string>().ends_with("List")) {
    out.push_back({source, document});
    return {};
  }
  const json items = document.value("items", json::array());
  if (!items.is_array()) return bad(source + ": items: Invalid value: must be a list");
  for (const json& item : items) {
    if (auto done = append(item, source, out); !done) return done;
  }
  return {};
}

}  // namespace

Result<std::vector<Manifest>> manifests_in(const std::string& text, const std::string& source) {
  auto documents = json_from_yaml(text, source);
  if (!documents) return documents.error();
  std::vector<Manifest> out;
  for (const json& document : *documents) {
    if (auto done = append(document, source, out); !done) return done.error();
  }
  return out;
}

Result<std::vector<Manifest>> read_manifests(const std::vector<std::string>& paths, std::istream& standard_input) {
  std::vector<Manifest> out;
  const auto take = [&out](std::istream& stream, const std::string& source) -> Status {
    const auto text = read_all(stream, source);
    if (!text) return text.error();
    auto found = manifests_in(*text, source);
    if (!found) return found.error();
    std::move(found->begin(), found->end(), std::back_inserter(out));
    return {};
  };
  for (const std::string& path : paths) {
    if (path == "-") {
      if (auto done = take(standard_input, "standard input"); !done) return done.error();
      continue;
    }
    const auto files = files_at(path);
    if (!files) return files.error();
    for (const std::string& file : *files) {
      std::ifstream stream(file, std::ios::binary);
      if (!stream) return bad(file + ": cannot be opened");
      if (auto done = take(stream, file); !done) return done.error();
    }
  }
  return out;
}

}  // namespace loadline::cli
