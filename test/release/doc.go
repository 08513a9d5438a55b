// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package release tries what make release has made, as whoever downloads it does: the manifests are applied by kubectl to a real API server
// that has the real definitions of what they name, and the plugin is unpacked and run.
//
// The tests have the build tag release, because they need the files of a release: make test-release runs them.
package release
