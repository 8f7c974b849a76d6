#!/usr/bin/env bash
# The switch layer's hard hours over and over (default 50 times each), and ten
# thousand cuts and heals. Says of each test how many of its runs passed.
# They wait most of the time: AT_ONCE of them (default 3), each in namespaces of
# its own. SOAK_LOGS is a folder that keeps what they said.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
times=${1:-50}
at_once=${AT_ONCE:-3}
for n in "$times" "$at_once"; do
  case $n in '' | *[!0-9]* | 0*) echo "soak: $n: how often, and how many at once, are numbers above 0" >&2; exit 2 ;; esac
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export logs=${SOAK_LOGS:-$dir/logs} dir
mkdir -p "$logs" && logs=$(realpath "$logs") || exit 2
for package in switch service gossip; do
  $go test -c -o "$dir/$package.test" "./e2e/$package" || exit 2
done

# soak PACKAGE TIMES TEST [LONG [PART]] runs the test that often and counts. LONG is
# what the tests' own variable for more of the same is set to; -: nothing. PART names
# a part of a test's times that has a log of its own, since others run beside it.
soak() {
  local package=$1 n=$2 test=$3 long=${4:-} part=${5:-} log pass
  long=${long#-}
  log=$logs/$test${long:+.long}${part:+.$part}.log
  (cd "e2e/$package" && NETSPLIT_E2E_LONG=$long exec "$dir/$package.test" -test.count="$n" -test.timeout=12h -test.run="^$test\$" -test.v) >"$log" 2>&1
  pass=$(grep -c "^--- PASS: $test " "$log")
  printf '%s %-56s %4d of %d\n' "$(date +%T)" "$test${long:+, long}${part:+, $part}" "$pass" "$n"
  [ "$pass" = "$n" ] && return
  grep -v 'level=INFO' "$log" | grep -m 3 -A 12 -e '^--- FAIL' -e 'FAIL'
  return 1
}
export -f soak

# The long ones first: what is short fills the end. One of 2 minutes each time is
# done in two halves beside each other.
{
  half=$((times / 2))
  lost=TestARunWhoseSwitchLosesItsControllerIsUnknown
  echo gossip $((times - half)) $lost - half-1
  [ "$half" = 0 ] || echo gossip "$half" $lost - half-2
  echo gossip "$times" TestARunWhoseGatePortGoesDownIsUnknown
  echo service 1 TestPartitionsByHandInHardHours 1
  echo switch 1 TestManyCutsLeaveNothing 1
  echo switch 1 TestCutsAtTheGateLeakNothing 1
  for test in TestSwitchDiesInARun TestBridgeMadeByHand TestPartitionsByHandInHardHours TestAPartitionHealsWhateverHangs; do
    echo service "$times" "$test"
  done
  for test in TestEveryShapeWithEveryTraffic TestKilledControllerMeansHealedNetwork TestRestartedSwitchIsRepaired \
    TestConnectionDropsWhilePacketsAreHeld TestFullTable TestTamperingIsReportedAndRepaired TestAPortGoesAndComesBack TestMeterOutlivesItsController; do
    echo switch "$times" "$test"
  done
} | xargs -P "$at_once" -L 1 bash -c 'soak "$@"' soak
