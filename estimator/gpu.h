// GPU products as data: what one card has and how fast it is. Rows come from
// estimator/data/gpus.yaml, each with its source.
//
// Thread-safety: immutable; the table is made once, on first use.
// Ownership: the table lives as long as the program; the pointers handed out stay valid.
// Errors: none; a product that is not in the table is a null pointer, and what a row does
// not know is 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/enums.h"

namespace loadline::estimator {

struct Gpu {
  std::string name;                                     ///< for people: "A100 SXM 80 GB"
  std::vector<std::vector<std::string>> match;          ///< each a set of words that a product must contain, upper case
  api::Interconnect link = api::Interconnect::Unknown;  ///< between the cards of one node
  std::int64_t memory_mib = 0;  ///< total as nvidia-smi and the node's label report it; 0 unknown
  double bf16_tflops = 0;       ///< dense peak of the 16-bit format the card trains in
  double fp8_tflops = 0;        ///< 0 when the card has none
  double fp32_tflops = 0;       ///< with TF32 where the card has it
  double efficiency = 0;        ///< share of that peak a dense training run's kernels reach, network excluded
  double memory_gb_per_s = 0;
  double nvlink_gb_per_s = 0;  ///< one way per GPU; 0 without NVLink
  double pcie_gb_per_s = 0;    ///< one way per GPU
  std::string source;
};

[[nodiscard]] const std::vector<Gpu>& gpus();

/// The row for a product as a node or a cloud names it ("NVIDIA-A100-SXM4-80GB",
/// "nvidia-h100-80gb", "l40s"): all words of one of its `match` sets occur in it, the
/// largest set wins. Null when none does. Case and separators do not matter.
[[nodiscard]] const Gpu* find_gpu(std::string_view product);

/// The words of a product in upper case: {"NVIDIA", "A100", "SXM4", "80GB"}.
[[nodiscard]] std::vector<std::string> product_words(std::string_view product);

/// MiB of a card's total that the driver keeps from the framework; two public samples, see
/// docs/placement.md.
inline constexpr std::int64_t kDriverShareMiB = 720;

}  // namespace loadline::estimator
