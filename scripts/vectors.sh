#!/usr/bin/env bash
# Holds the codec against the OpenFlow 1.3 messages in the tests of other projects.
# Argument: a folder with their checkouts; without it what is needed of them is
# fetched, at the revisions that controller/of13/testdata/vectors was made from.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
from=${1:-}
if [ -z "$from" ]; then
  from=$(mktemp -d)
  trap 'rm -rf "$from"' EXIT
  while read -r name repository revision path; do
    echo "vectors: fetching $path of $repository" >&2
    git init -q "$from/$name"
    (cd "$from/$name" && git fetch -q --depth 1 "https://github.com/$repository" "$revision" && git checkout -q FETCH_HEAD -- "$path") || {
      echo "vectors: $repository could not be fetched; fetch it where you can, and give the folder: make vectors FROM=folder" >&2
      exit 1
    }
  done <<'LIST'
openvswitch openvswitch/ovs d6a632a9b16e5dca2e51eefded3a545e68ea6ba3 tests
os-ken openstack/os-ken f1041a1bf31d441bee4b12b6f03724f3850b235e os_ken/tests/packet_data/of13
loxigen floodlight/loxigen cb91500a0f1dd6dddf5f8b25bb8c3d45ab04d011 test_data/of13
python-openflow kytos/python-openflow 89940bed83f8e792f5ed5c9f12346016cd380d6f raw/v0x04
LIST
fi
$go test -count=1 -tags vectors -run '^TestVectors$' ./controller/of13 -vectors "$(realpath "$from")"
