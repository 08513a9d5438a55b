#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Runs the demo with what it needs, and says what takes time before it takes it. On a terminal, all of this gets a process group
# of its own, so that Ctrl-C ends it and not make as well, which would call that an error. Who asks with --oneshot for a judgement
# and interrupts it gets none: that ends with 130.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

program=bin/demo
interrupted=0
for argument in "$@"; do [ "${argument#-}" != -oneshot ] || interrupted=130; done

stopped() {
  printf '\nStopped; the demo had not begun.\n'
  exit "$interrupted"
}

prepare() {
  hack/toolchain.sh envtest
  if [ -x "$program" ]; then what='compiling what has changed'; else what='compiling the demo (once; some minutes)'; fi
  printf '%s ...\n' "$what"
  started=$SECONDS
  CGO_ENABLED=0 go build -trimpath -o "$program" ./hack/demo
  # On a terminal, the line gets its end.
  [ ! -t 1 ] || printf '\033[1A\r\033[K'
  printf '%s ... done in %d s\n' "$what" $((SECONDS - started))
  TMPDIR=${LOWLATENCY_DEMO_TMP:-$(hack/fast-tmp.sh)}
  export TMPDIR
}

# The demo ends itself, except in the moment before it listens to signals.
play() {
  status=0
  "$program" "$@" || status=$?
  [ "$status" -ne 130 ] || [ "$interrupted" -eq 130 ] || stopped
  exit "$status"
}

[ ! -t 0 ] || set -m
(
  trap stopped INT
  prepare
  trap : INT
  play "$@"
)
