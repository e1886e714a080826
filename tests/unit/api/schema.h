// The CRD schemas as the tests see them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace loadline::api::crd {

/// Every document of a YAML file below the source folder. Throws when it cannot be read: no test is possible then.
[[nodiscard]] std::vector<nlohmann::json> read_yaml(const std::string& path);

/// The file of a kind's CRD, below the source folder.
[[nodiscard]] std::string crd_path(const std::string& plural);

/// openAPIV3Schema of the only version of a kind. Read once; not for several threads.
[[nodiscard]] const nlohmann::json& schema_of(const std::string& plural);

/// A whole object of the kind with every field of spec and status that the schema knows; each list has so many
/// elements, all different.
[[nodiscard]] nlohmann::json complete_object(const std::string& kind, const std::string& plural, int elements = 1);

}  // namespace loadline::api::crd
