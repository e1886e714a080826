#include "webhook/keeper.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace loadline::webhook {
namespace {

using nlohmann::json;
namespace resources = kube::resources;

/// Replicas that start together race for the Secret; each loser needs one more look.
constexpr int kTries = 5;

/// What is served and ends within this time is replaced at once.
constexpr std::chrono::hours kSparedBefore{1};

std::int64_t unix_seconds(TimePoint time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

}  // namespace

Status CertificateKeeper::round() {
  Status done = renew_and_serve();
  if (!done && overdue()) {
    const std::chrono::seconds end(std::min<std::int64_t>(leaf_ends_, authority_ends_));
    options_.warn("the webhook's certificate ends at " + rfc3339(TimePoint(end)) +
                  " and could not be renewed: " + done.error().message +
                  "; from then on the API server cannot ask the webhook, and refuses to create or change TrainingJobs");
  }
  return done;
}

bool CertificateKeeper::overdue() const {
  if (!serving()) return false;
  return std::min<std::int64_t>(leaf_ends_, authority_ends_) < unix_seconds(options_.now() + kOverdueBefore);
}

Status CertificateKeeper::renew_and_serve() {
  const Result<Certificates> certificates = stored_or_made();
  if (!certificates) return certificates.error();
  if (Status published = publish(certificates->bundle); !published) return published;
  if (can_wait(*certificates)) return {};
  return serve(*certificates);
}

/// API servers learn whom to trust by a watch, a moment after the write that we or another replica made. So what is new
/// is served from the next round on, unless what is served now ends too soon for that.
bool CertificateKeeper::can_wait(const Certificates& certificates) {
  const std::string& leaf = certificates.leaf.certificate;
  if (leaf == served_leaf_ || std::exchange(next_leaf_, leaf) == leaf) return false;
  return std::min<std::int64_t>(leaf_ends_, authority_ends_) > unix_seconds(options_.now() + kSparedBefore);
}

Result<Certificates> CertificateKeeper::stored_or_made() {
  Error last = Error::make(Error::Code::Conflict, "the Secret changed at each try");
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const kube::Answer<kube::Object> secret = client_.get(resources::kSecrets, {options_.ns, options_.secret});
    if (!secret && !secret.error().not_found()) return secret.error();
    const kube::Object before = secret ? *secret : kube::Object();
    const std::optional<Certificates> stored = before ? from_secret(before.json()) : std::nullopt;
    const TimePoint now = options_.now();
    const RenewalNeed need = renewal_need(stored, options_.names, now);
    if (need.what == Renewal::None) return *stored;
    spdlog::info("making a new {}: {}", need.what == Renewal::Leaf ? "server certificate" : "authority", need.why);
    Result<Certificates> fresh = renew(stored, need.what, options_.names, now);
    if (!fresh) return fresh;
    const Status written = store(*fresh, before);
    if (written) return fresh;
    if (written.error().code != Error::Code::Conflict) return written.error();
    last = written.error();
  }
  return last;
}

Status CertificateKeeper::store(const Certificates& certificates, const kube::Object& before) {
  json secret = to_secret_data(certificates);
  secret["apiVersion"] = "v1";
  secret["kind"] = "Secret";
  if (!before) {
    secret["metadata"] = {{"name", options_.secret},
                          {"namespace", options_.ns},
                          {"labels", {{"app.kubernetes.io/managed-by", "loadline"}}}};
    const auto created = client_.create(resources::kSecrets, secret);
    if (!created) return created.error();
    return {};
  }
  // A Secret's type cannot change; whoever made this one chose it.
  secret["type"] = before.json().value("type", "Opaque");
  secret["metadata"] = before.json().value("metadata", json::object());
  const auto updated = client_.update(resources::kSecrets, secret);
  if (!updated) return updated.error();
  return {};
}

Status CertificateKeeper::publish(const std::string& bundle) {
  for (const kube::Resource& resource : {resources::kMutatingWebhooks, resources::kValidatingWebhooks}) {
    if (Status published = publish_in(resource, bundle); !published) return published;
  }
  return {};
}

Status CertificateKeeper::publish_in(const kube::Resource& resource, const std::string& bundle) {
  const kube::ObjectKey key{"", options_.registration};
  Error last;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto registration = client_.get(resource, key);
    // Nobody calls us yet; a later round finds it.
    if (!registration && registration.error().not_found()) return {};
    if (!registration) return registration.error();
    const json patch = trust_patch(registration->json(), bundle, options_.now());
    if (patch.empty()) return {};
    const auto patched = client_.json_patch(resource, key, patch);
    if (patched) {
      spdlog::info("{} {} now trusts our authority", resource.kind, options_.registration);
      return {};
    }
    last = patched.error();
    if (!patched.error().conflict() && patched.error().http_status != 422) return last;
  }
  return last;
}

Status CertificateKeeper::serve(const Certificates& certificates) {
  if (certificates.leaf.certificate != served_leaf_) {
    if (Status replaced = served_.replace(certificates.leaf.certificate, certificates.leaf.key); !replaced) {
      return replaced;
    }
    served_leaf_ = certificates.leaf.certificate;
  }
  const auto leaf = serve::read_certificate(certificates.leaf.certificate);
  const auto authority = serve::read_certificate(certificates.authority.certificate);
  if (!leaf || !authority) return Error::make(Error::Code::Internal, "a certificate just checked cannot be read");
  authority_ends_ = unix_seconds(authority->validity.until);
  leaf_ends_ = unix_seconds(leaf->validity.until);
  return {};
}

}  // namespace loadline::webhook
