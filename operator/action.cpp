#include "operator/action.h"

namespace loadline::controller {
namespace {

std::string name_in(const nlohmann::json& object) {
  return std::string(kube::string_at(object, {"metadata", "name"}).value_or("?"));
}

struct Describe {
  std::string operator()(const Create& a) const { return "create " + a.resource.plural + " " + name_in(a.object); }
  std::string operator()(const WriteStatus& a) const {
    return "write status of " + a.resource.plural + " " + name_in(a.object);
  }
  std::string operator()(const MergePatch& a) const { return "patch " + a.resource.plural + " " + a.key.name; }
  std::string operator()(const Remove& a) const { return "delete " + a.resource.plural + " " + a.key.name; }
  std::string operator()(const Tell& a) const { return "event " + a.event.reason; }
};

}  // namespace

std::string describe(const Action& action) { return std::visit(Describe{}, action); }

}  // namespace loadline::controller
