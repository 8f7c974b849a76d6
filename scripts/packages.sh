#!/usr/bin/env bash
# Lists packages: those whose tests need neither root nor a network (pure), or the others
# (parts), of which the longest come first, so that none is left alone at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
longest='service switch testbed zookeeper redis gossip scripts pipeline faults hosts'
parts='^netsplit/(e2e/|internal/labtest$|testbed/(lab|agent|disk|nft|proc)$)'
case ${1-} in
pure)
	$go list ./... | grep -vE "$parts"
	echo netsplit/e2e/arch
	;;
parts)
	printf 'netsplit/e2e/%s\n' $longest
	$go list ./... | grep -E "$parts" | grep -vxE "netsplit/e2e/(arch|${longest// /|})"
	;;
*)
	echo "usage: $0 pure|parts" >&2
	exit 2
	;;
esac
