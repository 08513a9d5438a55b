// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
)

// Rebooter brings one node up with a rendered configuration, as the machine-config daemon and the
// firmware of a real node would.
type Rebooter interface {
	// Reboot returns when the node is up again, or an error when it did not come up.
	Reboot(ctx context.Context, node string, rendered *mcfgv1.MachineConfig) error
}

// MachineConfigOperator simulates OpenShift's machine-config operator on a real API server: it turns
// KubeletConfigs into MachineConfigs, renders each machine config pool, and rolls the nodes of those that are not
// paused, at most maxUnavailable at a time, by cordon, reboot and uncordon. Its contract with others
// (names, annotations, conditions, spec.configuration) is that of openshift/machine-config-operator.
type MachineConfigOperator struct {
	Client   client.Client
	Rebooter Rebooter
	Clock    clock.WithTicker
	// Interval between two looks at the cluster.
	Interval time.Duration

	patience patience
}

// DelayUpdates lets nodes wait for a time from when they get another configuration until they are told to take it. The
// real operator waits for five seconds (updateDelay in pkg/controller/node), so that what is taken back in that time
// moves no node.
func (o *MachineConfigOperator) DelayUpdates(delay time.Duration) { o.patience.set(delay) }

// Run works until the context ends. Conflicts and other passing errors are tried again.
func (o *MachineConfigOperator) Run(ctx context.Context) error {
	return repeat(ctx, o.Clock, o.Interval, o.Once)
}

// Once brings generated and rendered configurations and the status of machine config pools up to date, and starts the
// reboots that are due.
func (o *MachineConfigOperator) Once(ctx context.Context) error {
	var pools mcfgv1.MachineConfigPoolList
	if err := o.Client.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing MachineConfigPools: %w", err)
	}
	if err := o.generateKubeletConfigs(ctx, pools.Items); err != nil {
		return err
	}
	var nodes corev1.NodeList
	if err := o.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	members, err := membersByPool(nodes.Items, pools.Items)
	if err != nil {
		return err
	}
	var failures []error
	for i := range pools.Items {
		pool := &pools.Items[i]
		failures = append(failures, o.syncPool(ctx, pool, members[pool.Name]))
	}
	return errors.Join(failures...)
}

func membersByPool(nodes []corev1.Node, pools []mcfgv1.MachineConfigPool) (map[string][]*corev1.Node, error) {
	members := map[string][]*corev1.Node{}
	for i := range nodes {
		pool, err := poolOf(&nodes[i], pools)
		if err != nil {
			return nil, err
		}
		members[pool] = append(members[pool], &nodes[i])
	}
	return members, nil
}

// syncPool renders one machine config pool, starts due reboots and writes its status.
func (o *MachineConfigOperator) syncPool(ctx context.Context, pool *mcfgv1.MachineConfigPool, nodes []*corev1.Node) error {
	rendered, err := o.render(ctx, pool)
	if err != nil {
		return err
	}
	if err := o.adopt(ctx, pool, nodes); err != nil {
		return err
	}
	r := newRollout(rendered.Name, nodes)
	for _, node := range r.next(pool) {
		if !o.patience.isOver(node.Name, rendered.Name, o.Clock.Now()) {
			continue
		}
		if err := o.startUpdate(ctx, node, rendered); err != nil {
			return err
		}
	}
	status := poolStatus(pool, r, metav1.NewTime(o.Clock.Now()))
	if equality.Semantic.DeepEqual(status, pool.Status) {
		return nil
	}
	pool.Status = status
	if err := o.Client.Status().Update(ctx, pool); err != nil {
		return fmt.Errorf("writing the status of MachineConfigPool %q: %w", pool.Name, err)
	}
	return nil
}

