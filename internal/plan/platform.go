// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

// PlatformRules are what the platform that brings plans to nodes keeps to itself on them, as values. They decide what a
// profile must not ask for and change no plan. The zero value keeps nothing.
type PlatformRules struct {
	// KubeletFields are fields of KubeletConfiguration that the platform sets and refuses from anybody else.
	KubeletFields []string
	// Services are units without which a node is lost to the platform, besides those that every node needs; "*" in a name
	// stands for any text.
	Services []string
}
