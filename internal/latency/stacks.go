// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latency

// Stack is a ping-pong by one network stack, or by another program, and what a user calls it.
type Stack struct {
	Name   string
	Result *Result
}

// Stacks are ping-pongs by several stacks beside each other. The ratios are to the first stack, the base. Its JSON form is documented in docs/latency.md.
type Stacks struct {
	Version int  `json:"version"`
	Kind    Kind `json:"kind"`
	// RoundTrip says whether latencies of all are those of the whole round trip, as Setup has it.
	RoundTrip bool `json:"roundTrip,omitempty"`
	// Sides are the stacks, the base first.
	Sides []StacksSide `json:"sides"`
	// Sizes are those that the base has, in its order.
	Sizes []StacksSize `json:"sizes"`
}

// StacksSide is a stack, and how its measurement ended.
type StacksSide struct {
	Name string `json:"name"`
	// Generator is the name and the version of another program that has measured; "" for the project's own.
	Generator string `json:"generator,omitempty"`
	// Transport and Waiting are those of the Setup; "" where a record does not tell.
	Transport Transport `json:"transport,omitempty"`
	Waiting   Waiting   `json:"waiting,omitempty"`
	Path      PathState `json:"path"`
	Outcome   Outcome   `json:"outcome"`
}

// StacksSize is what all stacks have of messages of one size, in the order of the sides.
type StacksSize struct {
	Bytes int        `json:"bytes"`
	Sides []StackRow `json:"sides"`
}

// StackRow is what a stack has of messages of one size.
type StackRow struct {
	Name string `json:"name"`
	// Measured is nil where the stack was not measured with this size.
	Measured *ComparedSide `json:"measured"`
	// Ratios are those of percentiles to the base; empty for the base itself.
	Ratios []PercentileRatio `json:"ratios"`
}

// CompareStacks puts ping-pongs beside each other. There is at least one.
func CompareStacks(stacks []Stack) Stacks {
	base := stacks[0].Result
	all := Stacks{Version: Version, Kind: KindPingPong, RoundTrip: base.Setup.RoundTrip}
	for i := range base.Sizes {
		all.Sizes = append(all.Sizes, StacksSize{Bytes: base.Sizes[i].Bytes})
	}
	for i, stack := range stacks {
		r := stack.Result
		all.Sides = append(all.Sides, StacksSide{stack.Name, r.Generator, r.Setup.Transport, r.Setup.Waiting, r.Path.State, r.Outcome})
		// The pairs begin with one for each size of the base, in its order.
		for at, pair := range SizePairs(base, r)[:len(base.Sizes)] {
			compared := rowOfSizes(pair)
			row := StackRow{stack.Name, compared.After, compared.Ratios}
			if i == 0 {
				row.Ratios = []PercentileRatio{}
			}
			all.Sizes[at].Sides = append(all.Sizes[at].Sides, row)
		}
	}
	return all
}
