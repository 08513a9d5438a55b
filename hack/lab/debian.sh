# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# What the build scripts of the lab share: how they get Debian, and how a person gets into a machine made of it. Sourced by
# hack/lab/*/build.sh; its content counts for the version of each of them.
#
# The packages come from where this machine's own apt gets them, or from LAB_APT_SOURCES, lines of "deb URI SUITE COMPONENT"
# for Debian bookworm, and LAB_BACKPORTS_SOURCE, a line like "deb http://deb.debian.org/debian bookworm-backports main".
release=bookworm
backports=$release-backports

fail() {
  printf 'lab: %s\n' "$*" >&2
  exit 1
}

# need_tools PACKAGES TOOL... fails when a program is missing, naming the Debian packages that bring all of them.
need_tools() {
  local packages=$1 tool
  shift
  for tool in "$@"; do
    command -v "$tool" >/dev/null || fail "$tool is missing: install Debian's $packages"
  done
}

# need_root WHAT fails for anybody but root.
need_root() {
  [ "$(id -u)" = 0 ] || fail "building $1 needs root: it changes into a root file system to run Debian's programs there"
}

known_sources() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages'
}

# apt_lines prints the apt lines of the release that this machine is configured with.
apt_lines() {
  local lines=${LAB_APT_SOURCES:-}
  [ -n "$lines" ] || lines=$(known_sources |
    awk -v r="$release" '$3 == "main" && ($2 == r || $2 == r "-updates" || $2 == r "-security") && !seen[$0]++ {print "deb", $0}')
  [ -n "$lines" ] || fail "this machine's apt knows no archive of Debian $release: set LAB_APT_SOURCES to lines like 'deb URI $release main'"
  printf '%s\n' "$lines"
}

# backports_line prints the apt line of the release's backports.
backports_line() {
  local line=${LAB_BACKPORTS_SOURCE:-}
  [ -n "$line" ] || line=$(known_sources | awk -v r="$release" -v b="$backports" '$2 == r && $3 == "main" {print "deb", $1, b, "main"; exit}')
  [ -n "$line" ] || fail "this machine's apt knows no archive of Debian $release: set LAB_BACKPORTS_SOURCE to a line like 'deb URI $backports main'"
  printf '%s\n' "$line"
}

# debootstrap ROOTFS PACKAGES LINES [OPTION...] unpacks Debian, without documentation and without the drivers of hardware that QEMU
# does not have, which are most of what would be unpacked. LINES are apt lines; an OPTION is one of mmdebstrap.
debootstrap() {
  local rootfs=$1 packages=$2 lines=$3 options=() folder
  shift 3
  for folder in man doc locale; do options+=(--dpkgopt="path-exclude=/usr/share/$folder/*"); done
  for folder in drivers/gpu drivers/media drivers/net/wireless net/wireless drivers/infiniband drivers/staging drivers/isdn sound; do
    options+=(--dpkgopt="path-exclude=/lib/modules/*/kernel/$folder/*" --dpkgopt="path-exclude=/usr/lib/modules/*/kernel/$folder/*")
  done
  mapfile -t lines <<<"$lines"
  mmdebstrap --mode=root --variant=minbase --format=directory \
    --aptopt='Acquire::Languages "none"' --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt=force-unsafe-io --dpkgopt=force-confold "${options[@]}" "$@" \
    --include="$packages" "$release" "$rootfs" "${lines[@]}" </dev/null
}

# listed FILE prints the packages that a file names, a line each, as debootstrap wants them.
listed() {
  sed -e '/^#/d' -e '/^$/d' "$1" | paste -sd,
}

# open_to_tests ROOTFS OUT lets the key in OUT/authorized_keys log in as root by ssh, writes the machine's own public key to
# OUT/host_key.pub, and leaves only those services that a test wants; one that wants TuneD or irqbalance starts it.
open_to_tests() {
  local rootfs=$1 out=$2
  install -d -m 700 "$rootfs/root/.ssh"
  install -m 600 "$out/authorized_keys" "$rootfs/root/.ssh/authorized_keys"
  # dropbear-bin brings no directory for its keys, and without a host key it ends in the key exchange.
  install -d -m 700 "$rootfs/etc/dropbear"
  chroot "$rootfs" dropbearkey -t ed25519 -f /etc/dropbear/dropbear_ed25519_host_key | grep '^ssh-ed25519 ' >"$out/host_key.pub"
  chroot "$rootfs" passwd -d root >/dev/null
  systemctl --root="$rootfs" enable dropbear.service systemd-networkd.service
  systemctl --root="$rootfs" disable tuned.service irqbalance.service
  # Debian's tuned fails over its missing folder of state.
  install -d -m 755 "$rootfs/var/lib/tuned"
  systemctl --root="$rootfs" mask systemd-networkd-wait-online.service systemd-binfmt.service systemd-pstore.service \
    systemd-timesyncd.service systemd-resolved.service getty@tty1.service serial-getty@ttyS0.service apt-daily.timer \
    apt-daily-upgrade.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer dpkg-db-backup.timer
}
