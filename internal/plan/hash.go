// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

// Hash identifies the plan: 16 hexadecimal digits that are equal for equal plans. Origins do not count.
func (p *NodePlan) Hash() string { return "" }