// adopt records for nodes that have just joined the worker machine config pool that they have its configuration: a node
// that is installed boots with what that had then.
func (o *MachineConfigOperator) adopt(ctx context.Context, pool *mcfgv1.MachineConfigPool, nodes []*corev1.Node) error {
	if pool.Name != workerPool {
		return nil
	}
	for _, node := range nodes {
		if node.Annotations[annotationCurrentConfig] != "" {
			continue
		}
		current := pool.Spec.Configuration.Name
		annotations := map[string]string{annotationCurrentConfig: current, annotationDesiredConfig: current, annotationState: stateDone}
		if err := o.patchNode(ctx, node.Name, false, annotations); err != nil {
			return err
		}
		node.Annotations = annotations
	}
	return nil
}

// render merges the MachineConfigs of the machine config pool, stores the result and points spec.configuration at it.
func (o *MachineConfigOperator) render(ctx context.Context, pool *mcfgv1.MachineConfigPool) (*mcfgv1.MachineConfig, error) {
	var all mcfgv1.MachineConfigList
	if err := o.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing MachineConfigs: %w", err)
	}
	// In the order of their names, as the machine-config operator merges them. A cache returns them in any order.
	slices.SortFunc(all.Items, func(a, b mcfgv1.MachineConfig) int { return strings.Compare(a.Name, b.Name) })
	var chosen []mcfgv1.MachineConfig
	var source []corev1.ObjectReference
	for i := range all.Items {
		if selects(pool.Spec.MachineConfigSelector, all.Items[i].Labels) {
			chosen = append(chosen, all.Items[i])
			source = append(source, corev1.ObjectReference{
				APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfig", Name: all.Items[i].Name,
			})
		}
	}
	rendered, err := coreos.RenderPool(pool.Name, chosen)
	if err != nil {
		return nil, err
	}
	if err := o.Client.Create(ctx, rendered); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("creating MachineConfig %q: %w", rendered.Name, err)
	}
	if pool.Spec.Configuration.Name == rendered.Name && equality.Semantic.DeepEqual(pool.Spec.Configuration.Source, source) {
		return rendered, nil
	}
	before := pool.DeepCopy()
	pool.Spec.Configuration.ObjectReference = corev1.ObjectReference{
		APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfig", Name: rendered.Name,
	}
	pool.Spec.Configuration.Source = source
	if err := o.Client.Patch(ctx, pool, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("pointing MachineConfigPool %q at %q: %w", pool.Name, rendered.Name, err)
	}
	return rendered, nil
}

// startUpdate cordons a node and reboots it in the background.
func (o *MachineConfigOperator) startUpdate(ctx context.Context, node *corev1.Node, rendered *mcfgv1.MachineConfig) error {
	err := o.patchNode(ctx, node.Name, true, map[string]string{
		annotationDesiredConfig: rendered.Name, annotationState: stateWorking, annotationReason: "",
	})
	if err != nil {
		return err
	}
	go o.finishUpdate(ctx, node.Name, rendered)
	return nil
}

// finishUpdate reboots the node and reports how that went on its annotations. A node that did not come
// up stays cordoned and degraded, as with the real daemon.
func (o *MachineConfigOperator) finishUpdate(ctx context.Context, node string, rendered *mcfgv1.MachineConfig) {
	annotations := map[string]string{annotationCurrentConfig: rendered.Name, annotationState: stateDone, annotationReason: ""}
	cordoned := false
	if err := o.Rebooter.Reboot(ctx, node, rendered); err != nil {
		annotations = map[string]string{annotationState: stateDegraded, annotationReason: err.Error()}
		cordoned = true
	}
	for ctx.Err() == nil {
		if err := o.patchNode(ctx, node, cordoned, annotations); err == nil || apierrors.IsNotFound(err) {
			return
		}
		o.Clock.Sleep(o.Interval)
	}
}

// patchNode says what it sets, not what differs from what was read: a cache may be late, and show a node as it was before it
// was cordoned.
func (o *MachineConfigOperator) patchNode(ctx context.Context, name string, cordoned bool, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"unschedulable": cordoned},
	})
	if err != nil {
		return fmt.Errorf("printing the patch of Node %q: %w", name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := o.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("updating Node %q: %w", name, err)
	}
	return nil
}
