// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package openshift brings plans to nodes by way of OpenShift's machine-config operator: one MachineConfigPool for each
// shape, or a machine config pool that somebody else owns, a MachineConfig and a KubeletConfig for it, and a Tuned
// object for what takes effect at once. A change costs each node one reboot.
package openshift

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/openshift/manifests"
)

// Platform is OpenShift.
type Platform struct {
	cache     client.Reader
	live      client.Reader
	writer    client.Client
	namespace string
	peer      bool
	keeper    *platform.Keeper
	clock     clock.PassiveClock

	rendered renderings
	holdings holdings
	freed    freedPools
}

var _ platform.Platform = (*Platform)(nil)

// Options are what the platform works with.
type Options struct {
	// Cache answers from memory. It must hold what Kinds returns.
	Cache client.Reader
	// Live answers from the API server. It is asked only about rendered configurations that are awaited, and about
	// objects that the operator is about to make or to which somebody has added something.
	Live client.Reader
	// Client writes.
	Client client.Client
	// Mapper tells which kinds the API server serves.
	Mapper meta.RESTMapper
	// Namespace is where the plans are.
	Namespace string
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// New returns the platform. Whether the cluster has PerformanceProfiles is asked once; an operator that
// runs when that kind is installed has to be started again.
func New(options Options) (*Platform, error) {
	peer, err := platform.Serves(options.Mapper, performanceProfileKind())
	if err != nil {
		return nil, err
	}
	tuned, err := platform.Serves(options.Mapper, tunedKind())
	if err != nil {
		return nil, err
	}
	if !tuned {
		return nil, errors.New("the cluster serves no tuned.openshift.io/v1 Tuned: enable its capability NodeTuning")
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Platform{
		keeper: &platform.Keeper{Reader: options.Live, Clock: options.Clock},
		clock:  options.Clock,
		cache:  options.Cache, live: options.Live, writer: options.Client,
		namespace: options.Namespace, peer: peer, rendered: renderings{render: manifests.Objects},
	}, nil
}

func tunedKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "tuned.openshift.io", Version: "v1", Kind: kindTuned}
}

// ownKinds are the kinds, besides the machine config pool and the plan, of the objects that are rendered.
func ownKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		mcfgv1.GroupVersion.WithKind(kindMachineConfig),
		mcfgv1.GroupVersion.WithKind(kindKubeletConfig),
		tunedKind(),
		nodev1.SchemeGroupVersion.WithKind(kindRuntimeClass),
	}
}

// OwnObjects returns an empty object of each kind of which only the operator's own objects, which carry the
// label of a profile, need to be in the cache.
func OwnObjects() []client.Object {
	kinds := ownKinds()
	objects := make([]client.Object, 0, len(kinds))
	for _, kind := range kinds {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(kind)
		objects = append(objects, object)
	}
	return objects
}

// Rules implements platform.Platform.
func (p *Platform) Rules() plan.PlatformRules { return manifests.Rules() }

// IsConfigured implements platform.Platform.
func (p *Platform) IsConfigured(node *corev1.Node, _ *v1alpha1.LowLatencyNode) bool {
	return node.Annotations[annotationDesiredConfig] != "" && !isChanging(node)
}

// Watches implements platform.Platform.
func (p *Platform) Watches() []platform.Watch {
	watches := []platform.Watch{{Object: &mcfgv1.MachineConfigPool{}, Shared: true}}
	for _, object := range OwnObjects() {
		watches = append(watches, platform.Watch{Object: object})
	}
	if p.peer {
		peer := &unstructured.Unstructured{}
		peer.SetGroupVersionKind(performanceProfileKind())
		watches = append(watches, platform.Watch{Object: peer, Shared: true})
	}
	return watches
}

