#include "base/text.h"
#include "estimator/explain.h"
#include "estimator/quantities.h"

namespace loadline::estimator {
namespace {

std::string stack_assumption(const Workload& w, const Stack& stack) {
  const std::string who = "The " + std::string(stack_name(stack.kind)) + " (" + std::to_string(stack.layers) +
                          " layers, " + scientific(stack_parameters(stack)) + " parameters) ";
  if (!trains_stack(w, stack)) return who + "is frozen and keeps nothing";
  if (stack.kind == Stack::Kind::Encoder && stack.tokens == 0) {
    return who + "is trained too and reads as many tokens as the decoder";
  }
  if (stack.tokens == 0) return who + "is trained too; the size of its input is not known, so that it keeps nothing";
  const std::string input = stack.kind == Stack::Kind::Vision ? "one image of " : "one input of ";
  return who + "is trained too, on " + input + std::to_string(stack.tokens) + " positions per sequence";
}

}  // namespace

std::vector<std::string> assumptions(const Workload& w, const Layout& l) {
  std::vector<std::string> out;
  if (w.model.fidelity == Fidelity::LowerBound) {
    out.emplace_back("Only the number of parameters is known: activations, logits and gathered layers are left out");
    return out;
  }
  if (w.recipe.name == "generic") {
    out.emplace_back("spec.training.framework is generic: kept bytes are those of the more careful frameworks");
  }
  out.emplace_back("Every sequence is full (packed or fixed length)");
  if (!w.global_batch) out.emplace_back("No globalBatchSize: one micro-batch per step, no accumulation");
  if (w.loss == api::Loss::Standard) {
    out.emplace_back(
        "Standard loss: logits, their fp32 copy and their gradients exist at once; a fused loss avoids it");
  }
  if (w.attention != Attention::Eager) out.emplace_back("Attention does not store its scores (flash or sdpa kernels)");
  if (w.method == Method::QLora) {
    out.push_back("4-bit weights take " + fixed(w.quantised_bytes, 3) + " B each, scales included" +
                  (w.kbit_upcast ? "; embedding, head and norms are raised to fp32" : ""));
  }
  if (w.model.moe.experts > 0) {
    out.push_back(l.expert > 1 && dense_copies(w, l) == 1
                      ? "The fullest expert rank gets " + fixed(w.recipe.expert_imbalance, 2) +
                            " times the mean of the tokens"
                      : "Experts are evenly used");
  }
  for (const Stack& stack : w.model.stacks) out.push_back(stack_assumption(w, stack));
  if (w.model.recurrence.layers > 0) {
    out.emplace_back("Recurrent layers keep their projections and outputs; the states of the scan are computed anew");
  }
  if (w.model.text_only) out.emplace_back("The vision tower of the published model is not counted");
  if (w.optimizer.paged)
    out.emplace_back("Paged optimizer states leave the card when it is full: they are counted in host memory");
  if (w.precision == Precision::Fp8)
    out.emplace_back("fp8 saves no memory: low-precision copies are kept beside the weights");
  if (w.reference_copies > 0) out.emplace_back("The reference model stays on the card in low precision");
  out.emplace_back(w.expandable_segments
                       ? "The allocator uses expandable segments (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True)"
                       : "The trainer's own allocator settings leave out expandable_segments:True: the allocator's "
                         "cache of blocks that nothing else fits into is counted");
  return out;
}

}  // namespace loadline::estimator
