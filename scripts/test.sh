#!/usr/bin/env bash
# Every test. Packages that use the lab wait most of the time: two at once, each in
# namespaces of its own, take 13 minutes on two cores where one at a time took 22.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

mapfile -t pure < <($go list ./... | grep -v '^netsplit/e2e/')
mapfile -t real < <($go list ./e2e/...)
$go test -count=1 -timeout 10m "${pure[@]}"
for module in deploy/clients e2e/research; do $go test -C "$module" -count=1 -timeout 10m ./...; done
$go test -count=1 -timeout 20m -p 2 "${real[@]}"