// Roll implements platform.Platform.
func (p *Platform) Roll(ctx context.Context, intent *fleet.Intent) (fleet.Outcome, error) {
	w, err := p.gather(ctx, intent.Profile.Name)
	if err != nil {
		return fleet.Outcome{}, err
	}
	if err := p.gatherRuntimeClasses(ctx, w, intent); err != nil {
		return fleet.Outcome{}, err
	}
	targets, conflicts := aim(w, intent, p.namespace, p.rendered.objects)
	if err := p.deferRuntimeSettings(ctx, w, targets); err != nil {
		return fleet.Outcome{}, err
	}
	found, err := p.inspect(ctx, w, targets)
	if err != nil {
		return fleet.Outcome{}, err
	}
	conflicts = append(conflicts, found...)
	if err := p.gatherEvidence(ctx, w, targets); err != nil {
		return fleet.Outcome{}, err
	}
	turned, err := p.gatherTurns(ctx, w, intent, targets)
	if err != nil {
		return fleet.Outcome{}, err
	}
	d := decideRoll(w, intent, targets, conflicts)
	d.outcome.Turned = turned
	left, err := p.carryOut(ctx, d.steps)
	if left {
		d.outcome.RetryAfter = platform.NextBatch
	}
	return d.outcome, err
}

// Return implements platform.Platform.
func (p *Platform) Return(ctx context.Context, intent *fleet.Intent) (fleet.Remainder, error) {
	w, err := p.gather(ctx, intent.Profile.Name)
	if err != nil {
		return fleet.Remainder{}, err
	}
	if err := p.gatherKubelets(ctx, w); err != nil {
		return fleet.Remainder{}, err
	}
	steps, rest := decideReturn(w, intent)
	left, err := p.carryOut(ctx, steps)
	if left {
		rest.RetryAfter = platform.NextBatch
	}
	return rest, err
}

// carryOut stops at the first step that fails: later ones count on earlier ones. Nodes are labelled several at once. It
// reports whether nodes, and what comes after them, are left for the next time.
func (p *Platform) carryOut(ctx context.Context, steps []step) (left bool, err error) {
	for len(steps) > 0 && err == nil && !left {
		nodes := labelsFirst(steps)
		if nodes > 0 {
			left, err = p.label(ctx, steps[:nodes])
		} else {
			nodes, err = 1, p.do(ctx, steps[0])
		}
		steps = steps[nodes:]
	}
	return left, err
}

// do carries out a step that is not about a node.
func (p *Platform) do(ctx context.Context, s step) error {
	if err := s.do(ctx, p.writer, p.keeper); err != nil || s.letGo == "" {
		return err
	}
	p.freed.note(s.apply.GetName(), s.letGo)
	return nil
}

// label carries out steps about nodes.
func (p *Platform) label(ctx context.Context, steps []step) (left bool, err error) {
	writes := make([]platform.NodeWrite, 0, len(steps))
	for _, s := range steps {
		writes = append(writes, platform.NodeWrite{
			Do:     func(ctx context.Context) error { return s.do(ctx, p.writer, p.keeper) },
			IsSeen: func(ctx context.Context) bool { return s.isSeen(ctx, p.cache) },
		})
	}
	return platform.WriteNodes(ctx, writes)
}

// gather reads the world from the cache, once.
func (p *Platform) gather(ctx context.Context, profile string) (*world, error) {
	w := &world{
		now:      p.clock.Now(),
		pools:    map[string]*mcfgv1.MachineConfigPool{},
		objects:  map[key]*unstructured.Unstructured{},
		kubelets: map[string][]mcfgv1.MachineConfig{},
	}
	var pools mcfgv1.MachineConfigPoolList
	if err := p.cache.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing MachineConfigPools: %w", err)
	}
	for i := range pools.Items {
		w.pools[pools.Items[i].Name] = &pools.Items[i]
	}
	w.letGo = p.freed.unseen(w.pools)
	for _, kind := range ownKinds() {
		objects, err := p.list(ctx, kind, client.MatchingLabels{
			v1alpha1.LabelProfile: profile, v1alpha1.LabelManagedBy: v1alpha1.ProjectName,
		})
		if err != nil {
			return nil, err
		}
		for i := range objects {
			w.objects[key{kind.Kind, objects[i].GetName()}] = &objects[i]
		}
	}
	if !p.peer {
		return w, nil
	}
	peers, err := p.list(ctx, performanceProfileKind())
	if err != nil {
		return nil, err
	}
	for i := range peers {
		w.performanceProfiles = append(w.performanceProfiles, parsePerformanceProfile(&peers[i]))
	}
	slices.SortFunc(w.performanceProfiles, func(a, b performanceProfile) int { return strings.Compare(a.name, b.name) })
	return w, nil
}

