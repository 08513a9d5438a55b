#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints which part of the statements below a folder the tests executed, and fails below a minimum:
#
#   hack/coverage.sh cover.out internal/ 85
set -euo pipefail

awk -v folder="/$2" -v minimum="$3" '
  NR > 1 && index($1, folder) {
    block = $1
    statements[block] = $2
    if ($3 > 0) executed[block] = 1
  }
  END {
    for (block in statements) {
      all += statements[block]
      if (block in executed) done += statements[block]
    }
    if (all == 0) { printf "coverage: the profile has no statement below %s\n", substr(folder, 2); exit 1 }
    percent = 100 * done / all
    printf "coverage: %.1f %% of the statements below %s, at least %s %% wanted\n", percent, substr(folder, 2), minimum
    exit percent < minimum
  }' "$1"
