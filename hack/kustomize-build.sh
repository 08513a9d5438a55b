#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints the whole deployment with an image, without changing a file of the work tree:
#
#   hack/kustomize-build.sh path/to/kustomize registry/name:tag
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
overlay=$(mktemp -d config/.overlay.XXXXXX)
trap 'rm -rf "$overlay"' EXIT
cat >"$overlay/kustomization.yaml" <<YAML
resources: [../default]
YAML
(cd "$overlay" && "$1" edit set image "controller=$2" >&2)
"$1" build "$overlay"
