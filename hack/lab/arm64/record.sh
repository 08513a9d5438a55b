#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Boots Debian's arm64 kernel in QEMU, on 2 NUMA nodes of 2 CPUs, and writes a snapshot of it:
#
#   hack/lab/arm64/record.sh OUT.tar.gz [KERNEL-ARGUMENT]...
#
# There is no root file system: an initial memory disk holds BusyBox and kubectl-lowlatency. The device tree gives the
# NICs no NUMA node. With UEFI firmware and ACPI they could have one, but there Linux 6.1 makes one node of the two ("NUMA:
# Warning: invalid memblk node 16", QEMU 7.2). Needs Debian's qemu-system-arm and cpio, Go, and apt; LAB_APT_SOURCES may
# hold lines of "deb URI SUITE COMPONENT".
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
release=bookworm
out=$(realpath -m "${1:?usage: record.sh OUT.tar.gz [KERNEL-ARGUMENT]...}")
shift
qemu=${LAB_ARM64_QEMU:-qemu-system-aarch64}

fail() {
  printf 'lab: %s\n' "$*" >&2
  exit 1
}

command -v "$qemu" >/dev/null && command -v cpio >/dev/null || fail "install Debian's qemu-system-arm and cpio"
cache=${LOWLATENCY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lowlatency-operator}/lab/arm64
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# packages unpacks the kernel and BusyBox of arm64 into the cache, once per user.
packages() {
  local apt=$work/apt uri kernel
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/packages" "$(dirname "$cache")"
  uri=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v r="$release" '$2 == r && $3 == "main" {print $1; exit}')
  printf '%s\n' "${LAB_APT_SOURCES:-deb $uri $release main}" >"$apt/sources.list"
  local options=(-q -o "Dir::Etc::SourceList=$apt/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$apt/lists"
    -o "Dir::Cache=$apt/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Acquire::Languages=none
    -o APT::Architecture=arm64 -o APT::Architectures=arm64)
  apt-get "${options[@]}" update >&2
  kernel=$(apt-cache "${options[@]}" depends linux-image-arm64 | awk '/Depends:/ {print $2; exit}')
  (cd "$apt/packages" && apt-get "${options[@]}" download "$kernel" busybox-static >&2)
  mkdir "$work/unpacked"
  for package in "$apt"/packages/*.deb; do dpkg -x "$package" "$work/unpacked"; done
  mkdir "$work/files"
  cp "$work"/unpacked/boot/vmlinuz-* "$work/files/vmlinuz"
  find "$work/unpacked" -name e1000e.ko -exec cp {} "$work/files/" \;
  cp "$work/unpacked/bin/busybox" "$work/files/"
  mv "$work/files" "$cache"
}
[ -d "$cache" ] || packages

root=$work/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp,etc}
cp "$cache/busybox" "$root/bin/"
cp "$cache/e1000e.ko" "$here/init" "$root/"
(cd "$here/../../.." && GOARCH=arm64 CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$root/" ./cmd/kubectl-lowlatency)
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$work/initrd"

nics=()
for node in 0 1; do
  nics+=(-object "memory-backend-ram,id=m$node,size=1536M"
    -numa "node,nodeid=$node,cpus=$((2 * node))-$((2 * node + 1)),memdev=m$node"
    -device "pcie-root-port,id=p$node,bus=pcie.0,chassis=$((node + 1)),slot=$((node + 1))"
    -netdev "hubport,id=n$node,hubid=1" -device "e1000e,bus=p$node,netdev=n$node,romfile=")
done
nice -n 10 timeout 1800 "$qemu" -nodefaults -no-user-config -display none -accel tcg,thread=multi,tb-size=256 \
  -cpu cortex-a57 -machine virt,gic-version=3 -m 3072 -smp 4,sockets=2,cores=2,threads=1 "${nics[@]}" \
  -numa dist,src=0,dst=1,val=20 -kernel "$cache/vmlinuz" -initrd "$work/initrd" \
  -append "console=ttyAMA0 panic=-1 $*" -serial "file:$work/console" </dev/null
grep -q LAB-END "$work/console" || fail "the machine printed no snapshot; its console ends with
$(tail -n 15 "$work/console")"
sed -n '/LAB-BEGIN/,/LAB-END/p' "$work/console" | grep -v LAB- | tr -d '\r' | base64 -d >"$out"
