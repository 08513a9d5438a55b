// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package rollout brings plans to ordinary hosts of Kubernetes: it cordons a node, evicts its pods, and hands a signed
// instruction to the guard on the host, which writes, reboots, verifies, and takes back what does not come up. Who is changed when
// is decided in package enactment; here the world is read, and what was decided is done.
package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
)

// Options are what the platform works with.
type Options struct {
	// Cache answers from memory; it holds Nodes, LowLatencyNodes and the operator's RuntimeClasses.
	Cache client.Reader
	// Live answers from the API server: turns and instructions are few, and what is decided by them must not be old.
	Live client.Reader
	// Client writes.
	Client client.Client
	// Evictions is the client of the library that evicts pods.
	Evictions clientset.Interface
	// Namespace is where the plans and the key are, AgentNamespace where pods may use the host.
	Namespace, AgentNamespace string
	// Image of the operator, which the pods run that hand instructions over.
	Image string
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// Platform is ordinary Kubernetes.
type Platform struct {
	Options

	mutex sync.Mutex
	// drains are what the latest evictions have left, by node. Who does not know evicts again.
	drains map[string]*enactment.Drain
	// writings are what is written on the hosts that wait for it.
	writings map[string]kubernetes.Writing
	// renewals are what the kubelets of nodes whose turn may end have written last when that was seen first.
	renewals map[string]renewal
}

var _ platform.Platform = (*Platform)(nil)

// New returns the platform. It is an error when the image is not known: nothing could be handed to a host.
func New(options Options) (*Platform, error) {
	if options.Image == "" {
		return nil, errors.New("the image of the operator is not known, which hosts need for their guard: set --image")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Platform{
		Options: options, drains: map[string]*enactment.Drain{}, writings: map[string]kubernetes.Writing{}, renewals: map[string]renewal{},
	}, nil
}

// Rules implements platform.Platform.
func (p *Platform) Rules() plan.PlatformRules { return kubernetes.Rules() }

// IsConfigured implements platform.Platform: the guard says in this boot that the plan is in force. Whether the node is as planned is what its agent finds.
func (p *Platform) IsConfigured(node *corev1.Node, report *v1alpha1.LowLatencyNode) bool {
	return report != nil && report.Status.Enactment != nil && report.Spec.PlanHash != "" &&
		report.Status.Enactment.InForcePlanHash == report.Spec.PlanHash && fleet.IsOfBoot(report, node)
}

// Watches implements platform.Platform: what guards say comes with LowLatencyNodes, which are watched anyway.
func (p *Platform) Watches() []platform.Watch {
	return []platform.Watch{{Object: &nodev1.RuntimeClass{}}}
}

const (
	// turnPause is when to look again at nodes that have their turn, waitPause at those that wait for others. Where a step was done and
	// nobody is waited for, stepPause is enough: the next step only needs to see what the last one has written.
	stepPause = time.Second
	turnPause = 5 * time.Second
	waitPause = 30 * time.Second
	// keyPause is when to look whether somebody has put another key in the place of the one before.
	keyPause = 2 * time.Minute
)

// Roll implements platform.Platform. A profile that is paused begins no node, and finishes those that are begun.
func (p *Platform) Roll(ctx context.Context, intent *fleet.Intent) (fleet.Outcome, error) {
	outcome, err := p.roll(ctx, intent)
	return outcome, p.explain(ctx, err)
}

func (p *Platform) roll(ctx context.Context, intent *fleet.Intent) (fleet.Outcome, error) {
	wanted := map[string]*enactment.Wanted{}
	plans := map[string]*plan.NodePlan{}
	for i := range intent.Shapes {
		shape := &intent.Shapes[i]
		plans[shape.Hash] = shape.Plan
		for _, name := range shape.Nodes {
			if intent.Held[name] == "" {
				wanted[name] = &enactment.Wanted{Action: enactment.Enact, PlanHash: shape.Hash}
			}
		}
	}
	for _, name := range intent.Leaving {
		if node := intent.Nodes[name]; node != nil && !fleet.IsUntouched(node) {
			wanted[name] = &enactment.Wanted{Action: enactment.Remove}
		}
	}
	w, err := p.gather(ctx, intent, wanted, plans)
	if err != nil {
		return fleet.Outcome{}, err
	}
	conflicts, unoffered := p.offerHandler(ctx, w)
	// Who may not have the RuntimeClass begins nothing.
	w.limits.MayBegin = w.limits.MayBegin && len(conflicts) == 0
	decision, failure := p.goOn(ctx, w)
	outcome := w.outcome(&decision)
	outcome.Conflicts = append(outcome.Conflicts, conflicts...)
	outcome.RetryAfter = sooner(outcome.RetryAfter, p.afterSteps(&decision))
	if w.hasGuards() {
		outcome.RetryAfter = sooner(outcome.RetryAfter, keyPause)
	}
	outcome.Returning, err = p.release(ctx, w, &decision)
	return outcome, errors.Join(failure, err, unoffered)
}

// Return implements platform.Platform.
func (p *Platform) Return(ctx context.Context, intent *fleet.Intent) (fleet.Remainder, error) {
	remainder, err := p.giveBack(ctx, intent)
	return remainder, p.explain(ctx, err)
}

func (p *Platform) giveBack(ctx context.Context, intent *fleet.Intent) (fleet.Remainder, error) {
	wanted := map[string]*enactment.Wanted{}
	for name, node := range intent.Nodes {
		if node.Labels[v1alpha1.LabelProfile] == intent.Profile.Name && intent.Held[name] == "" && !fleet.IsUntouched(node) {
			wanted[name] = &enactment.Wanted{Action: enactment.Remove}
		}
	}
	w, err := p.gather(ctx, intent, wanted, nil)
	if err != nil {
		return fleet.Remainder{}, err
	}
	decision, err := p.goOn(ctx, w)
	rest := w.remainder(&decision)
	if !rest.Done() {
		rest.RetryAfter = sooner(rest.RetryAfter, p.afterSteps(&decision))
		return rest, err
	}
	return rest, errors.Join(err, p.removeClasses(ctx, intent.Profile.Name, ""))
}

// afterSteps is when to look again because of what was done; 0 where somebody else is waited for.
func (p *Platform) afterSteps(d *enactment.Decision) time.Duration {
	for _, step := range d.Steps {
		switch drained := p.drainOf(step.Node); {
		case step.Verb == enactment.HandOver:
		case step.Verb == enactment.Evict && (drained == nil || len(drained.Left)+len(drained.Blocked) > 0):
		default:
			return stepPause
		}
	}
	return 0
}

// goOn decides, and does what was decided. A node on which somebody else works keeps its turn to itself, and the next is looked
// at.
func (p *Platform) goOn(ctx context.Context, w *world) (enactment.Decision, error) {
	for {
		decision := enactment.Decide(w.nodes, w.limits, p.Clock.Now())
		locked, err := p.findLock(ctx, w, &decision)
		if err != nil {
			return decision, err
		}
		if locked {
			continue
		}
		return decision, errors.Join(p.carryOut(ctx, w, &decision), p.publish(ctx, w, &decision))
	}
}

// carryOut does what was decided. A node about which something cannot be written keeps no other from going on.
func (p *Platform) carryOut(ctx context.Context, w *world, d *enactment.Decision) error {
	var failures []error
	for _, step := range d.Steps {
		if err := p.do(ctx, w, step); err != nil {
			failures = append(failures, fmt.Errorf("node %s: %w", step.Node, err))
		}
	}
	return errors.Join(failures...)
}

func (p *Platform) do(ctx context.Context, w *world, step enactment.Step) error {
	node := w.known[step.Node]
	switch step.Verb {
	case enactment.TakeTurn:
		return p.takeTurn(ctx, w, node)
	case enactment.Cordon:
		return p.cordon(ctx, node)
	case enactment.Evict:
		return p.evict(ctx, node)
	case enactment.Instruct:
		return p.instruct(ctx, w, node, step)
	case enactment.HandOver:
		return p.handOver(ctx, node, w.issued[step.Node])
	case enactment.Withdraw:
		return p.withdraw(ctx, w, node)
	case enactment.Uncordon:
		return p.uncordon(ctx, node)
	case enactment.EndTurn:
		return p.endTurn(ctx, node)
	case enactment.TellKey:
		return p.tellKey(ctx, w, node, step)
	case enactment.Claim:
		return platform.LabelNode(ctx, p.Client, node, node.Labels[v1alpha1.LabelProfile], w.limits.Profile)
	}
	return fmt.Errorf("nobody knows how to %q", step.Verb)
}

// release takes our labels from the nodes that were given back, and returns those that still are on the way.
func (p *Platform) release(ctx context.Context, w *world, d *enactment.Decision) ([]string, error) {
	var returning []string
	var failures []error
	for _, state := range d.States {
		if wanted := w.wanted[state.Node]; wanted == nil || wanted.Action != enactment.Remove {
			continue
		}
		if state.Stage != enactment.StageDone || w.turns[state.Node] != nil {
			returning = append(returning, state.Node)
			continue
		}
		failures = append(failures, platform.LabelNode(ctx, p.Client, w.known[state.Node], "", ""))
	}
	return returning, errors.Join(failures...)
}
