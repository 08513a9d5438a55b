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
# The packages come from where this machine's own apt gets them, or from LAB_APT_SOURCES, lines of "deb URI SUITE COMPONENT"
# for Debian bookworm, and LAB_BACKPORTS_SOURCE, a line like "deb http://deb.debian.org/debian bookworm-backports main".
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
release=bookworm
backports=$release-backports

fail() {
  printf 'lab: %s\n' "$*" >&2
  exit 1
}

for tool in mmdebstrap mke2fs; do
  command -v "$tool" >/dev/null || fail "$tool is missing: install Debian's mmdebstrap and e2fsprogs"
done
[ "$(id -u)" = 0 ] || fail "building the lab's kernel needs root: it changes into a root file system to make the initial memory disk"
out=${1:?"usage: build.sh OUT"}
rootfs=$out/rootfs
trap 'rm -rf "$rootfs"' EXIT

# sources prints the apt lines of the release that this machine is configured with, and that of its backports.
sources() {
  local known
  known=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages')
  if [ -n "${LAB_APT_SOURCES:-}" ]; then
    printf '%s\n' "$LAB_APT_SOURCES"
  else
    awk -v r="$release" '$3 == "main" && ($2 == r || $2 == r "-updates" || $2 == r "-security") && !seen[$0]++ {print "deb", $0}' <<<"$known"
  fi
  if [ -n "${LAB_BACKPORTS_SOURCE:-}" ]; then
    printf '%s\n' "$LAB_BACKPORTS_SOURCE"
  else
    awk -v r="$release" -v b="$backports" '$2 == r && $3 == "main" {print "deb", $1, b, "main"; exit}' <<<"$known"
  fi
}

mapfile -t lines < <(sources)
[ "${#lines[@]}" -gt 1 ] || fail "this machine's apt knows no archive of Debian $release: set LAB_APT_SOURCES to lines like 'deb URI $release main', and LAB_BACKPORTS_SOURCE to one like 'deb URI $backports main'"

# The drivers of hardware that QEMU does not have are most of what would be unpacked.
excluded=(
  '/usr/share/man/*' '/usr/share/doc/*' '/usr/share/locale/*'
)
for folder in drivers/gpu drivers/media drivers/net/wireless net/wireless drivers/infiniband drivers/staging drivers/isdn sound; do
  excluded+=("/lib/modules/*/kernel/$folder/*" "/usr/lib/modules/*/kernel/$folder/*")
done
options=()
for path in "${excluded[@]}"; do options+=(--dpkgopt="path-exclude=$path"); done

# The initial memory disk is made while the kernel is installed, so its settings come first.
mmdebstrap --mode=root --variant=minbase --format=directory \
  --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt=force-unsafe-io --dpkgopt=force-confold "${options[@]}" \
  --essential-hook="mkdir -p \"\$1/etc/initramfs-tools\" && cp -r '$here/initramfs-tools/.' \"\$1/etc/initramfs-tools/\"" \
  --include="udev,kmod,zstd,initramfs-tools,linux-base/$backports,linux-image-rt-amd64/$backports" \
  "$release" "$rootfs" "${lines[@]}" </dev/null

kernel=$(find "$rootfs/boot" -name 'vmlinuz-*-rt-amd64')
[ "$(wc -l <<<"$kernel")" = 1 ] && [ -n "$kernel" ] || fail "not one kernel was installed, but these: $kernel"
cp "$kernel" "$out/vmlinuz"
cp "${kernel/vmlinuz-/initrd.img-}" "$out/initrd"
modules=$rootfs/usr/lib/modules/${kernel##*/vmlinuz-}
# Room for the tables of the file system, besides the files.
kilobytes=$(($(du -s --apparent-size --block-size=1K "$modules" | cut -f 1) * 5 / 4 + 8192))
mke2fs -q -F -t ext4 -L modules -O ^has_journal -d "$modules" "$out/modules.raw" "${kilobytes}k"
