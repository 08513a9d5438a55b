// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// An assembly file, though empty, lets the compiler take a Go function without a body: see newManagerImpl.
