#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints the packages of this module whose test files have a line that matches a pattern, without compiling
# anything:
#
#   hack/packages-with.sh '^func Benchmark'
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
go list -f '{{$dir := .Dir}}{{range .TestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}{{range .XTestGoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}' ./... |
  { grep . || true; } | { xargs -r grep -lE -- "$1" || true; } | xargs -r -n 1 dirname | sort -u |
  sed "s|^$(pwd -P)|.|"
