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
		{"A cluster, a profile, a pool of NICs", `A real etcd and kube-apiserver run on this machine, with the real OpenShift CRDs.
			Behind them are eight simulated hosts of three shapes, and this machine itself, read-only. On every host runs the
			production agent, reading its /proc and /sys. The platform that reboots hosts is simulated; what judges them is not.`, playRollout},
		{"Half an upgrade", `Somebody loads other modules of Onload on ` + wrongNode + ` and forgets the user files. Onload would fall back to
			kernel sockets without a word: the program runs, and is slow.`, playOtherRelease},
		{"The other half", `The user files follow.`, playSameRelease},
		{"A node goes wrong", `Somebody moves an interrupt of the bypass NIC on ` + wrongNode + ` to an isolated CPU.`, playSabotage},
		{"The correction", `The interrupt goes back to a housekeeping CPU.`, playCorrection},
		{"This machine", `The same checks on the real kernel of the machine on which this runs. Nobody has tuned it for low latency, and
			nothing is changed on it, so checks must fail here: that they do shows that they look at the kernel.`, playRealHost},
	}
}

// playRollout brings a cluster up and follows one profile and one pool until every node is proven.
func playRollout(ctx context.Context, s *stage) error {
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
	if err := s.createWishes(ctx); err != nil {
		return err
	}
	s.narrator.done("pool and profile created")
	s.narrator.printf("\n")
	if err := s.watch(ctx, "every node is de-jittered and NUMA-aligned", allGreen); err != nil {
		return err
	}
	s.narrator.printf("\n")
	if err := s.watchPool(ctx, "every NIC can be asked for, with its hugepages beside it", poolServed); err != nil {
		return err
	}
	for _, name := range s.tradingNodes() {
		if reboots := s.fleet.Reboots(name); reboots != 1 {
			return fmt.Errorf("node %s rebooted %d times, but one change must cost one reboot", name, reboots)
		}
	}
	s.narrator.done("profile and pool together cost one reboot per node")
	return nil
}

// createWishes creates the pool and the profile. The operator has seen the pool before the profile comes, so that the first plan
// of every node holds both.
func (s *stage) createWishes(ctx context.Context) error {
	s.narrator.say("\nOne BypassNICPool takes the Solarflare NICs of all eight. Each brings 400 hugepages of 2 MiB on its own NUMA node:")
	s.narrator.block("\n" + specOf(poolYAML))
	pool, err := parsePool(poolYAML)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, pool); err != nil {
		return fmt.Errorf("creating the pool: %w", err)
	}
	if err := s.untilPoolSeen(ctx); err != nil {
		return err
	}
	s.narrator.say("\nOne LowLatencyNodeProfile governs all eight. It names no CPU, because the sets follow from the topology of each node:")
	s.narrator.block("\n" + specOf(profileYAML))
	profile, err := parseProfile(profileYAML)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, profile); err != nil {
		return fmt.Errorf("creating the profile: %w", err)
	}
	return nil
}

func playSabotage(ctx context.Context, s *stage) error {
	irq, isolated, err := s.moveInterrupt(ctx, true)
	if err != nil {
		return err
	}
	s.narrator.say("echo %d > /proc/irq/%d/smp_affinity_list    # on %s, where CPU %d is isolated\n", isolated, irq, wrongNode, isolated)
	want := fmt.Sprintf("IRQ %d", irq)
	err = s.watch(ctx, "the profile names node and interrupt", func(v view) bool {
		ready := meta.FindStatusCondition(v.profile.Status.Conditions, v1alpha1.ConditionDeJittered)
		return ready != nil && ready.Status == metav1.ConditionFalse &&
			strings.Contains(ready.Message, wrongNode) && strings.Contains(ready.Message, want)
	})
	if err != nil {
		return err
	}
	if err := s.showMap(ctx, wrongNode); err != nil {
		return err
	}
	return s.showFindings(ctx)
}

func playCorrection(ctx context.Context, s *stage) error {
	irq, housekeeping, err := s.moveInterrupt(ctx, false)
	if err != nil {
		return err
	}
	s.narrator.say("echo %d > /proc/irq/%d/smp_affinity_list    # on %s\n", housekeeping, irq, wrongNode)
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
			s.narrator.paragraph(finding.Message)
			shown++
		}
	}
	if shown == 0 {
		return fmt.Errorf("the profile's findings do not name node %s", wrongNode)
	}
	return nil
}
