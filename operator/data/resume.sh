#!/bin/sh
# LOADLINE_RESUME_FROM: the newest checkpoint that has its marker, or nothing. Then the trainer's own command takes over.
LOADLINE_RESUME_FROM=$(
  newest=
  for marker in "$LOADLINE_CHECKPOINT_DIR"/*/"$LOADLINE_CHECKPOINT_MARKER"; do
    # shellcheck disable=SC3013  # -nt is POSIX since 2024, and dash, busybox and bash have always had it
    if [ -f "$marker" ] && ! [ "$newest" -nt "$marker" ]; then newest=$marker; fi
  done
  printf %s "${newest%/*}"
)
export LOADLINE_RESUME_FROM
exec "$@"
