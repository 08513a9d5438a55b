// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Startup is how far a node is since its boot.
//
// A kubelet that starts advertises nothing of a device plugin until that has registered, and refuses pods that need it
// with UnexpectedAdmissionError. Between the end of one kubelet and the first status of the next, the Node still shows
// what the former advertised. So a node counts as starting from the moment it is not ready, or has another boot, until
// the units are advertised that its agent has found since.
type Startup struct {
	// Ready is the condition Ready of the Node; "" when it has none.
	Ready corev1.ConditionStatus
	// Boot is the boot that the kubelet reports; "" when the Node does not report.
	Boot string
	// Started is the boot for which all plugins have advertised, as it was noted on the Node; "" when it was not.
	Started string
	// Pools are those that serve the node.
	Pools []Pool
}

// Pool is what is known about one pool on the node.
type Pool struct {
	// Name of the pool and of its resource.
	Name, Resource string
	// Reported reports whether the agent has reported the NICs for the pool's current spec in this boot.
	Reported bool
	// Units of the resource that the healthy NICs give.
	Units int64
	// Advertised is what the kubelet says is allocatable.
	Advertised int64
}

// unknownBoot notes that the plugins advertise on a node whose kubelet does not report its boot.
const unknownBoot = "unknown"

// Mark is what is to be noted on the Node once all plugins have advertised.
func (s *Startup) Mark() string {
	if s.Boot == "" {
		return unknownBoot
	}
	return s.Boot
}

// waiting says what a starting node waits for, and whether it is starting. A node whose plugins have advertised in this
// boot is not: a NIC that turns unhealthy later takes its unit away, and the scheduler sees that by itself.
func (s *Startup) waiting() (Decision, bool) {
	if s.Ready != "" && s.Ready != corev1.ConditionTrue {
		return notYet(v1alpha1.ReasonNodeNotReady, fmt.Sprintf("the condition Ready of the Node is %s", s.Ready)), true
	}
	if s.Started == s.Mark() {
		return Decision{}, false
	}
	for _, pool := range s.Pools {
		if !pool.Reported {
			return notYet(v1alpha1.ReasonAwaitingPlugins,
				fmt.Sprintf("the agent has not reported the NICs of BypassNICPool %s since the last boot", pool.Name)), true
		}
		if pool.Advertised < pool.Units {
			return notYet(v1alpha1.ReasonAwaitingPlugins, fmt.Sprintf("the kubelet advertises %d of %d units of %s: "+
				"the device plugin of BypassNICPool %s has not registered yet", pool.Advertised, pool.Units, pool.Resource, pool.Name)), true
		}
	}
	return Decision{}, false
}

func notYet(reason, message string) Decision {
	return Decision{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}
