#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Builds the disk of a machine that boots by itself: Debian on a partition, with GRUB installed for real, by Debian's own
# grub-install and update-grub inside the machine. Called by package test/lab, which keeps the result:
#
#   hack/lab/grub/build.sh OUT
#
# OUT must hold authorized_keys. Afterwards it also holds disk.raw and host_key.pub, the machine's public ssh key.
#
# ../debian.sh says where the packages come from.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/lab/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/../debian.sh"
# Room for the images of containers, too; the file has holes where nothing is.
megabytes=4096
# The partition begins where partitioning tools put the first one; GRUB's core fits in front of it.
start=2048

need_tools "mmdebstrap, e2fsprogs and qemu-system-x86" mmdebstrap mke2fs qemu-system-x86_64
need_root "the lab's disk with GRUB"
out=${1:?"usage: build.sh OUT"}
[ -s "$out/authorized_keys" ] || fail "$out/authorized_keys is missing"
rootfs=$out/rootfs
trap 'rm -rf "$rootfs" "$out/vmlinuz" "$out/initrd"' EXIT

lines=$(apt_lines)
debootstrap "$rootfs" "$(listed "$here/packages.txt")" "$lines" --essential-hook="cp -r '$here/root/.' \"\$1/\""

cp -r "$here/root/." "$rootfs/"
open_to_tests "$rootfs" "$out"
systemctl --root="$rootfs" enable lab-install-grub.service
rm -rf "$rootfs"/var/lib/apt/lists/* "$rootfs"/var/cache/apt/*
cp "$rootfs"/boot/vmlinuz-* "$out/vmlinuz"
cp "$rootfs"/boot/initrd.img-* "$out/initrd"

# One bootable Linux partition in a table of DOS: status, type and first and last sector, in the order of the bytes.
sectors=$((megabytes * 2048 - start))
le32() { printf '%02x%02x%02x%02x' $(($1 & 255)) $(($1 >> 8 & 255)) $(($1 >> 16 & 255)) $(($1 >> 24 & 255)); }
truncate -s "${megabytes}M" "$out/disk.raw"
# GRUB reads no file system whose metadata has a seed for its checksums, and no orphan file.
mke2fs -q -F -t ext4 -O ^metadata_csum_seed -L root -d "$rootfs" -E "offset=$((start * 512)),lazy_itable_init=1" \
  "$out/disk.raw" "$((sectors / 2))k"
table=8000000083000000$(le32 "$start")$(le32 "$sectors")
printf "$(sed 's/../\\x&/g' <<<"$table")" |
  dd of="$out/disk.raw" bs=1 seek=446 conv=notrunc status=none
printf '\x55\xaa' | dd of="$out/disk.raw" bs=1 seek=510 conv=notrunc status=none

# The first boot installs GRUB and switches the machine off.
timeout 1200 qemu-system-x86_64 -nodefaults -no-user-config -display none -vga none -accel tcg,thread=multi \
  -cpu max -machine q35,sata=off,smbus=off,i8042=off,vmport=off -m 1024M -smp 2 -no-reboot \
  -kernel "$out/vmlinuz" -initrd "$out/initrd" -append "console=ttyS0,115200 root=/dev/vda1 rw panic=5 no_timer_check" \
  -drive "file=$out/disk.raw,if=none,id=disk,format=raw,cache=unsafe" -device virtio-blk-pci,drive=disk \
  -device virtio-rng-pci -serial "file:$out/install.log" || fail "the machine that installs GRUB did not end: see $out/install.log"
grep -q 'lab: GRUB is installed' "$out/install.log" || fail "GRUB was not installed: $(tail -n 20 "$out/install.log")"
