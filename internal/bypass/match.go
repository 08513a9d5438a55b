// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// matchesNow reports whether a selector matches a NIC of the running host. With link Up, a NIC whose link is known to be
// down does not belong to the pool; one whose link cannot be read, because its interface is in a pod, still does.
func matchesNow(selector *v1alpha1.NICSelector, nic *host.NIC) bool {
	down := nic.Carrier.Known && !nic.Carrier.Value
	return topology.MatchesNIC(selector, topology.OfHostNIC(nic)) && (selector.Link != v1alpha1.LinkUp || !down)
}
