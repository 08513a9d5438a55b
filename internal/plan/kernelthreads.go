// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// kernelThreadPriority is that of rcutree.kthread_prio: above the lowest priorities, which programs that may wait use, and
// below those of anything urgent.
const kernelThreadPriority = 11

// planKernelThreads gives the kernel's threads of each CPU a real-time priority where a busy real-time program of a pod
// could keep them from running for ever: with PREEMPT_RT, where softirqs, timers and RCU callbacks run in threads, and
// wherever real-time throttling is off. What such a thread holds back, other CPUs wait for.
func (p *planner) planKernelThreads() {
	origin := p.origin("spec.kernel.realTimeThrottling")
	if p.isRealTime() {
		origin = p.origin("spec.kernel.type")
	} else if p.spec.Kernel.RealTimeThrottling != v1alpha1.ActivityDisabled {
		return
	}
	for _, name := range []string{"ksoftirqd", "ktimers", "rcuc"} {
		p.plan.KernelThreads = append(p.plan.KernelThreads, KernelThreadPlan{Name: name, Priority: kernelThreadPriority, Origin: origin})
	}
}

func (p *NodePlan) kernelThreadItems() []item {
	items := make([]item, 0, len(p.KernelThreads))
	for _, thread := range p.KernelThreads {
		items = append(items, item{
			kind: kindThread, name: thread.Name, value: fmt.Sprintf("FIFO %d", thread.Priority),
			reboot: v1alpha1.RebootNotRequired, why: whyAtOnce,
		})
	}
	return items
}
