#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Builds Onload for a kernel of the lab's image, from its own sources, with Debian's compiler. Called by package test/lab,
# which keeps the result:
#
#   hack/lab/onload/build.sh OUT
#
# OUT must hold release, the release of the kernel. Afterwards it also holds
#
#   modules/                          the kernel modules sfc_resource, sfc_char and onload; not sfc, which no NIC here is for
#   onload/usr, onload/sbin           libraries, tools and control plane of the same build, as an installation lays them out
#   other/libonload.so                the library of the release before, which does not belong to these modules
#
# The sources come by git from where Onload's project publishes them, or from ONLOAD_REPOSITORY, the address or folder of a
# copy. Their commits are named below, and git names a commit by the checksum of all that it holds. ../debian.sh
# says where the packages come from.
set -euo pipefail

# shellcheck source=hack/lab/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/../debian.sh"
repository=${ONLOAD_REPOSITORY:-https://github.com/Xilinx-CNS/onload.git}
commit=24d0c2a76a86ad41056ce192eb9e5df35f07869c # branch v9_2
before=e455dbe47a48808d517f7c25aeea979caa991270 # branch v9_1

need_tools "mmdebstrap and git" mmdebstrap git
need_root "Onload for the lab"
out=${1:?"usage: build.sh OUT"}
kernel=$(cat "$out/release")
rootfs=$out/rootfs
trap 'rm -rf "$rootfs" "$out/git"' EXIT

# The sources come first: without them nothing else is of use.
git init -q --bare "$out/git"
timeout 600 git -C "$out/git" fetch -q --depth 1 "$repository" "$commit" "$before" </dev/null ||
  fail "Onload's sources cannot be had from $repository: set ONLOAD_REPOSITORY to a copy that has the commits $commit and $before"

lines=$(apt_lines)
debootstrap "$rootfs" "gcc,g++,make,libc6-dev,libcap-dev,perl,python3,gawk,kmod,file,linux-headers-$kernel" "$lines" ||
  fail "Debian's compiler and the headers of the kernel $kernel cannot be had; an image whose kernel the archive has replaced is made anew when its folder in the cache is removed"

# make_onload COMMIT BRANCH FOLDER PARTS ARGUMENT... builds a commit below the root file system, and of its parts for user space,
# of which src/mmake.mk has a list, those that are wanted. Its version is made of what git says of a clone: a program of that name says it.
make_onload() {
  local commit=$1 branch=$2 folder=$3 parts=$4
  shift 4
  mkdir -p "$rootfs/$folder"
  git -C "$out/git" archive "$commit" | tar -x -C "$rootfs/$folder"
  sed -i "s/^SUBDIRS[[:space:]]*:=.*/SUBDIRS := $parts/" "$rootfs/$folder/src/mmake.mk"
  printf '#!/bin/sh\n[ "$1" = show ] && echo "%s" || echo "%s"\n' \
    "$(git -C "$out/git" show -s --format='%h %cd' --date=short --abbrev=8 "$commit")" "$branch" >"$rootfs/usr/local/bin/git"
  chmod 755 "$rootfs/usr/local/bin/git"
  chroot "$rootfs" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin KVER="$kernel" LC_ALL=C "/$folder/scripts/onload_build" --no-sfc "$@" </dev/null
}

make_onload "$commit" v9_2 onload "include lib tools" --kernelver "$kernel"
make_onload "$before" v9_1 before "include lib" --user64

modules=$(find "$rootfs/onload/build" -path '*/driver/linux/onload.ko' -printf '%h\n')
user=$(find "$rootfs/onload/build" -maxdepth 1 -name 'gnu_*')
mkdir -p "$out/modules" "$out/onload/usr/bin" "$out/onload/usr/lib64" "$out/onload/sbin" "$out/other"
for module in sfc_resource sfc_char onload; do
  strip --strip-debug -o "$out/modules/$module.ko" "$modules/$module.ko"
done
install -m 755 -s "$user/lib/transport/unix/libcitransport0.so" "$out/onload/usr/lib64/libonload.so"
for tool in ip/onload_stackdump ip/onload_fuser onload_mibdump/onload_mibdump; do
  install -m 755 -s "$user/tools/$tool" "$out/onload/usr/bin/"
done
for library in "$user"/lib/onload_ext/libonload_ext.so* "$user"/lib/cplane/libefcp.so*; do
  install -m 755 -s "$library" "$out/onload/usr/lib64/"
done
install -m 755 -s "$user/tools/cplane/onload_cp_server" "$out/onload/sbin/"
install -m 755 "$rootfs/onload/scripts/onload" "$out/onload/usr/bin/"
install -m 755 -s "$(find "$rootfs/before/build" -path '*/gnu_*/lib/transport/unix/libcitransport0.so')" "$out/other/libonload.so"
