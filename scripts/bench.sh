#!/usr/bin/env bash
# Measures netsplit on this machine and prints one table: some 20 minutes, as
# root, best with nothing else running. Leaves nothing behind.
# Arguments go to the program: see e2e/research/bench/main.go, e.g. -only leaks,gate.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
$go build -C e2e/research -o "$dir/bench" ./bench
"$dir/bench" "$@"
