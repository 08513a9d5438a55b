// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
)

// DeliverTo is Deliver to a simulated host.
func DeliverTo(ctx context.Context, g *Guard, d Delivery, tell func(string)) (*instruction.Report, error) {
	return deliver(ctx, g, func() (func(), error) { return func() {}, nil }, d, tell)
}
