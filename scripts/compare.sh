#!/usr/bin/env bash
# Runs the same search with two strategies, cofi and random, several times each,
# replays what they found, and prints both side by side. As root; takes hours,
# and goes on where it was interrupted: a campaign that has a file "done" in its
# directory is not run again.
#
#   OUT=runs/compare   where records are kept
#   TARGETS, SEEDS, FAULTS, CLEAN, LABS, REPLAYS: see below
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
out=${OUT:-runs/compare}
# Listed beforehand, so that nobody chooses them by their outcome.
read -r -a seeds <<<"${SEEDS:-11 22 33 44 55}"
read -r -a targets <<<"${TARGETS:-gossip redis-sentinel}"
faults=${FAULTS:-30} # fault runs of each campaign, the budget of both strategies
clean=${CLEAN:-3}
labs=${LABS:-2}
replays=${REPLAYS:-10}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
$go build -C e2e/research -o "$work/compare" ./bench/compare

for target in "${targets[@]}"; do
  path=$target settings=()
  [ "$target" != gossip ] || { path=$PWD/e2e/targets/gossip/target.yaml settings=(--set bug=true); }
  for seed in "${seeds[@]}"; do
    for strategy in cofi random; do # in turn, so that both meet the same machine
      dir=$out/$target/$strategy/$seed
      [ ! -e "$dir/done" ] || continue
      rm -rf "$dir"
      mkdir -p "$dir"
      echo "$(date -u +%H:%M:%S) $target, $strategy, seed $seed (load $(cut -d' ' -f1 /proc/loadavg))" >&2
      code=0
      bin/netsplit campaign "$path" --runs-dir "$dir" --strategy "$strategy" --seed "$seed" --clean "$clean" --faults "$faults" \
        --labs "$labs" "${settings[@]}" >"$dir/outcome.txt" 2>"$dir/progress.txt" || code=$?
      case $code in
        0 | 3 | 4) touch "$dir/done" ;; # 3: findings, 4: no run could be judged
        *) tail -n 5 "$dir/progress.txt" "$dir/outcome.txt" >&2; echo "compare: the campaign ended with status $code; run this again to go on" >&2; exit 1 ;;
      esac
    done
  done
done

if [ "$replays" -gt 0 ]; then
  "$work/compare" -replays "$replays" plan "$out" >"$work/plan"
  while IFS=$'\t' read -r dir run times; do
    echo "$(date -u +%H:%M:%S) replay of $run, $times times" >&2
    bin/netsplit replay "$run" -n "$times" --labs "$labs" --runs-dir "$dir" </dev/null >>"$dir/replays.txt" 2>>"$dir/progress.txt"
  done <"$work/plan"
fi
"$work/compare" table "$out"
