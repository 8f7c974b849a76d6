#!/usr/bin/env bash
# Prints what this copy is, for "netsplit --version" and the records of runs: its
# commit, "-dirty" behind it if what is built was changed since, "dev" if nobody
# can tell. What campaigns write into the repository changes no program.
set -euo pipefail
cd "$(dirname "$0")/.."
commit=$(git describe --always --abbrev=12 2>/dev/null) || { echo dev; exit; }
[ -z "$(git status --porcelain -- . ':!*.jsonl' ':!*.md' ':!e2e/research/table3/*.yaml')" ] || commit+=-dirty
echo "$commit"
