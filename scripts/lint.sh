#!/usr/bin/env bash
# What can be said of the sources in a minute without running them; scripts/tidy.sh takes longer.
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
  pyflakes3 $(git ls-files '*.py') "$cluster" tests/cluster/loadline-chaos
}

check_yaml() {
  python3 - <<'PYTHON'
import pathlib, subprocess, yaml
files = subprocess.run(["git", "ls-files", "*.yaml", "*.yml"], capture_output=True, text=True, check=True).stdout.split()
# Helm's templates are not YAML yet; a fuzzer's corpus is broken on purpose.
files = [name for name in files if "/templates/" not in name and not name.startswith("tests/fuzz/corpus/")]
for name in files:
    list(yaml.safe_load_all(pathlib.Path(name).read_text()))
print(f"{len(files)} YAML files are well-formed")
PYTHON
}

check_chart() { scripts/check_chart.py; }

export -f check_format check_scripts check_yaml check_chart
export cluster
exec scripts/stages.sh lint \
  "formatting of C++ (clang-format)" check_format \
  "shell and Python" check_scripts \
  "YAML" check_yaml \
  "chart" check_chart
