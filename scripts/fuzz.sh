#!/usr/bin/env bash
# Runs every fuzz target of the module for the time given (default 30s).
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
for dir in $(grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u); do
  for target in $(grep -ho --include='*_test.go' -r '^func Fuzz[A-Za-z0-9_]*' "$dir" --max-count=100 | awk '{print $2}' | sort -u); do
    grep -q "func $target" "$dir"/*_test.go || continue
    echo "fuzz $dir $target"
    $go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "${1:-30s}"
  done
done
