#!/usr/bin/env bash
# Builds the programs that the end-to-end tests run into a folder, the argument.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
umask 022 # servers of targets, which are other users, run them

$go build -buildvcs=false -o "$1/" ./cmd/netsplit ./e2e/targets/gossip ./e2e/targets/lines ./e2e/targets/pipeline
for client in redis-sentinel zookeeper; do
  $go build -C deploy/clients -buildvcs=false -o "$1/$client-client" "./$client"
done
