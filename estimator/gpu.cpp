#include "estimator/gpu.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>

#include "estimator/embedded.h"

namespace loadline::estimator {
namespace {

double number(const YAML::Node& row, const char* key, double otherwise) {
  return row[key] ? row[key].as<double>() : otherwise;
}

Gpu read_row(const YAML::Node& row, double default_efficiency) {
  Gpu gpu;
  gpu.name = row["name"].as<std::string>();
  gpu.match = row["match"].as<std::vector<std::vector<std::string>>>();
  if (row["link"]) {
    gpu.link = api::value_named<api::Interconnect>(row["link"].as<std::string>()).value_or(api::Interconnect::Unknown);
  }
  gpu.memory_mib = row["memory_mib"] ? row["memory_mib"].as<std::int64_t>() : 0;
  gpu.bf16_tflops = number(row, "bf16", 0);
  gpu.fp8_tflops = number(row, "fp8", 0);
  gpu.fp32_tflops = number(row, "fp32", 0);
  gpu.efficiency = number(row, "efficiency", default_efficiency);
  gpu.memory_gb_per_s = number(row, "memory_gb_per_s", 0);
  gpu.nvlink_gb_per_s = number(row, "nvlink", 0);
  gpu.pcie_gb_per_s = number(row, "pcie", 0);
  gpu.source = row["source"].as<std::string>();
  return gpu;
}

std::vector<Gpu> read_table() {
  const YAML::Node table = YAML::Load(std::string(data::gpus_yaml));
  const double efficiency = table["defaults"]["efficiency"].as<double>();
  std::vector<Gpu> rows;
  for (const YAML::Node& row : table["gpus"]) rows.push_back(read_row(row, efficiency));
  return rows;
}

bool contains_all(const std::vector<std::string>& words, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

}  // namespace

// The table is compiled in, so a fault in it is a fault of the build: the tests read it, and
// at run time an unreadable table is an empty one.
const std::vector<Gpu>& gpus() {
  static const std::vector<Gpu> rows = [] {
    try {
      return read_table();
    } catch (const YAML::Exception&) {
      return std::vector<Gpu>{};
    }
  }();
  return rows;
}

std::vector<std::string> product_words(std::string_view product) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : product) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      word += static_cast<char>(std::toupper(byte));
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

const Gpu* find_gpu(std::string_view product) {
  const std::vector<std::string> words = product_words(product);
  const Gpu* best = nullptr;
  std::size_t most = 0;
  for (const Gpu& gpu : gpus()) {
    for (const auto& wanted : gpu.match) {
      if (wanted.size() > most && contains_all(words, wanted)) {
        best = &gpu;
        most = wanted.size();
      }
    }
  }
  return best;
}

}  // namespace loadline::estimator
