// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package alerts puts the alerts of config/prometheus before promtool: see make test-alerts.
package alerts
