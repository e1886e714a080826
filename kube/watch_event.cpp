#include "kube/watch_event.h"

#include <algorithm>

#include "kube/json_read.h"

namespace loadline::kube {
namespace {

std::optional<WatchEvent::Type> type_of(std::string_view text) {
  if (text == "ADDED" || text == "MODIFIED") return WatchEvent::Type::Put;
  if (text == "DELETED") return WatchEvent::Type::Deleted;
  if (text == "BOOKMARK") return WatchEvent::Type::Bookmark;
  if (text == "ERROR") return WatchEvent::Type::Error;
  return std::nullopt;
}

}  // namespace

std::optional<WatchEvent> read_watch_event(std::string_view line, std::string_view kind) {
  Result<nlohmann::json> document = parse_json(line, TooDeep::Prune);
  if (!document || json_at(*document, {"object"}) == nullptr) return std::nullopt;
  const auto type = type_of(string_at(*document, {"type"}).value_or(""));
  if (!type) return std::nullopt;
  WatchEvent event;
  event.type = *type;
  event.object = std::move((*document)["object"]);
  if (event.type == WatchEvent::Type::Error) {
    const auto code = std::clamp<std::int64_t>(int_at(event.object, {"code"}).value_or(500), 400, 599);
    event.error = ApiError::from_response(static_cast<int>(code), json_text(event.object));
    return event;
  }
  event.version = string_at(event.object, {"metadata", "resourceVersion"}).value_or("");
  if (event.version.empty() || string_at(event.object, {"kind"}).value_or(kind) != kind) return std::nullopt;
  event.ends_initial_events =
      event.type == WatchEvent::Type::Bookmark &&
      string_at(event.object, {"metadata", "annotations", "k8s.io/initial-events-end"}) == "true";
  return event;
}

}  // namespace loadline::kube
