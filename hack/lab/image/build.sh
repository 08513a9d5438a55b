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
# The packages come from where this machine's own apt gets them, or from LAB_APT_SOURCES: lines of
# "deb URI SUITE COMPONENT" for Debian bookworm.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
release=bookworm
megabytes=2560

fail() {
  printf 'lab: %s\n' "$*" >&2
  exit 1
}

for tool in mmdebstrap mke2fs; do
  command -v "$tool" >/dev/null || fail "$tool is missing: install Debian's mmdebstrap and e2fsprogs"
done
[ "$(id -u)" = 0 ] || fail "building the lab's root file system needs root: it changes into it to run Debian's installation scripts"
out=${1:?"usage: build.sh OUT"}
[ -s "$out/authorized_keys" ] || fail "$out/authorized_keys is missing"
rootfs=$out/rootfs
trap 'rm -rf "$rootfs"' EXIT

# sources prints the apt lines of the release that this machine is configured with.
sources() {
  if [ -n "${LAB_APT_SOURCES:-}" ]; then
    printf '%s\n' "$LAB_APT_SOURCES"
    return
  fi
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk -v r="$release" '$3 == "main" && ($2 == r || $2 == r "-updates" || $2 == r "-security") && !seen[$0]++ {print "deb", $0}'
}

mapfile -t lines < <(sources)
[ "${#lines[@]}" -gt 0 ] || fail "this machine's apt knows no archive of Debian $release: set LAB_APT_SOURCES to lines like 'deb URI $release main'"

# Documentation and the drivers of hardware that QEMU does not have are most of what would be unpacked.
excluded=(
  '/usr/share/man/*' '/usr/share/doc/*' '/usr/share/locale/*'
  '/lib/modules/*/kernel/drivers/gpu/*' '/lib/modules/*/kernel/drivers/media/*'
  '/lib/modules/*/kernel/drivers/net/wireless/*' '/lib/modules/*/kernel/net/wireless/*'
  '/lib/modules/*/kernel/drivers/infiniband/*' '/lib/modules/*/kernel/arch/x86/crypto/*'
  '/lib/modules/*/kernel/drivers/staging/*' '/lib/modules/*/kernel/drivers/isdn/*'
  '/lib/modules/*/kernel/sound/*'
)
options=()
for path in "${excluded[@]}"; do options+=(--dpkgopt="path-exclude=$path"); done

packages=$(sed -e '/^#/d' -e '/^$/d' "$here/packages.txt" | paste -sd,)
# The initial memory disks are made while the kernels are installed, so their settings come first.
mmdebstrap --mode=root --variant=minbase --format=directory \
  --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt=force-unsafe-io "${options[@]}" \
  --essential-hook="mkdir -p \"\$1/etc/initramfs-tools\" && cp -r '$here/root/etc/initramfs-tools/.' \"\$1/etc/initramfs-tools/\"" \
  --dpkgopt=force-confold \
  --include="$packages" "$release" "$rootfs" "${lines[@]}" </dev/null

cp -r "$here/root/." "$rootfs/"
install -d -m 700 "$rootfs/root/.ssh"
install -m 600 "$out/authorized_keys" "$rootfs/root/.ssh/authorized_keys"
# dropbear-bin brings no directory for its keys, and without a host key it ends in the key exchange.
install -d -m 700 "$rootfs/etc/dropbear"
chroot "$rootfs" dropbearkey -t ed25519 -f /etc/dropbear/dropbear_ed25519_host_key |
  grep '^ssh-ed25519 ' >"$out/host_key.pub"
chroot "$rootfs" passwd -d root >/dev/null

systemctl --root="$rootfs" enable dropbear.service systemd-networkd.service
# A test that wants them starts them. Debian's tuned fails over its missing folder of state.
systemctl --root="$rootfs" disable tuned.service irqbalance.service
install -d -m 755 "$rootfs/var/lib/tuned"
systemctl --root="$rootfs" mask systemd-networkd-wait-online.service systemd-binfmt.service systemd-pstore.service \
  systemd-timesyncd.service systemd-resolved.service getty@tty1.service serial-getty@ttyS0.service apt-daily.timer \
  apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer dpkg-db-backup.timer

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
