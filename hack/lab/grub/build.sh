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
# The packages come from where this machine's own apt gets them, or from LAB_APT_SOURCES: lines of
# "deb URI SUITE COMPONENT" for Debian bookworm.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
release=bookworm
megabytes=1400
# The partition begins where partitioning tools put the first one; GRUB's core fits in front of it.
start=2048

fail() {
  printf 'lab: %s\n' "$*" >&2
  exit 1
}

for tool in mmdebstrap mke2fs qemu-system-x86_64; do
  command -v "$tool" >/dev/null || fail "$tool is missing: install Debian's mmdebstrap, e2fsprogs and qemu-system-x86"
done
[ "$(id -u)" = 0 ] || fail "building the lab's root file system needs root: it changes into it to run Debian's installation scripts"
out=${1:?"usage: build.sh OUT"}
[ -s "$out/authorized_keys" ] || fail "$out/authorized_keys is missing"
rootfs=$out/rootfs
trap 'rm -rf "$rootfs" "$out/vmlinuz" "$out/initrd"' EXIT

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

excluded=('/usr/share/man/*' '/usr/share/doc/*' '/usr/share/locale/*' '/lib/modules/*/kernel/drivers/gpu/*'
  '/lib/modules/*/kernel/drivers/infiniband/*' '/lib/modules/*/kernel/sound/*')
options=()
for path in "${excluded[@]}"; do options+=(--dpkgopt="path-exclude=$path"); done

packages=$(sed -e '/^#/d' -e '/^$/d' "$here/packages.txt" | paste -sd,)
mmdebstrap --mode=root --variant=minbase --format=directory \
  --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt=force-unsafe-io "${options[@]}" --dpkgopt=force-confold \
  --essential-hook="cp -r '$here/root/.' \"\$1/\"" \
  --include="$packages" "$release" "$rootfs" "${lines[@]}" </dev/null

cp -r "$here/root/." "$rootfs/"
install -d -m 700 "$rootfs/root/.ssh"
install -m 600 "$out/authorized_keys" "$rootfs/root/.ssh/authorized_keys"
# dropbear-bin brings no directory for its keys, and without a host key it ends in the key exchange.
install -d -m 700 "$rootfs/etc/dropbear"
chroot "$rootfs" dropbearkey -t ed25519 -f /etc/dropbear/dropbear_ed25519_host_key |
  grep '^ssh-ed25519 ' >"$out/host_key.pub"
chroot "$rootfs" passwd -d root >/dev/null
systemctl --root="$rootfs" enable dropbear.service systemd-networkd.service lab-install-grub.service
systemctl --root="$rootfs" disable tuned.service irqbalance.service
install -d -m 755 "$rootfs/var/lib/tuned"
systemctl --root="$rootfs" mask systemd-networkd-wait-online.service systemd-binfmt.service systemd-pstore.service \
  systemd-timesyncd.service systemd-resolved.service getty@tty1.service serial-getty@ttyS0.service apt-daily.timer \
  apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer dpkg-db-backup.timer
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
