// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package docs does what the documents tell their readers to do: it runs their commands, compares what they show of the output, and
// looks at their objects, pictures and links. With -all, it also runs commands that need a cluster or build something: see make
// docs-test.
package docs
