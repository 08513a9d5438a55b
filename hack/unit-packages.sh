#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Prints the packages whose tests start no API server.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
go list -f '{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... |
  grep -vE ' [^ ]*(internal/sim/apiserver|controller-runtime/pkg/envtest)( |$)' | cut -d' ' -f1
