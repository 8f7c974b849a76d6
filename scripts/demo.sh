#!/usr/bin/env bash
# The main job on a real system: a campaign on Redis Sentinel in a lab of its
# own, at most 6 minutes. Leaves only its record behind, also after ^C.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${NETSPLIT_RUNS:-runs/demo}
exec bin/netsplit campaign redis-sentinel \
  --runs-dir "$out" --labs "${LABS:-3}" --clean 3 --faults "${FAULTS:-12}" --budget "${BUDGET:-4m30s}" --seed "${SEED:-1}" "$@"
