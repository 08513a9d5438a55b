#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Unpacks the QEMU of Debian's backports, for the NIC model igb with its virtual functions, which bookworm's own
# QEMU does not have. Called by package test/lab, which keeps the result:
#
#   hack/lab/qemu/build.sh OUT
#
# Afterwards OUT holds usr/bin/qemu-system-x86_64 and what it reads. Its libraries are those of Debian's
# qemu-system-x86, which must be installed. ../debian.sh says where the packages come from.
set -euo pipefail

# shellcheck source=hack/lab/debian.sh
. "$(dirname "${BASH_SOURCE[0]}")/../debian.sh"
out=${1:?"usage: build.sh OUT"}

line=$(backports_line)

work=$out/apt
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/packages"
printf '%s\n' "$line" >"$work/sources.list"
# apt gives up root for downloads, to a user who must be able to write here.
options=(-q -o "Dir::Etc::SourceList=$work/sources.list" -o Dir::Etc::SourceParts=- -o "Dir::State::Lists=$work/lists"
  -o "Dir::Cache=$work/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
apt-get "${options[@]}" update
(cd "$work/packages" && apt-get "${options[@]}" download qemu-system-x86 qemu-system-common qemu-system-data seabios)
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$out"; done
rm -rf "$work"
# Modules of another QEMU end it, so its own come first, and only those of one device are asked for.
# QEMU ends with success for a device that it does not know, and prints nothing.
[ -n "$(QEMU_MODULE_DIR=$out/usr/lib/x86_64-linux-gnu/qemu "$out/usr/bin/qemu-system-x86_64" -device igb,help)" ] ||
  fail "the QEMU of $backports has no NIC model igb, or lacks a library: install Debian's qemu-system-x86"
