#!/usr/bin/env bash
# Builds the fuzzers of tests/fuzz with clang and runs each for SECONDS_EACH seconds. What they learn is kept in
# the cache, so that the next run goes on from there; a crash is left in BUILD_DIR/crashes.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-30}
build=${BUILD_DIR:-build/fuzz}
corpus=${XDG_CACHE_HOME:-$HOME/.cache}/loadline/fuzz

cmake -S . -B "$build" -G Ninja -DLOADLINE_FUZZ=ON -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=clang++ \
  -DCMAKE_CXX_FLAGS="-w -O1 -g1 -fsanitize=fuzzer-no-link" -DLOADLINE_SANITIZE=address,undefined >/dev/null
cmake --build "$build" --target fuzz

mkdir -p "$build/crashes"
stages=()
for source in tests/fuzz/*_fuzz.cpp; do
  name=$(basename "$source" .cpp)
  mkdir -p "$corpus/$name"
  stages+=("$name for $seconds s"
    "$build/bin/$name -max_total_time=$seconds -timeout=10 -rss_limit_mb=2048 -max_len=65536 -verbosity=0 \
       -print_final_stats=1 -artifact_prefix=$build/crashes/ $corpus/$name tests/fuzz/corpus/$name")
done
scripts/stages.sh fuzz "${stages[@]}"
