#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Runs the demo with what it needs, and says what takes time before it takes it. On a terminal, the demo gets a process group
# of its own, so that Ctrl-C ends the demo and not make as well, which would call it an error.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

hack/toolchain.sh envtest

program=bin/demo
if [ -x "$program" ]; then what='compiling what has changed'; else what='compiling the demo (once; some minutes)'; fi
printf '%s ...\n' "$what"
started=$SECONDS
CGO_ENABLED=0 go build -trimpath -o "$program" ./hack/demo
# On a terminal, the line gets its end.
[ ! -t 1 ] || printf '\033[1A\r\033[K'
printf '%s ... done in %d s\n' "$what" $((SECONDS - started))

TMPDIR=${LOWLATENCY_DEMO_TMP:-$(hack/fast-tmp.sh)}
export TMPDIR
[ ! -t 0 ] || set -m
"$program" "$@"
