#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Runs every fuzz target of this module for a while, one after the other; finding none is an error:
#
#   hack/fuzz.sh [duration of each, default 30s]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
duration=${1:-30s}
# What targets write goes to memory where there is room, what Go builds stays on disk; see the Makefile.
export GOTMPDIR=${TMPDIR:-/tmp}
TMPDIR=$(hack/fast-tmp.sh)
export TMPDIR
count=0
failed=()
for package in $(hack/packages-with.sh '^func Fuzz'); do
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$package"/*_test.go | cut -d' ' -f2); do
    printf '%s\n' "=== $target in $package"
    # Go may report its own deadline as a failure (golang/go#75804); one that found an input names it.
    if output=$(go test -exec 'env -u GOTMPDIR' "$package" -run '^$' -fuzz "^$target\$" -fuzztime "$duration" -fuzzminimizetime 10x 2>&1); then
      printf '%s\n' "$output"
    elif grep -q '^    context deadline exceeded$' <<<"$output" && ! grep -q 'Failing input' <<<"$output"; then
      grep '^fuzz: ' <<<"$output"
      printf '%s\n' "ended by the deadline without a finding"
    else
      printf '%s\n' "$output"
      sed -n "s|^ *Failing input written to |$package/|p" <<<"$output" | xargs -r tail -n +1
      failed+=("$target in $package")
    fi
    count=$((count + 1))
  done
done
if [ "$count" -eq 0 ]; then
  printf 'fuzz: no fuzz target found\n' >&2
  exit 1
fi
if [ "${#failed[@]}" -gt 0 ]; then
  printf 'fuzz: %s failed; an input that it found lies in testdata/fuzz of the package\n' "${failed[@]}" >&2
  exit 1
fi
printf 'fuzz: %d targets ran for %s each without a finding\n' "$count" "$duration"
