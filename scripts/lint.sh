#!/usr/bin/env bash
# Everything that can be said of the sources without running them. Quick checks come first.
set -euo pipefail
cd "$(dirname "$0")/.."
cluster=tests/cluster/loadline-cluster

check_format() {
  # shellcheck disable=SC2046  # no file of ours has a blank in its name
  clang-format --dry-run -Werror $(git ls-files '*.h' '*.cpp')
}

check_scripts() {
  local scripts
  mapfile -t scripts < <(git ls-files '*.sh' .ci/run)
  for script in "${scripts[@]}"; do bash -n "$script"; done
  shellcheck --severity=style "${scripts[@]}"
  # shellcheck disable=SC2046
  pyflakes3 $(git ls-files '*.py') "$cluster"
}

check_yaml() {
  python3 - <<'PYTHON'
import pathlib, subprocess, yaml
files = subprocess.run(["git", "ls-files", "*.yaml", "*.yml"], capture_output=True, text=True, check=True).stdout.split()
files = [name for name in files if "/templates/" not in name]  # Helm's are not YAML yet
for name in files:
    list(yaml.safe_load_all(pathlib.Path(name).read_text()))
print(f"{len(files)} YAML files are well-formed")
PYTHON
}

check_chart() { scripts/check_chart.py; }

check_tidy() {
  # A build folder of its own: clang cannot read the headers that GCC has precompiled.
  [ -f build/tidy/CMakeCache.txt ] || cmake --preset dev -B build/tidy -DLOADLINE_PCH=OFF >/dev/null
  # clang-tidy reads the tables that the build writes.
  local generated
  mapfile -t generated < <(ninja -C build/tidy -t targets all | sed -n 's/^\(generated\/.*\.h\): .*/\1/p')
  [ ${#generated[@]} -eq 0 ] || ninja -C build/tidy "${generated[@]}" >/dev/null
  scripts/tidy.py build/tidy
}

export -f check_format check_scripts check_yaml check_chart check_tidy
export cluster
exec scripts/stages.sh lint \
  "formatting of C++ (clang-format)" check_format \
  "shell and Python" check_scripts \
  "YAML" check_yaml \
  "chart" check_chart \
  "clang-tidy" check_tidy
