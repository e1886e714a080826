#!/usr/bin/env bash
# stages.sh TITLE WORDS COMMAND [WORDS COMMAND]...: runs the commands one after another and says
# which one runs, how many are left and the time so far. Ends at the first that fails.
set -euo pipefail
title=$1
shift
total=$(($# / 2))
number=0

clock() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

while [ $# -gt 0 ]; do
  number=$((number + 1))
  echo "==> $title $number/$total: $1 ($((total - number)) left, $(clock) so far)"
  if ! bash -euo pipefail -c "$2"; then
    echo "==> $title failed at $number/$total: $1 (after $(clock))" >&2
    exit 1
  fi
  shift 2
done
echo "==> $title: all $total done in $(clock)"
