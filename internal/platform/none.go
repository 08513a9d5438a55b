// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import "context"

// None is a platform that changes no node: plans are made and nodes are verified against them, and what the
// plans say is brought to the nodes by other means.
type None struct{}

var _ Platform = None{}

// Roll implements Platform.
func (None) Roll(context.Context, *Intent) (Outcome, error) { return Outcome{}, nil }

// Return implements Platform.
func (None) Return(context.Context, *Intent) (Remainder, error) { return Remainder{}, nil }

// Watches implements Platform.
func (None) Watches() []Watch { return nil }
