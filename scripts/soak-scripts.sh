#!/usr/bin/env bash
# Plays every script that comes with netsplit 10 times, and the control 20 times.
# Each script must fail in at least 8 of its plays, the control in none. As root.
set -euo pipefail
cd "$(dirname "$0")/.."

bad=0
# play LEAST MOST ARGUMENTS: how many plays must fail, and may.
play() {
  local least=$1 most=$2
  shift 2
  local log
  log=$(mktemp)
  bin/netsplit script run "$@" --quiet --runs-dir "${RUNS:-runs/scripts}" | tee "$log" || true # exit status 4 where none could be judged; counted below
  local k
  k=$(sed -n 's/^[a-z-]*: \([0-9]*\) of [0-9]* plays failed.*/\1/p' "$log")
  if [ -z "$k" ] || [ "$k" -lt "$least" ] || [ "$k" -gt "$most" ]; then
    echo "soak-scripts: $*: ${k:-no} plays failed, want $least to $most" >&2
    bad=1
  fi
  # A control that could not be judged shows nothing.
  if [ "$most" -eq 0 ] && ! grep -q ' plays failed (20 pass)$' "$log"; then
    echo "soak-scripts: $*: not every play of the control passed" >&2
    bad=1
  fi
  rm -f "$log"
}

for script in deploy/targets/*/scripts/*.yaml; do
  case $script in
  */lost-acknowledgement.yaml) play 0 0 "$script" --times 20 ;; # it shows what must be so
  *) play 8 10 "$script" --times 10 ;;
  esac
done
play 0 0 redis-sentinel/split-brain --set min_replicas=1 --times 20
exit $bad
