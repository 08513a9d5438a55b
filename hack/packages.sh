#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Knows the programs of Debian that targets of the Makefile run, and the packages that bring them:
#
#   hack/packages.sh check TARGET...   fail, naming program and package, when a target lacks one; before the target starts
#   hack/packages.sh install TARGET... install what these targets lack; without one, what any target lacks
set -euo pipefail

# table has a line for each program, or file by its whole path: its name, its packages with commas between them, and the targets that need it.
# gcc has the name of its own architecture, too; it comes without the headers of the C library when recommended packages are left out.
table() {
  cat <<'EOF'
lstopo-no-graphics  hwloc-nox        test-hwloc
ip                  iproute2         test latency-pictures test-testpmd
openssl             openssl          test
jq                  jq               test docs-test
curl                curl             example-hosts docs-test
gcc                 gcc,libc6-dev    test judge-latency latency-pictures bench lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload traffic-image image-twice test-docker-build release test-release docs-test
/usr/include/stdio.h libc6-dev       test judge-latency latency-pictures bench lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload traffic-image image-twice test-docker-build release test-release docs-test
x86_64-linux-gnu-gcc  gcc-x86-64-linux-gnu,libc6-dev-amd64-cross  lab-pools lab-latency traffic-image image-twice test-docker-build release test-release docs-test
aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu,libc6-dev-arm64-cross lab-pools lab-latency traffic-image image-twice test-docker-build release test-release docs-test
dpkg-deb            dpkg             lab-pools lab-latency traffic-image image-twice test-docker-build release test-release docs-test
apt-get             apt              test-must-gather lab lab-short lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload lab-enact lab-image jitter-pair traffic-image image-twice test-docker-build release test-release docs-test
tc                  iproute2         judge-latency latency-pictures bench test-testpmd
sockperf            sockperf         judge-latency bench lab-judges
qperf               qperf            judge-latency lab-judges
oslat               rt-tests         judge-jitter
dpdk-testpmd        dpdk-dev         test-testpmd
sysctl              procps           test-testpmd
qemu-system-x86_64  qemu-system-x86  lab lab-short lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload lab-enact lab-image jitter-pair
systemctl           systemd          lab lab-short lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload lab-enact lab-image
qemu-img            qemu-utils       lab lab-short lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload lab-enact lab-image
mmdebstrap          mmdebstrap       lab lab-short lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload lab-enact lab-image test-must-gather test-docker-build
mke2fs              e2fsprogs        lab lab-short lab-pools lab-latency lab-netem lab-stamps lab-judges lab-onload lab-enact lab-image
cpio                cpio             lab jitter-pair
git                 git              test docs-test bundle-fixture test-upgrade olm argocd argocd-olm lab-onload lab-pools lab-latency lab-enact traffic-image image-twice test-docker-build release test-release
tar                 tar              bundle-fixture test-upgrade olm argocd-olm test-hwloc lab-onload lab-pools lab-latency jitter-pair
buildah             buildah          test-docker-build
ethtool             ethtool          lab-stamps
hwstamp_ctl         linuxptp         lab-stamps
strip               binutils         lab-onload
dpkg                dpkg             lab lab-pools lab-latency lab-stamps jitter-pair
script              bsdutils         demo-picture
chromium            chromium         dashboard-picture
node                nodejs           dashboard-picture
npm                 npm              dashboard-picture
qemu-system-aarch64 qemu-system-arm  lab
EOF
}

# is_here looks for a program of the table, or for a file.
is_here() {
  case $1 in
  /*) [ -e "$1" ] ;;
  *) command -v "$1" >/dev/null || PATH=$PATH:/usr/sbin:/sbin command -v "$1" >/dev/null ;;
  esac
}

# missing prints program and package of what targets lack; without targets, of what any lacks.
missing() {
  local program package targets target
  while read -r program package targets; do
    if [ $# -gt 0 ]; then
      local wanted=no
      for target in "$@"; do case " $targets " in *" $target "*) wanted=yes ;; esac; done
      [ "$wanted" = yes ] || continue
    fi
    is_here "$program" || printf '%s %s\n' "$program" "$package"
  done < <(table)
}

case ${1:-} in
check)
  shift
  lacking=$(missing "$@")
  [ -z "$lacking" ] && exit 0
  printf 'make %s needs programs that are not here:\n' "$*" >&2
  while read -r program package; do printf '  %-20s of the package %s\n' "$program" "$package" >&2; done <<<"$lacking"
  printf 'make packages TARGETS="%s" installs them on Debian.\n' "$*" >&2
  exit 1
  ;;
install)
  shift
  for target in "$@"; do
    grep -q -e "^$target:" "$(dirname "${BASH_SOURCE[0]}")/../Makefile" || {
      printf 'packages: make has no target %s\n' "$target" >&2
      exit 2
    }
  done
  lacking=$(missing "$@")
  if [ -z "$lacking" ]; then
    printf 'every program is here%s\n' "${*:+ that these targets run: $*}"
    exit 0
  fi
  mapfile -t packages < <(awk '{print $2}' <<<"$lacking" | tr , '\n' | sort -u)
  command -v apt-get >/dev/null || {
    printf 'packages: this is no Debian; install what brings these programs:\n%s\n' "$lacking" >&2
    exit 1
  }
  sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"
  ;;
*)
  printf 'usage: hack/packages.sh check TARGET... | install [TARGET...]\n' >&2
  exit 2
  ;;
esac
