#!/usr/bin/env bash
# clang-tidy over the programs' sources; what was found clean before is not checked again.
set -euo pipefail
cd "$(dirname "$0")/.."

# A build folder of its own: clang cannot read the headers that GCC has precompiled.
[ -f build/tidy/CMakeCache.txt ] || cmake --preset dev -B build/tidy -DLOADLINE_PCH=OFF >/dev/null
# clang-tidy reads the tables that the build writes.
ninja -C build/tidy loadline_estimator_tables loadline_placement_tables loadline_operator_tables loadline_cli_tables loadline_score_tables >/dev/null
scripts/tidy.py build/tidy
