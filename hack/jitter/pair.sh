#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Measures a CPU of an emulated machine with the probe, beside four busy programs: booted as Debian's kernel is, and with the kernel
# arguments that are planned for it and nothing else. Writes before.json, after.json and the comparison into a folder:
#
#   hack/jitter/pair.sh FOLDER
#
# The machine has no root file system but BusyBox and kubectl-lowlatency; its kernel is that of the lab's image (make lab-image). QEMU
# emulates the processor, and so lengths of interruptions are those of this machine's load; what the kernel counts is what compares.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$(realpath -m "${1:?usage: pair.sh FOLDER}")
cache=${LOWLATENCY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lowlatency-operator}/lab
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

fail() {
  printf 'jitter: %s\n' "$*" >&2
  exit 1
}

kernel=$(find "$cache" -maxdepth 2 -path '*/image-*/vmlinuz-standard' -print -quit 2>/dev/null || true)
[ -n "$kernel" ] || fail "the lab's kernel is not here: make lab-image"

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp,etc,root} "$work/busybox"
(cd "$work/busybox" && apt-get -q download busybox-static >/dev/null 2>&1 && dpkg -x busybox-static*.deb .) || fail "apt-get download busybox-static fails"
cp "$work/busybox/bin/busybox" "$root/bin/"
cp "$here/init" "$root/init"
chmod +x "$root/init"
(cd "$here/../.." && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$root/" ./cmd/kubectl-lowlatency)
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"

# boot NAME [KERNEL-ARGUMENT]... boots the machine once and keeps its snapshot and what the probe measured.
boot() {
  local name=$1
  shift
  printf 'jitter: booting, %s\n' "$name" >&2
  timeout 1200 qemu-system-x86_64 -nodefaults -no-user-config -display none -accel tcg,thread=multi,tb-size=256 \
    -cpu max,vendor=GenuineIntel -machine q35 -m 1536 -smp 4,sockets=1,cores=4,threads=1 -kernel "$kernel" -initrd "$work/initrd" \
    -append "console=ttyS0 no_timer_check panic=-1 $*" -serial "file:$work/console" </dev/null
  grep -q LAB-END "$work/console" || fail "the machine printed no result; its console ends with
$(tail -n 15 "$work/console")"
  mkdir -p "$work/$name"
  sed -n '/LAB-BEGIN/,/LAB-END/p' "$work/console" | grep -v LAB- | tr -d '\r' | base64 -d | tar -xz -C "$work/$name"
  cp "$work/$name/jitter.json" "$out/$name.json"
}

boot before
# shellcheck disable=SC2046 # each argument is a word.
boot after $("$root/kubectl-lowlatency" plan -f "$here/profile.yaml" --root "$work/before/snapshot.tar.gz" -o jsonpath='{range [*].kernelArguments[*]}{@} {end}')
"$root/kubectl-lowlatency" probe compare "$out/before.json" "$out/after.json" -o svg >"$out/pair.svg"
"$root/kubectl-lowlatency" probe compare "$out/before.json" "$out/after.json" | tee "$out/pair.txt"
