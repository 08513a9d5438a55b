// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/pcie"
)

// linkIsFull compares speed and width of the PCIe link with the least that both ends can do: a fast NIC in a slower slot
// runs as fast as it ever will, which the observed value says. Virtual functions have no link of their own.
func (s *state) linkIsFull(n nic) verdict {
	if n.PhysicalFunction.Known {
		return notApplicable()
	}
	return worst(
		compareLink(n, "speed", pcie.Rate, n.LinkSpeed, n.MaximumLinkSpeed, n.PortLinkSpeed),
		compareLink(n, "width", pcie.Lanes, n.LinkWidth, n.MaximumLinkWidth, n.PortLinkWidth),
	)
}

// compareLink compares one quantity of a link; quantities of 0 are not there. A device without a link, as virtual machines
// have them, has nothing to compare.
func compareLink[T any](n nic, what string, quantity func(T) float64, current, maximum, port host.Fact[T]) verdict {
	return judge(maximum, "", func(most T) verdict {
		if quantity(most) == 0 {
			return notApplicable()
		}
		expected := fmt.Sprintf("%s %v", what, most)
		return judge(current, expected, func(now T) verdict {
			observed := fmt.Sprintf("%s %v", what, now)
			if quantity(now) >= quantity(most) {
				return passed(observed)
			}
			return judge(port, expected, func(other T) verdict {
				if pcie.Most(quantity(most), quantity(other)) < quantity(most) {
					most, expected = other, fmt.Sprintf("%s %v", what, other)
				}
				switch {
				case quantity(other) == 0:
					return passed(observed + ", on the root bus")
				case quantity(now) >= quantity(most):
					return passed(fmt.Sprintf("%s: %s, the most that its port can do; the NIC could do %v", n.PCIAddress, observed, maximum.Value))
				}
				return failed(fmt.Sprintf("the PCIe link of %s has %s of %v", n.name, observed, most), observed, expected)
			})
		})
	})
}