func (p *Platform) list(ctx context.Context, kind schema.GroupVersionKind, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := p.cache.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing %ss: %w", kind.Kind, err)
	}
	return list.Items, nil
}

// gatherRuntimeClasses reads whose the RuntimeClasses are, where several profiles ask for one.
func (p *Platform) gatherRuntimeClasses(ctx context.Context, w *world, intent *fleet.Intent) error {
	if len(intent.RuntimeClassClaims) == 0 {
		return nil
	}
	classes, err := p.list(ctx, nodev1.SchemeGroupVersion.WithKind(kindRuntimeClass))
	w.runtimeClassHolders = make(map[string]string, len(classes))
	for i := range classes {
		w.runtimeClassHolders[classes[i].GetName()] = classes[i].GetLabels()[v1alpha1.LabelProfile]
	}
	return err
}

// gatherEvidence reads the rendered configurations of the machine config pools that the operator holds.
func (p *Platform) gatherEvidence(ctx context.Context, w *world, targets []*target) error {
	if err := p.gatherKubelets(ctx, w); err != nil {
		return err
	}
	for _, t := range targets {
		if !heldByUs(t.live) || t.conflict != nil {
			continue
		}
		rendered, err := p.machineConfig(ctx, t.live.Spec.Configuration.Name)
		if err != nil {
			return err
		}
		t.evidence = evidence{rendered: rendered, kubelets: w.kubelets[t.name()]}
		if w.missing(t) != "" {
			continue
		}
		if t.evidence.sources, err = p.sources(ctx, t.live); err != nil {
			return err
		}
	}
	return nil
}

// sources are the MachineConfigs from which the configuration of a machine config pool was merged.
func (p *Platform) sources(ctx context.Context, pool *mcfgv1.MachineConfigPool) ([]mcfgv1.MachineConfig, error) {
	sources := make([]mcfgv1.MachineConfig, 0, len(pool.Spec.Configuration.Source))
	for _, source := range pool.Spec.Configuration.Source {
		config, err := p.machineConfig(ctx, source.Name)
		if err != nil {
			return nil, err
		}
		if config != nil {
			sources = append(sources, *config)
		}
	}
	return sources, nil
}

// gatherKubelets reads the MachineConfigs that were generated from KubeletConfigs for the machine config pools that the
// operator holds.
func (p *Platform) gatherKubelets(ctx context.Context, w *world) error {
	for name, pool := range w.pools {
		if !heldByUs(pool) {
			continue
		}
		for _, source := range kubeletSources(pool) {
			config, err := p.machineConfig(ctx, source)
			if err != nil {
				return err
			}
			if config != nil {
				w.kubelets[name] = append(w.kubelets[name], *config)
			}
		}
	}
	return nil
}

// machineConfig reads one MachineConfig from the API server; nil when it does not exist.
func (p *Platform) machineConfig(ctx context.Context, name string) (*mcfgv1.MachineConfig, error) {
	if name == "" {
		return nil, nil
	}
	config := &mcfgv1.MachineConfig{}
	err := p.live.Get(ctx, client.ObjectKey{Name: name}, config)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading MachineConfig %s: %w", name, err)
	default:
		return config, nil
	}
}
