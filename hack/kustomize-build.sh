#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints a whole deployment, a folder of config/, with an image, without changing a file of the work tree; components are folders
# of config/, too:
#
#   hack/kustomize-build.sh path/to/kustomize default registry/name:tag [COMPONENT]...
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
overlay=$(mktemp -d config/.overlay.XXXXXX)
trap 'rm -rf "$overlay"' EXIT
kustomize=$1 folder=$2 image=$3
shift 3
{
  printf 'resources: [../%s]\nsortOptions: {order: legacy}\n' "$folder"
  [ $# -eq 0 ] || printf 'components:\n'
  [ $# -eq 0 ] || printf -- '- ../%s\n' "$@"
} >"$overlay/kustomization.yaml"
(cd "$overlay" && "$kustomize" edit set image "controller=$image" >&2)
"$kustomize" build "$overlay"
