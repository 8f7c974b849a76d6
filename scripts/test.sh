#!/usr/bin/env bash
# Every test. Those that use labs wait much of the time: two packages at once, and two
# tests of each, in namespaces of their own (internal/labtest). Those that need no lab run
# beside them, and give way: a browser has dozens of threads that run at once.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
chmod 755 "$dir" # tests of who may do what start the programs as other users
export NETSPLIT_E2E_BIN=$dir
scripts/test-programs.sh "$dir" || exit
NETSPLIT_SCHEMATHESIS=$(scripts/contract-checker.sh "${NETSPLIT_CACHE:-$HOME/.cache/netsplit}/schemathesis") || exit
export NETSPLIT_SCHEMATHESIS
mapfile -t pure < <(scripts/packages.sh pure)
mapfile -t parts < <(scripts/packages.sh parts)
((${#pure[@]} && ${#parts[@]})) || exit

beside() {
	local failed=0
	nice -n 19 $go test -C deploy/clients -vet=off -count=1 -timeout 10m -p 1 -parallel 1 ./... || failed=1
	nice -n 19 $go test -vet=off -count=1 -timeout 15m -p 1 "${pure[@]}" || failed=1
	nice -n 19 $go test -C e2e/research -vet=off -count=1 -p 1 ./... || failed=1
	return $failed
}
beside >"$dir/beside" 2>&1 &
failed=0
$go test -vet=off -count=1 -timeout 15m -p 2 -parallel 2 "${parts[@]}" || failed=1
wait $! || failed=1
cat "$dir/beside"
exit $failed
