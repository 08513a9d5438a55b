// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// poolAcceleration says of each container whether its program is accelerated; nothing when that was not asked for.
func poolAcceleration(pool view.Pool, palette Palette, columns int) string {
	var rows [][]string
	var sentences strings.Builder
	for _, node := range pool.Nodes {
		for _, user := range node.Containers() {
			found := user.Acceleration
			switch {
			case found == nil:
				continue
			case found.State == onload.NotApplicable:
				return "\n" + block(palette.Faint(string(found.State)), [][]string{{"", found.Message}}, palette, columns)
			}
			state := paintState(found.State, palette)(string(found.State))
			rows = append(rows, accelerationRow(node.Node, user, state))
			if found.State != onload.Accelerated || found.KernelSockets > 0 {
				headline := layout.Join(state, node.Node, palette.Title(user.Name()))
				sentences.WriteString("\n" + block(headline, [][]string{{"", found.Message}}, palette, columns))
			}
		}
	}
	if len(rows) == 0 {
		return ""
	}
	header := []string{"NODE", "CONTAINER", "ACCELERATION", "STACKS", "UDP AT USER LEVEL", "UDP THROUGH KERNEL", "NOT IN STACK"}
	return "\n" + Table(header, rows, palette, columns) + sentences.String()
}

func accelerationRow(node string, user view.PoolUser, state string) []string {
	stacks := user.Acceleration.Stacks
	if len(stacks) == 0 && user.Acceleration.State == onload.Unknown {
		return []string{node, user.Name(), state, "?", "?", "?", "?"}
	}
	ids := make([]string, 0, len(stacks))
	for _, stack := range stacks {
		ids = append(ids, strconv.Itoa(stack.ID))
	}
	return []string{
		node, user.Name(), state, orDash(strings.Join(ids, ",")),
		datagrams(stacks, func(s view.PoolStack) *uint64 { return s.UDPReceivedUserLevel }),
		datagrams(stacks, func(s view.PoolStack) *uint64 { return s.UDPReceivedKernel }),
		kernelSockets(user.Acceleration),
	}
}

// kernelSockets are those that the kernel serves alone, which only a stack counts.
func kernelSockets(found *view.PoolAcceleration) string {
	if len(found.Stacks) == 0 {
		return orDash("")
	}
	return strconv.FormatUint(found.KernelSockets, 10)
}

// datagrams adds up what stacks received; a dash without a stack, and a question mark when one does not report.
func datagrams(stacks []view.PoolStack, of func(view.PoolStack) *uint64) string {
	if len(stacks) == 0 {
		return orDash("")
	}
	var sum uint64
	for _, stack := range stacks {
		count := of(stack)
		if count == nil {
			return "?"
		}
		sum += *count
	}
	return strconv.FormatUint(sum, 10)
}

func paintState(state onload.State, palette Palette) Paint {
	switch {
	case state == onload.Accelerated:
		return palette.Good
	case state.IsUnaccelerated():
		return palette.Bad
	default:
		return palette.Warn
	}
}
