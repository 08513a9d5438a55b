#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Gets the two hosts of docs/worked-example.md into a folder, as worker1.tgz and sno.tgz. They are test data of the Node Tuning Operator's
# project (Apache-2.0), taken from one commit of it, and are refused when they are not what the page was written about.
#
#   hack/example-hosts.sh [FOLDER]
#
# HOSTS_FROM names a folder or address that stands for the root of that repository, where GitHub cannot be reached; a folder may also
# hold the two files under their short names.
set -euo pipefail

folder=${1:-.}
commit=d2394aa81ffe6a5411a674128995979956f40193
from=${HOSTS_FROM:-https://raw.githubusercontent.com/openshift/cluster-node-tuning-operator/$commit}
gathered=test/e2e/performanceprofile/testdata/must-gather
image=quay-io-openshift-kni-performance-addon-operator-must-gather-sha256

# hosts has a line for each: its name, the sum of its content, its path.
hosts() {
  cat <<EOF
worker1.tgz 12ae293e556f61e9efdab75c008cd1af06a516fd7221b236a31a6d3294118f63 $gathered/must-gather.bare-metal/$image-09d31edb2171e1fe385df1238ce5a6f7ca3556efa271550a7e98e26dce290128/nodes/worker1.internal/sysinfo.tgz
sno.tgz 397f43826ed1e57636e5c229a57ef9d7f08e5e9f375b0b213f5454a40cdedffc $gathered/must-gather.sno/$image-0f7ae9cea65387b0497d6f9c28781e40f457b0f79838d65881ffb1aa779450a5/nodes/sno/sysinfo.tgz
EOF
}

# get NAME PATH FILE copies or downloads one.
get() {
  case $from in
  http://* | https://*)
    command -v curl >/dev/null || { printf 'example-hosts: curl is missing (package curl)\n' >&2; return 1; }
    curl --fail --silent --show-error --location --max-time 60 --output "$3" "$from/$2" ;;
  *) if [ -f "$from/$1" ]; then cp "$from/$1" "$3"; else cp "$from/$2" "$3"; fi ;;
  esac
}

mkdir -p "$folder"
while read -r name sum path; do
  file=$folder/$name
  if [ -f "$file" ] && printf '%s  %s\n' "$sum" "$file" | sha256sum --check --status; then
    continue
  fi
  trap 'rm -f "$file.new"' EXIT
  get "$name" "$path" "$file.new" || {
    printf 'example-hosts: %s cannot be had from %s; HOSTS_FROM=FOLDER names a checkout of openshift/cluster-node-tuning-operator, or a folder with the files\n' "$name" "$from" >&2
    exit 1
  }
  printf '%s  %s\n' "$sum" "$file.new" | sha256sum --check --status || {
    printf 'example-hosts: what is at %s is not the %s that the page was written about\n' "$from" "$name" >&2
    exit 1
  }
  chmod 644 "$file.new"
  mv "$file.new" "$file"
done < <(hosts)
printf '%s/worker1.tgz and %s/sno.tgz are here\n' "$folder" "$folder"
