#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints a whole deployment, a folder of config/, with the images of the operator and of what measures over the network, without changing a
# file of the work tree; components are folders of config/, too:
#
#   hack/kustomize-build.sh path/to/kustomize default registry/name:tag registry/traffic:tag [COMPONENT]...
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
overlay=$(mktemp -d config/.overlay.XXXXXX)
trap 'rm -rf "$overlay"' EXIT
kustomize=$1 folder=$2 image=$3 traffic=$4
shift 4
{
  printf 'resources: [../%s]\nsortOptions: {order: legacy}\n' "$folder"
  [ $# -eq 0 ] || printf 'components:\n'
  [ $# -eq 0 ] || printf -- '- ../%s\n' "$@"
} >"$overlay/kustomization.yaml"
(cd "$overlay" && "$kustomize" edit set image "controller=$image" "ghcr.io/lowlatency-dev/lowlatency-traffic=$traffic" >&2)
"$kustomize" build "$overlay"
