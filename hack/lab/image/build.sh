#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Builds what a machine of the lab boots from. Called by package test/lab, which keeps the result:
#
#   hack/lab/image/build.sh OUT
#
# OUT must hold authorized_keys. Afterwards it also holds
#
#   disk.raw                          the root file system, ext4 on the whole disk: no partition, no boot loader
#   vmlinuz-{rt,standard}             the two kernels, which QEMU loads itself
#   initrd-{rt,standard}              their initial memory disks; ext4 and virtio are modules in Debian's kernels
#   host_key.pub                      the machine's public ssh key
#
# ../debian.sh says where the packages come from.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/lab/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/../debian.sh"
megabytes=2560

need_tools "mmdebstrap and e2fsprogs" mmdebstrap mke2fs
need_root "the lab's root file system"
out=${1:?"usage: build.sh OUT"}
[ -s "$out/authorized_keys" ] || fail "$out/authorized_keys is missing"
rootfs=$out/rootfs
trap 'rm -rf "$rootfs"' EXIT

lines=$(apt_lines)
# The initial memory disks are made while the kernels are installed, so their settings come first.
debootstrap "$rootfs" "$(listed "$here/packages.txt")" "$lines" --dpkgopt='path-exclude=/lib/modules/*/kernel/arch/x86/crypto/*' \
  --essential-hook="mkdir -p \"\$1/etc/initramfs-tools\" && cp -r '$here/root/etc/initramfs-tools/.' \"\$1/etc/initramfs-tools/\""

cp -r "$here/root/." "$rootfs/"
open_to_tests "$rootfs" "$out"

# flavour NAME GLOB copies out the kernel whose version matches.
flavour() {
  local kernel
  kernel=$(find "$rootfs/boot" -name "vmlinuz-*" | grep -E -- "$2" | head -1)
  [ -n "$kernel" ] || fail "the root file system holds no $1 kernel"
  cp "$kernel" "$out/vmlinuz-$1"
  cp "${kernel/vmlinuz-/initrd.img-}" "$out/initrd-$1"
}
flavour rt '-rt-amd64$'
flavour standard '[0-9]-amd64$'
rm -rf "$rootfs"/boot/* "$rootfs"/var/lib/apt/lists/* "$rootfs"/var/cache/apt/*

truncate -s "${megabytes}M" "$out/disk.raw"
mke2fs -q -F -t ext4 -L root -d "$rootfs" -E lazy_itable_init=1 "$out/disk.raw"
