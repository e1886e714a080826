// What makes a model unusable: sizes out of any range that a model has had, and sizes that
// contradict each other.
#include <algorithm>
#include <initializer_list>

#include "estimator/model.h"

namespace loadline::estimator {
namespace {

struct Bound {
  const char* field;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

/// Collects errors under one path.
struct Check {
  const std::string& path;
  std::vector<FieldError>& errors;

  void refuse(const char* field, std::int64_t value, std::string detail) const {
    errors.push_back({FieldError::Type::Invalid, path + "." + field, std::to_string(value), std::move(detail)});
  }
  void within(std::initializer_list<Bound> bounds) const {
    for (const Bound& b : bounds) {
      if (b.value >= b.least && b.value <= b.most) continue;
      refuse(b.field, b.value, "must be between " + std::to_string(b.least) + " and " + std::to_string(b.most));
    }
  }
};

// Ten times the largest published value of each, or more: beyond that it is a slip of the keyboard.
constexpr std::int64_t kLayers = 10'000;
constexpr std::int64_t kHidden = 1'000'000;
constexpr std::int64_t kHeads = 10'000;
constexpr std::int64_t kHeadDim = 100'000;
constexpr std::int64_t kWidth = 10'000'000;
constexpr std::int64_t kTable = 1'000'000'000;

void check_block(const Block& b, const Check& check) {
  check.within({{"layers", b.layers, 1, kLayers}, {"hidden", b.hidden, 1, kHidden}});
  check.within({{"attentionFreeLayers", b.attention_free_layers, 0, std::max<std::int64_t>(0, b.layers)},
                {"mlpFreeLayers", b.mlp_free_layers, 0, std::max<std::int64_t>(0, b.layers)}});
  if (b.attention_free_layers < b.layers) {
    check.within(
        {{"heads", b.heads, 1, kHeads}, {"kvHeads", b.kv_heads, 1, kHeads}, {"headDim", b.head_dim, 1, kHeadDim}});
    if (b.heads > 0 && b.kv_heads > 0 && b.heads % b.kv_heads != 0) {
      check.refuse("kvHeads", b.kv_heads, "must divide heads (" + std::to_string(b.heads) + ")");
    }
  }
  if (b.mlp_free_layers < b.layers) check.within({{"ffn", b.ffn, 1, kWidth}});
  if (b.mla.kv_rank > 0) {
    check.within({{"queryRank", b.mla.q_rank, 0, kHidden},
                  {"keyValueRank", b.mla.kv_rank, 1, kHidden},
                  {"nopeDim", b.mla.nope_dim, 0, kHeadDim},
                  {"ropeDim", b.mla.rope_dim, 0, kHeadDim},
                  {"valueDim", b.mla.value_dim, 1, kHeadDim}});
  }
}

void check_recurrence(const Block& b, const Check& check) {
  const Recurrence& r = b.recurrence;
  if (r.layers == 0) return;
  check.within({{"recurrentLayers", r.layers, 0, std::max<std::int64_t>(0, b.layers)},
                {"recurrentWidth", r.inner, r.kind == Mixing::ShortConv ? 0 : 1, kWidth},
                {"recurrentKeys", r.keys, 0, kWidth},
                {"stateSize", r.state, 0, kHeadDim},
                {"convolutionKernel", r.kernel, 1, kHeads},
                {"timeStepRank", r.rank, 0, kHidden},
                {"recurrentHeads", r.heads, 0, kWidth},
                {"recurrentGroups", r.groups, 1, kWidth}});
}

void check_experts(const Model& m, const Check& check) {
  const Experts& e = m.moe;
  check.within({{"experts", e.experts, 0, 100'000},
                {"expertFfn", e.expert_ffn, 0, kWidth},
                {"sharedExperts", e.shared_ffn, 0, 10 * kWidth}});
  if (e.experts <= 0) return;
  if (e.top_k < 1 || e.top_k > e.experts) {
    check.refuse("topK", e.top_k, "must be between 1 and experts (" + std::to_string(e.experts) + ")");
  }
  if (e.expert_ffn < 1) check.refuse("expertFfn", e.expert_ffn, "must be at least 1");
  if (e.first_dense_layers < 0 || e.first_dense_layers > m.layers) {
    check.refuse("firstDenseLayers", e.first_dense_layers, "must be between 0 and layers");
  }
  if (e.layers < 0 || e.layers > m.layers) check.refuse("mixtureLayers", e.layers, "must be between 0 and layers");
}

}  // namespace

std::vector<FieldError> check_model(const Model& m, const std::string& path) {
  std::vector<FieldError> errors;
  if (m.fidelity == Fidelity::LowerBound) return errors;
  const Check check{path, errors};
  check_block(m, check);
  check_recurrence(m, check);
  check.within({{"vocab", m.vocab, m.tokens > 0 ? 0 : 1, 100'000'000},
                {"embeddingWidth", m.embedding_width, 0, kHidden},
                {"maxPositions", m.learned_positions, 0, kTable},
                {"tokens", m.tokens, 0, kTable}});
  check_experts(m, check);
  for (std::size_t i = 0; i < m.stacks.size(); ++i) {
    const Stack& stack = m.stacks[i];
    const std::string at = path + ".stacks[" + std::to_string(i) + "]";
    const Check inside{at, errors};
    check_block(stack, inside);
    inside.within({{"tokens", stack.tokens, 0, kTable}});
  }
  if (m.cross_attention && m.stacks.empty()) {
    errors.push_back({FieldError::Type::Required, path + ".stacks", "", "cross attention needs an encoder"});
  }
  return errors;
}

}  // namespace loadline::estimator
