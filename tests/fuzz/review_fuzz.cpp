// What a peer may post to the webhook: an AdmissionReview, or an object that is then put into one. Every answer must
// stay within what the API server and kubectl take, and a patch must leave nothing more to patch and an object that
// reads as well as the one that came.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "api/codec.h"
#include "kube/json_read.h"
#include "tests/unit/webhook/fixture.h"
#include "webhook/review.h"

using namespace loadline;  // NOLINT(google-build-using-namespace)
using nlohmann::json;

namespace {

constexpr std::size_t kWarningBytes = 256;
constexpr std::size_t kWarningsBytes = 4096;
constexpr std::size_t kAnswerBytes = 1 << 20;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Most random documents are no review; as its object they still say something.
json review_of(json object) {
  const std::string kind(kube::string_at(object, {"kind"}).value_or("TrainingJob"));
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "u"},
            {"operation", "CREATE"},
            {"kind", {{"group", "loadline.dev"}, {"version", "v1alpha1"}, {"kind", kind}}},
            {"object", std::move(object)}}}};
}

void check_answer(const webhook::Request& request, const webhook::Verdict& verdict) {
  const json answer = webhook::review_response(request, verdict);
  std::size_t bytes = 0;
  for (const json& warning : kube::array_at(answer, {"response", "warnings"})) {
    const auto& text = warning.get_ref<const std::string&>();
    require(text.size() <= kWarningBytes && text.find('\n') == std::string::npos);
    bytes += text.size();
  }
  require(bytes <= kWarningsBytes);
  require(kube::json_text(answer).size() <= request.uid.size() + kAnswerBytes);
}

void check_patch(const webhook::Request& request, const json& patch) {
  if (patch.empty()) return;
  const json patched = request.object->patch(patch);
  webhook::Request again = request;
  again.object = &patched;
  require(webhook::mutate(again).patch.empty());
  const bool was_good = api::parse_training_job(*request.object, api::UnknownFields::Reject).ok();
  require(!was_good || api::parse_training_job(patched, api::UnknownFields::Reject).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const webhook::Snapshot kCluster = webhook::testing::small_cluster();
  const Result<json> document = kube::parse_json({reinterpret_cast<const char*>(data), size});
  if (!document) return 0;
  json review = *document;
  if (!webhook::read_review(review)) review = review_of(*document);
  const Result<webhook::Request> request = webhook::read_review(review);
  require(request.ok());

  const webhook::Verdict mutated = webhook::mutate(*request);
  check_answer(*request, mutated);
  check_patch(*request, mutated.patch);
  check_answer(*request, webhook::validate(*request, kCluster));
  return 0;
}
