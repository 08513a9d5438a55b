// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package report makes reports of a cluster for somebody who is to help, with kubectl lowlatency report on a real API server, and looks
// through them for what must not be in them.
package report
