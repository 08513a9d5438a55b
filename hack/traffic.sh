#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Builds lowlatency-traffic, the program that sends and answers the messages of measurements over the network, into the per-user cache, and
# prints its path:
#
#   hack/traffic.sh [release|sanitized]
#
# Only gcc and the headers of the C library and of Linux are needed (Debian: gcc libc6-dev). Every warning is an error, and gcc's static analysis has none.
# "sanitized" is for the tests: it ends at the first use of memory or arithmetic that C does not define. The path holds the checksum of source and
# flags, so that an old program is never taken for a new one.
set -euo pipefail

folder=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/cmd/lowlatency-traffic
sources=("$folder/traffic.c" "$folder/frames.c" "$folder/stamps.c")
cache=${LOWLATENCY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lowlatency-operator}
flags=(-std=c11 -Wall -Wextra -Wpedantic -Werror -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Wmissing-declarations -Wvla)
case ${1:-release} in
release) flags+=(-O2 -fanalyzer -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fPIE -pie -Wl,-z,relro,-z,now) ;;
sanitized) flags+=(-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all) ;;
*)
  printf 'usage: hack/traffic.sh [release|sanitized]\n' >&2
  exit 2
  ;;
esac

compiler=${CC:-gcc}
command -v "$compiler" >/dev/null || {
  printf 'traffic: %s is missing: install Debian'\''s gcc and libc6-dev\n' "$compiler" >&2
  exit 1
}
sum=$({ "$compiler" --version && printf '%s\n' "${flags[@]}" && cat "${sources[@]}" "$folder/frames.h" "$folder/stamps.h"; } | sha256sum | cut -c1-16)
program=$cache/bin/lowlatency-traffic-$sum/lowlatency-traffic
if [ ! -x "$program" ]; then
  mkdir -p "$(dirname "$program")"
  staging=$(mktemp "$program.XXXXXX")
  trap 'rm -f "$staging"' EXIT
  "$compiler" "${flags[@]}" -o "$staging" "${sources[@]}"
  chmod 755 "$staging"
  mv "$staging" "$program"
fi
printf '%s\n' "$program"
