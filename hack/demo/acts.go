// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// act is one part of the story.
type act struct {
	title, text string
	play        func(ctx context.Context, s *stage) error
}

const (
	// actTimeout is how long an act may take before the demo gives up: far more than any machine needs.
	actTimeout = 5 * time.Minute
	// wrongNode ends up with an interrupt on an isolated CPU.
	wrongNode = "xeon-2"
)

func acts() []act {
	return []act{
		{"A cluster", `A real etcd and kube-apiserver run on this machine, with the real OpenShift CRDs.
			Behind them: eight simulated hosts of three shapes, and this machine itself, read-only.
			On every host runs the production agent, reading /proc and /sys of that host.`, playCluster},
		{"A profile", `One LowLatencyNodeProfile governs all eight. It names no CPU: the sets follow from each node's topology.`, playProfile},
		{"The rollout", `The operator plans every node, groups equal plans into pools, and lets each pool reboot once.
			The platform that rolls the pools is simulated; what judges the nodes is not.`, playRollout},
		{"A node goes wrong", `Somebody moves an interrupt of the bypass NIC on ` + wrongNode + ` to an isolated CPU.`, playSabotage},
		{"The correction", `The interrupt goes back to a housekeeping CPU.`, playCorrection},
		{"A pool of NICs", `One BypassNICPool takes the Solarflare NICs of all eight. Each NIC brings 400 hugepages of 2 MiB, which must
			be on its own NUMA node. The device plugins are the real ones, on real sockets; the kubelet is simulated.`, playPool},
		{"Half an upgrade", `Somebody loads other modules of Onload on ` + wrongNode + ` and forgets the user files. Onload would fall back to
			kernel sockets without a word: the program runs, and is slow.`, playOtherRelease},
		{"The other half", `The user files follow.`, playSameRelease},
		{"This machine", `The same checks on the real kernel of the machine on which this runs. Nothing is changed on it.`, playRealHost},
	}
}

func playCluster(ctx context.Context, s *stage) error {
	s.narrator.done("API server is up: %s", s.cluster.Config().Host)
	if err := s.addMachines(ctx); err != nil {
		return err
	}
	s.narrator.done("%d nodes joined", len(s.fleet.Names()))
	s.cluster.StartPlatform(ctx)
	if _, err := s.cluster.StartOperator(ctx, nil); err != nil {
		return err
	}
	s.narrator.done("the operator runs")
	return nil
}

func playProfile(ctx context.Context, s *stage) error {
	s.narrator.block(profileYAML)
	profile, err := parseProfile(profileYAML)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, profile); err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	s.narrator.done("created")
	return s.await(ctx, "every node has a plan", func(v view) bool {
		return v.profile.Status.Nodes != nil && v.profile.Status.Nodes.Planned == int32(len(v.rows))
	})
}

func playRollout(ctx context.Context, s *stage) error {
	if err := s.watch(ctx, "every node is de-jittered and NUMA-aligned", allGreen); err != nil {
		return err
	}
	for _, name := range s.tradingNodes() {
		if reboots := s.fleet.Reboots(name); reboots != 1 {
			return fmt.Errorf("node %s rebooted %d times, but one change must cost one reboot", name, reboots)
		}
	}
	s.narrator.done("one change, one reboot per node")
	return s.showMap(ctx, wrongNode)
}

func playSabotage(ctx context.Context, s *stage) error {
	irq, isolated, err := s.moveInterrupt(ctx, true)
	if err != nil {
		return err
	}
	s.narrator.say("echo %d > /proc/irq/%d/smp_affinity_list    # on %s, CPU %d is isolated", isolated, irq, wrongNode, isolated)
	want := fmt.Sprintf("IRQ %d", irq)
	err = s.watch(ctx, "the profile names node and interrupt", func(v view) bool {
		ready := meta.FindStatusCondition(v.profile.Status.Conditions, v1alpha1.ConditionDeJittered)
		return ready != nil && ready.Status == metav1.ConditionFalse &&
			strings.Contains(ready.Message, wrongNode) && strings.Contains(ready.Message, want)
	})
	if err != nil {
		return err
	}
	return s.showFindings(ctx)
}

func playCorrection(ctx context.Context, s *stage) error {
	irq, housekeeping, err := s.moveInterrupt(ctx, false)
	if err != nil {
		return err
	}
	s.narrator.say("echo %d > /proc/irq/%d/smp_affinity_list    # on %s", housekeeping, irq, wrongNode)
	return s.watch(ctx, "the profile is Ready again", allGreen)
}

// allGreen is the promised state: the profile is Ready for its current generation and so is each node.
func allGreen(v view) bool {
	ready := meta.FindStatusCondition(v.profile.Status.Conditions, v1alpha1.ConditionReady)
	counts := v.profile.Status.Nodes
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == v.profile.Generation &&
		counts != nil && counts.DeJittered == counts.Matched && counts.NUMAAligned == counts.Matched &&
		counts.Matched == int32(len(v.rows))
}

// moveInterrupt routes the first interrupt of the bypass NIC on the wrong node to the first CPU near the NIC that is isolated or
// housekeeping by the plan in force, and returns both.
func (s *stage) moveInterrupt(ctx context.Context, toIsolated bool) (irq, cpu int, err error) {
	nodePlan, err := s.planOf(ctx, wrongNode)
	if err != nil {
		return 0, 0, err
	}
	root, err := s.fleet.Root(wrongNode)
	if err != nil {
		return 0, 0, err
	}
	if irq, err = hosttree.FindIRQ(root, bypassInterface); err != nil {
		return 0, 0, fmt.Errorf("finding an interrupt of %s: %w", bypassInterface, err)
	}
	target := nodePlan.CPUs.Housekeeping
	if toIsolated {
		target = nodePlan.CPUs.Isolated
	}
	text, err := os.ReadFile(filepath.Join(root, "sys/class/net", bypassInterface, "device/local_cpulist"))
	if err != nil {
		return 0, 0, fmt.Errorf("reading which CPUs are near %s: %w", bypassInterface, err)
	}
	near, err := cpus.Parse(string(text))
	if err != nil {
		return 0, 0, fmt.Errorf("reading which CPUs are near %s: %w", bypassInterface, err)
	}
	target = target.Intersection(near)
	if err := hosttree.MoveIRQ(root, irq, cpus.Of(target.First())); err != nil {
		return 0, 0, fmt.Errorf("moving IRQ %d: %w", irq, err)
	}
	return irq, target.First(), nil
}

// showFindings prints what the profile says is wrong.
func (s *stage) showFindings(ctx context.Context) error {
	var profile v1alpha1.LowLatencyNodeProfile
	if err := s.client.Get(ctx, client.ObjectKey{Name: profileName}, &profile); err != nil {
		return fmt.Errorf("reading the profile: %w", err)
	}
	shown := 0
	for _, finding := range profile.Status.Findings {
		if finding.Node == wrongNode && finding.Severity == v1alpha1.SeverityCritical {
			s.narrator.block("\n" + findingText(finding))
			shown++
		}
	}
	if shown == 0 {
		return fmt.Errorf("the profile's findings do not name node %s", wrongNode)
	}
	return nil
}
