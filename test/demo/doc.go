// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package demo runs `make demo` in terminals of usual sizes and reads their screens: see make demo-capture.
package demo
