// A measured run for tests: a plain LoRA run of Mistral-7B on one card, with any column changed.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "score/corpus.h"

namespace loadline::score {

using Columns = std::map<std::string, std::string, std::less<>>;

inline Run run(const Columns& changed = {}) {
  Columns columns{{"id", "a-run"},
                  {"family", "hf-tests"},
                  {"use", "score"},
                  {"category", "lora-1gpu"},
                  {"confidence", "high"},
                  {"metric_class", "allocated"},
                  {"model", "mistral-7b-v0.1"},
                  {"method", "lora"},
                  {"lora_rank", "16"},
                  {"lora_targets", "q,k,v,o"},
                  {"weights_dtype", "bfloat16"},
                  {"master_weights", "no"},
                  {"optimizer", "adamw_torch"},
                  {"micro_batch", "4"},
                  {"seq_len", "4096"},
                  {"activation_ckpt", "full"},
                  {"attention", "flash-attn 2"},
                  {"num_gpus", "1"},
                  {"tp", "1"},
                  {"pp", "1"},
                  {"cp", "1"},
                  {"ep", "1"},
                  {"measured_gib", "24.9"}};
  for (const auto& [column, value] : changed) columns[column] = value;
  return Run(std::move(columns));
}

}  // namespace loadline::score
