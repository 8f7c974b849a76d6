#!/usr/bin/env bash
# Installs schemathesis, which checks the API's contract, in a folder of its own (root or not;
# needs python3-venv). Prints the path of the program.
set -euo pipefail
dir=${1:?folder}
version=4.32.5
if [ ! -x "$dir/bin/schemathesis" ] || ! "$dir/bin/schemathesis" --version | grep -qF "$version"; then
	python3 -m venv "$dir"
	"$dir/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" >&2
fi
echo "$dir/bin/schemathesis"
