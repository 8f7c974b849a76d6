#!/usr/bin/env bash
# The main job on a real system: a search on Redis Sentinel that ends at the first
# broken promise, then the same run again, with its cut and without. As root, at most
# 6 minutes. Leaves only its records behind, also after ^C.
#
#   SEED=n      of the search; default: a new one, which is printed
#   LABS=n      labs used at once
#   REPLAYS=n   how often the run is repeated
set -euo pipefail
cd "$(dirname "$0")/.."
out=${NETSPLIT_RUNS:-runs/demo} labs=${LABS:-5} replays=${REPLAYS:-5}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cat <<'END'
System: Redis with Sentinel as Debian ships it, on three hosts of a lab.
Work:   an operator drains the master's host: its own Sentinel hands the lead over.
Search: cut a host off at a message that shows two nodes disagreeing; heal at another one.
END
code=0
bin/netsplit campaign redis-sentinel --set workload=drain --stop-when-broken --runs-dir "$out" --labs "$labs" \
  --clean 3 --faults "${FAULTS:-40}" --budget "${BUDGET:-3m30s}" --seed "${SEED:-0}" "$@" | tee "$work/search" || code=$?
run=$(sed -n 's/.* replay \(c-[0-9-]*-r[0-9]*\) .*/\1/p' "$work/search" | head -n 1)
if [ "$code" -ne 3 ] || [ -z "$run" ]; then
  exit "$code" # nothing found, or something went wrong: the search has said what
fi

again() { # prints k/n
  bin/netsplit replay "$run" -n "$replays" --runs-dir "$out" --labs "$labs" "$@" >"$work/again"
  sed -n '1s/ .*//p' "$work/again"
}
printf '\nThe same run again:\n'
printf '  with its cut:     %s broke the promise\n' "$(again)"
printf '  without its cut:  %s\n' "$(again --without-cut)"
printf 'What happened, with the picture: %s\n' "$(sed -n 's/^ *report: //p' "$work/search" | head -n 1)"
