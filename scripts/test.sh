#!/usr/bin/env bash
# Every test. Those that use labs wait much of the time: two packages at once, and two
# tests of each, in namespaces of their own (internal/labtest). The longest come
# first, so that none is left alone at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir" # tests of who may do what start the programs as other users
export NETSPLIT_E2E_BIN=$dir
scripts/test-programs.sh "$dir" || exit

$go test -C deploy/clients -vet=off -count=1 -timeout 10m -p 1 ./... >"$dir/clients" 2>&1 &
longest='service testbed gossip switch redis scripts zookeeper hosts faults'
mapfile -t packages < <(printf 'netsplit/e2e/%s\n' $longest; $go list ./... | grep -vxE "netsplit/e2e/(${longest// /|})")
failed=0
$go test -vet=off -count=1 -timeout 15m -p 2 -parallel 2 "${packages[@]}" || failed=1
wait $! || failed=1
cat "$dir/clients"
$go test -C e2e/research -vet=off -count=1 ./... || failed=1
exit $failed
