#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Generates everything again and fails when a file changes by it. The changes stay in the work tree, to be
# looked at and committed. With CI=true, the work tree must be clean afterwards as well. Fails, too, when a go.mod is not
# tidy, when a licence is not accepted (generate sees it), and when an image of others is named without its digest.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# state prints each file that is not ignored, with the hash of its content.
state() {
  git ls-files --cached --others --exclude-standard | sort -u | while IFS= read -r file; do
    if [ -f "$file" ]; then printf '%s %s\n' "$(git hash-object --no-filters -- "$file")" "$file"; fi
  done
}

# without_digest prints each line of a Dockerfile or manifest that names an image of others without its digest. The name
# controller is our own image's, which whoever installs replaces; registry.example.com is nobody's, and stands in samples for the
# programs of whoever reads them.
without_digest() {
  git ls-files -- '*Dockerfile*' 'config/*.yaml' 'hack/*.yaml' 'bundle/manifests/*.yaml' |
    xargs grep -HnE '^(ARG [A-Z_]*IMAGE=|FROM |[ -]*image: )' |
    grep -vE '@sha256:[0-9a-f]{64}|FROM .*\$\{[A-Z_]+\}|=scratch$|FROM scratch|image: "?(controller:latest|registry[.]example[.]com/|ghcr.io/lowlatency-dev/|\{\{ include "lowlatency-operator[.](image|trafficImage)")'
}

if unpinned=$(without_digest); then
  printf 'verify: these images need a digest (name:tag@sha256:...):\n%s\n' "$unpinned" >&2
  exit 1
fi

before=$(state)
make --no-print-directory manifests generate catalog helm
for module in . test/kubelet test/olm test/gitops test/helm hack/image hack/olm hack/argocd; do
  (cd "$module" && go mod tidy -diff) || {
    printf 'verify: %s/go.mod or go.sum is not tidy: run "go mod tidy" there\n' "$module" >&2
    exit 1
  }
done
changed=$({ diff <(printf '%s\n' "$before") <(state) || true; } | sed -n 's/^[<>] [0-9a-f]* //p' | sort -u)
if [ -n "$changed" ]; then
  git --no-pager diff --stat || true
  printf 'verify: these files are not what their sources generate; commit them as they are now:\n%s\n' "$changed" >&2
  exit 1
fi
if [ "${CI:-}" = true ] && [ -n "$(git status --porcelain)" ]; then
  git --no-pager status --short
  printf 'verify: the work tree has changes that are not committed\n' >&2
  exit 1
fi
printf 'verify: everything generated is up to date\n'
