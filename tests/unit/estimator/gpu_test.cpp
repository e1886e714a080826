#include "estimator/gpu.h"

#include <gtest/gtest.h>

namespace loadline::estimator {
namespace {

struct Row {
  const char* product;
  const char* name;
};

class FindGpu : public testing::TestWithParam<Row> {};

TEST_P(FindGpu, KnowsTheProductByItsWords) {
  const Gpu* gpu = find_gpu(GetParam().product);
  ASSERT_NE(gpu, nullptr) << GetParam().product;
  EXPECT_EQ(gpu->name, GetParam().name);
}

INSTANTIATE_TEST_SUITE_P(
    Products, FindGpu,
    testing::Values(Row{"NVIDIA-A100-SXM4-80GB", "A100 SXM 80 GB"}, Row{"NVIDIA-A100-SXM4-40GB", "A100 SXM 40 GB"},
                    Row{"NVIDIA-A100-80GB-PCIe", "A100 PCIe 80 GB"}, Row{"NVIDIA-A100-PCIE-40GB", "A100 PCIe 40 GB"},
                    Row{"nvidia-tesla-a100", "A100 SXM 40 GB"}, Row{"nvidia-a100-80gb", "A100 SXM 80 GB"},
                    Row{"NVIDIA-A100", "A100"}, Row{"NVIDIA-H100-80GB-HBM3", "H100 SXM"},
                    Row{"nvidia-h100-mega-80gb", "H100 SXM"}, Row{"NVIDIA-H100-PCIe", "H100 PCIe"},
                    Row{"NVIDIA-H100-NVL", "H100 NVL"}, Row{"h100", "H100"}, Row{"NVIDIA-H200", "H200 SXM"},
                    Row{"NVIDIA-H200-SXM5-141GB", "H200 SXM"}, Row{"NVIDIA-H200-NVL", "H200 NVL"},
                    Row{"nvidia-h200-141gb", "H200 SXM"}, Row{"NVIDIA-L4", "L4"}, Row{"l40s", "L40S"},
                    Row{"NVIDIA-L40", "L40"}, Row{"a10g", "A10G"}, Row{"NVIDIA-A10", "A10"}, Row{"Tesla-T4", "T4"},
                    Row{"Tesla-V100-SXM2-16GB", "V100 SXM2 16 GB"}, Row{"nvidia-tesla-v100", "V100"},
                    Row{"NVIDIA-B200", "B200"}, Row{"NVIDIA-B300-SXM6-AC", "B300"}, Row{"NVIDIA-GB200", "GB200"},
                    Row{"NVIDIA-GeForce-RTX-4090", "RTX 4090"}, Row{"NVIDIA-RTX-A6000", "RTX A6000"},
                    Row{"NVIDIA-RTX-6000-Ada-Generation", "RTX 6000 Ada"},
                    Row{"NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "RTX PRO 6000"}));

TEST(FindGpu, DoesNotGuess) {
  EXPECT_EQ(find_gpu("NVIDIA-Something-New"), nullptr);
  EXPECT_EQ(find_gpu(""), nullptr);
}

TEST(GpuTable, HasASourceAndSoundNumbersInEveryRow) {
  ASSERT_GT(gpus().size(), 25U);
  for (const Gpu& gpu : gpus()) {
    EXPECT_FALSE(gpu.source.empty()) << gpu.name;
    EXPECT_FALSE(gpu.match.empty()) << gpu.name;
    EXPECT_GT(gpu.bf16_tflops, 0) << gpu.name;
    EXPECT_GT(gpu.memory_gb_per_s, 0) << gpu.name;
    EXPECT_GT(gpu.efficiency, 0.3) << gpu.name;
    EXPECT_LT(gpu.efficiency, 0.9) << gpu.name;
    EXPECT_GT(gpu.nvlink_gb_per_s + gpu.pcie_gb_per_s, 0) << gpu.name;
    const bool linked = gpu.link == api::Interconnect::NvLink || gpu.link == api::Interconnect::NvSwitch;
    if (linked) {
      EXPECT_GT(gpu.nvlink_gb_per_s, 0) << gpu.name;
    }
    EXPECT_TRUE(gpu.memory_mib == 0 || gpu.memory_mib > 15000) << gpu.name;
    for (const auto& words : gpu.match) {
      std::string product;
      for (const std::string& word : words) product += word + "-";
      EXPECT_EQ(find_gpu(product), &gpu) << product << " is claimed by two rows";
    }
  }
}

}  // namespace
}  // namespace loadline::estimator
