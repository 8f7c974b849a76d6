#!/usr/bin/env bash
# The switch layer's hard hours over and over (default 50 times each), and ten
# thousand cuts and heals. Says of each test how many of its runs passed.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
times=${1:-50}
case $times in '' | *[!0-9]* | 0) echo "soak: $1: how often is a number above 0" >&2; exit 2 ;; esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

# soak PACKAGE TIMES TEST.. runs the tests that often and counts.
soak() {
  local package=$1 n=$2 test pass
  shift 2
  for test; do
    $go test -count="$n" -timeout 12h -run "^$test\$" -v "$package" >"$log" 2>&1
    pass=$(grep -c "^--- PASS: $test " "$log")
    printf '%-48s %4d of %d\n' "$test" "$pass" "$n"
    if [ "$pass" != "$n" ]; then
      failed=1
      grep -v 'level=INFO' "$log" | grep -m 3 -A 12 -e '^--- FAIL' -e 'FAIL'
    fi
  done
}

soak ./e2e/switch "$times" \
  TestKilledControllerMeansHealedNetwork TestRestartedSwitchIsRepaired TestConnectionDropsWhilePacketsAreHeld \
  TestFullTable TestTamperingIsReportedAndRepaired TestAPortGoesAndComesBack TestEveryShapeWithEveryTraffic
soak ./e2e/service "$times" TestBridgeMadeByHand TestSwitchDiesInARun TestPartitionsByHandInHardHours
NETSPLIT_E2E_LONG=1 soak ./e2e/switch 1 TestManyCutsLeaveNothing
NETSPLIT_E2E_LONG=1 soak ./e2e/service 1 TestPartitionsByHandInHardHours
exit $failed
