#!/usr/bin/env bash
# Keeps a daemon busy for an hour and kills it every two minutes, as root, and
# leaves nothing behind. Arguments go to the program: see e2e/research/soak/main.go,
# e.g. -time 10m.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
$go build -C e2e/research -o "$dir/soak" ./soak
"$dir/soak" "$@"
