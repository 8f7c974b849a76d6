#!/usr/bin/env bash
# Builds the Debian package of the programs in a folder (the first argument, as "make build"
# leaves it in bin) and prints its path, in the folder that is the second argument. Needs the
# modules that they were built from, and neither root nor a network. MAINTAINER is who stands
# behind the package.
set -euo pipefail
bin=$(realpath "${1:?folder of the programs}")
out=$(realpath "${2:?folder of the package}")
cd "$(dirname "$0")/.."
go=${GO:-go}
umask 022

version=$("$bin/netsplit" --version) # netsplit version COMMIT
version=${version##* }
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
case $version in dev | *-dirty) epoch=${SOURCE_DATE_EPOCH:-$(date +%s)} ;; esac # the time of the build
version=0~$(date -u -d "@$epoch" +%Y%m%d%H%M%S)+${version//[^a-zA-Z0-9]/+}
arch=$(dpkg --print-architecture)
maintainer=${MAINTAINER:-$(git log -1 --format='%an <%ae>' 2>/dev/null || echo "root <root@$(hostname -f)>")}

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
doc=$tree/usr/share/doc/netsplit

# The helper programs must be beside netsplit, which looks for them where it is itself.
lib=usr/lib/netsplit
for program in "$bin"/netsplit "$bin"/*-client; do
	install -D -m 755 "$program" "$tree/$lib/$(basename "$program")"
	strip --strip-unneeded --remove-section=.comment "$tree/$lib/$(basename "$program")"
done
mkdir -p "$tree/usr/bin"
ln -s "../lib/netsplit/netsplit" "$tree/usr/bin/netsplit"

"$bin/netsplit" man "$tree/usr/share/man/man1" >/dev/null
completion() { # shell, file
	mkdir -p "$(dirname "$tree/$2")"
	"$bin/netsplit" completion "$1" >"$tree/$2"
}
completion bash usr/share/bash-completion/completions/netsplit
completion zsh usr/share/zsh/vendor-completions/_netsplit
completion fish usr/share/fish/vendor_completions.d/netsplit.fish

install -D -m 644 -t "$tree/lib/systemd/system" deploy/systemd/*.service
install -D -m 644 -t "$tree/etc/netsplit" deploy/systemd/netsplit.yaml
install -D -m 644 deploy/systemd/netsplit.sysusers "$tree/usr/lib/sysusers.d/netsplit.conf"
install -D -m 644 deploy/systemd/netsplit.tmpfiles "$tree/usr/lib/tmpfiles.d/netsplit.conf"
# Documents, and most files that they point to, lie as in the source, so that links work. Those to
# code do not.
install -D -m 644 -t "$doc" README.md deploy/debian/copyright
install -D -m 644 -t "$doc/docs" docs/*.md docs/*.png
install -D -m 644 -t "$doc/docs/findings" docs/findings/*
find deploy/targets deploy/systemd deploy/examples/go e2e/targets/my-redis e2e/targets/*/README.md e2e/research/*/README.md \
	-type f ! -name '*.go' -exec install -D -m 644 {} "$doc/{}" \;
install -D -m 644 deploy/debian/overrides "$tree/usr/share/lintian/overrides/netsplit"
mkdir -p "$doc/deploy/examples"
cp -r deploy/grafana deploy/prometheus deploy/python "$doc/deploy/"
cp -r deploy/examples/ci "$doc/deploy/examples/"
find "$doc/deploy" \( -name __pycache__ -o -name '*.go' \) -prune -exec rm -r {} +
cat >"$doc/changelog" <<EOF
netsplit ($version) unstable; urgency=medium

  * Built from this state of the source.

 -- $maintainer  $(date -u -R -d "@$epoch")
EOF

# The licences of what others wrote and the programs contain ask for a copy of them.
cache=$($go env GOMODCACHE)
{
	echo "Go: its runtime and standard library"
	cat "$($go env GOROOT)/LICENSE"
	for program in "$tree/$lib"/*; do $go version -m "$program"; done | awk '$1 == "dep" && $2 != "netsplit" { print $2 "@" $3 }' | sort -u | while read -r module; do
		folder=$cache/$(sed 's/[A-Z]/!\L&/g' <<<"$module")
		licences=$(find "$folder" -type f -iregex '.*/\(licen[cs]e\|copying\|notice\|patents\)[^/]*' -not -iname '*.go' | sort)
		[ -n "$licences" ] || { echo "deb.sh: $module has no licence in $folder" >&2 && exit 1; }
		while read -r file; do
			printf '\n%s: %s\n\n' "$module" "${file#"$folder"/}"
			cat "$file"
		done <<<"$licences"
	done
} >"$doc/modules.txt"

chmod -R a+rX,go-w "$tree"
find "$tree/usr/share/man" "$doc/changelog" "$doc/modules.txt" -type f -exec gzip -9n {} +

libc=libc6
newest=$(for f in "$tree/$lib"/*; do objdump -T "$f" 2>/dev/null || true; done | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
[ -z "$newest" ] || libc="libc6 (>= ${newest#GLIBC_})"
mkdir "$tree/DEBIAN"
sed -e "s|@VERSION@|$version|; s|@ARCH@|$arch|; s|@MAINTAINER@|$maintainer|; s|@LIBC@|$libc|" \
	-e "s|@SIZE@|$(du -k -s --apparent-size "$tree" | cut -f 1)|" deploy/debian/control.in >"$tree/DEBIAN/control"
echo /etc/netsplit/netsplit.yaml >"$tree/DEBIAN/conffiles"
install -m 755 -t "$tree/DEBIAN" deploy/debian/{postinst,prerm,postrm}
(cd "$tree" && find usr lib -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
find "$tree" -exec touch --no-dereference -d "@$epoch" {} +

deb=$out/netsplit_${version}_$arch.deb
SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz -z"${LEVEL:-6}" --build "$tree" "$deb" >&2
echo "$deb"
