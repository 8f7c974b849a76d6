#!/usr/bin/env bash
# Every test. Packages that use the lab run one after the other: they would
# only disturb each other's timing on two cores.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

mapfile -t pure < <($go list ./... | grep -v '^netsplit/e2e/')
mapfile -t real < <($go list ./e2e/...)
$go test -count=1 -timeout 10m "${pure[@]}"
$go test -count=1 -timeout 20m -p 1 "${real[@]}"
