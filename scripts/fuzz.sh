#!/usr/bin/env bash
# Runs fuzz targets one after the other.
#   scripts/fuzz.sh [TIME] [FOLDER…]
# TIME is of each target (default 30s). Without a folder: those of the whole
# module; a folder stands for itself alone, not for those below it.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
time=${1:-30s}
shift || true
if [ $# -eq 0 ]; then
  mapfile -t all < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u)
  set -- "${all[@]}"
fi
for dir in "$@"; do
  targets=$(cat "$dir"/*_test.go 2>/dev/null | sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' | sort -u || true)
  [ -n "$targets" ] || { echo "$dir has no fuzz target" >&2; exit 2; }
  for target in $targets; do
    echo "fuzz $dir $target"
    $go test -C "$dir" . -run '^$' -fuzz "^$target\$" -fuzztime "$time"
  done
done
