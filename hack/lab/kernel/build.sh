#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Builds the PREEMPT_RT kernel of Debian's backports for the lab's image, whose own kernels are bookworm's Linux 6.1. Called
# by package test/lab, which keeps the result:
#
#   hack/lab/kernel/build.sh OUT
#
# Afterwards OUT holds
#
#   vmlinuz                           the kernel
#   initrd                            its initial memory disk, which mounts the modules
#   modules.raw                       its modules, ext4 with the label modules
#
# ../debian.sh says where the packages come from.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/lab/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/../debian.sh"

need_tools "mmdebstrap and e2fsprogs" mmdebstrap mke2fs
need_root "the lab's kernel"
out=${1:?"usage: build.sh OUT"}
rootfs=$out/rootfs
trap 'rm -rf "$rootfs"' EXIT

lines=$(apt_lines && backports_line)
# The initial memory disk is made while the kernel is installed, so its settings come first.
debootstrap "$rootfs" "udev,kmod,zstd,initramfs-tools,linux-base/$backports,linux-image-rt-amd64/$backports" "$lines" \
  --essential-hook="mkdir -p \"\$1/etc/initramfs-tools\" && cp -r '$here/initramfs-tools/.' \"\$1/etc/initramfs-tools/\""

kernel=$(find "$rootfs/boot" -name 'vmlinuz-*-rt-amd64')
[ "$(wc -l <<<"$kernel")" = 1 ] && [ -n "$kernel" ] || fail "not one kernel was installed, but these: $kernel"
cp "$kernel" "$out/vmlinuz"
cp "${kernel/vmlinuz-/initrd.img-}" "$out/initrd"
modules=$rootfs/usr/lib/modules/${kernel##*/vmlinuz-}
# Room for the tables of the file system, besides the files.
kilobytes=$(($(du -s --apparent-size --block-size=1K "$modules" | cut -f 1) * 5 / 4 + 8192))
mke2fs -q -F -t ext4 -L modules -O ^has_journal -d "$modules" "$out/modules.raw" "${kilobytes}k"
