#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Gets one version of a package of Debian for an architecture into the per-user cache, and prints its path:
#
#   hack/debian-package.sh PACKAGE VERSION ARCHITECTURE SHA256
#
# It comes from the mirrors that this machine's apt knows, by an apt with lists and architecture of its own, so that nothing is changed on
# the machine. Mirrors keep the newest version of a package only.
set -euo pipefail

if [ $# -ne 4 ]; then
  printf 'usage: hack/debian-package.sh PACKAGE VERSION ARCHITECTURE SHA256\n' >&2
  exit 2
fi
package=$1 version=$2 architecture=$3 sum=$4
cache=${LOWLATENCY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lowlatency-operator}
kept=$cache/debian/${package}_${version//[^A-Za-z0-9.+~-]/_}_$architecture.deb

matches() { printf '%s  %s\n' "$sum" "$1" | sha256sum --check --status 2>/dev/null; }

if [ -f "$kept" ] && matches "$kept"; then
  printf '%s\n' "$kept"
  exit
fi
for program in apt-get dpkg-deb; do
  command -v "$program" >/dev/null || {
    printf 'debian-package: %s is missing: packages of Debian are got on a Debian only\n' "$program" >&2
    exit 1
  }
done
mkdir -p "$(dirname "$kept")"
staging=$(mktemp -d "$kept.XXXXXX")
trap 'rm -rf "$staging"' EXIT
chmod 755 "$staging"
mkdir -p "$staging/lists/partial" "$staging/archives/partial" "$staging/download"
touch "$staging/status"
own=(-qq -o "APT::Architecture=$architecture" -o "APT::Architectures::=$architecture" -o "Dir::State::status=$staging/status"
  -o "Dir::State::Lists=$staging/lists" -o "Dir::Cache=$staging" -o "Dir::Cache::archives=$staging/archives" -o "APT::Sandbox::User=$(id -un)")
apt-get "${own[@]}" update >&2
(cd "$staging/download" && apt-get "${own[@]}" download "$package=$version" >&2) || {
  printf 'debian-package: the mirrors have no %s %s for %s, but:\n' "$package" "$version" "$architecture" >&2
  apt-cache "${own[@]}" madison "$package" >&2 || true
  exit 1
}
got=$(ls "$staging"/download/*.deb)
matches "$got" || {
  printf 'debian-package: %s %s for %s has the SHA-256 sum %s, and not %s\n' "$package" "$version" "$architecture" "$(sha256sum "$got" | cut -d' ' -f1)" "$sum" >&2
  exit 1
}
mv "$got" "$kept"
printf '%s\n' "$kept"
