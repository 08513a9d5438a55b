#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints a whole deployment, a folder of config/, with an image, without changing a file of the work tree:
#
#   hack/kustomize-build.sh path/to/kustomize default registry/name:tag
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
overlay=$(mktemp -d config/.overlay.XXXXXX)
trap 'rm -rf "$overlay"' EXIT
cat >"$overlay/kustomization.yaml" <<YAML
resources: [../$2]
sortOptions: {order: legacy}
YAML
(cd "$overlay" && "$1" edit set image "controller=$3" >&2)
"$1" build "$overlay"
