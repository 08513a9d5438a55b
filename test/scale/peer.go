// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// peerNamespace is where OpenShift's Node Tuning Operator and its objects live.
const peerNamespace = "openshift-cluster-node-tuning-operator"

// peerResult is what was measured of the Node Tuning Operator with a fleet of one size.
type peerResult struct {
	Nodes int
	// Joined is when every node had its Profile after the operator's start; Adopted when the Profile of every node named what a
	// PerformanceProfile had made.
	Joined, Adopted time.Duration
	// JoinWrites, ChangeWrites and Events are requests of the operator.
	JoinWrites, ChangeWrites, ChangeEvents int
	// ChangePerNode are its writes of Profiles for each node.
	ChangePerNode float64
	ChangeCost    cost
	Idle          quiet
}

// peer is the operator, a cluster with its kinds.
type peer struct {
	checkout string
	size     int
	limit    time.Duration
	cluster  *cluster
	manager  *manager
	result   *peerResult
}

// measurePeer measures the Node Tuning Operator, a program that was built of a checkout of its repository.
func measurePeer(ctx context.Context, checkout, binary string, size int, limit time.Duration) (measured *peerResult, err error) {
	folder, err := os.MkdirTemp("", "lowlatency-scale-peer-")
	if err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	crds, err := peerCRDs(checkout, folder)
	if err != nil {
		return nil, err
	}
	started, err := startClusterOf(ctx, apiserver.Options{Platform: apiserver.Kubernetes, CRDs: crds})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, started.stop()) }()
	p := &peer{checkout: checkout, size: size, limit: limit, cluster: started, result: &peerResult{Nodes: size}}
	p.manager = &manager{
		kubeconfig: started.kubeconfig(), log: filepath.Join(os.TempDir(), fmt.Sprintf("lowlatency-scale-peer-%d.log", size)),
		command: func(string) ([]string, []string) {
			return []string{binary, "--enable-leader-election=false", "--v=0"}, []string{
				"WATCH_NAMESPACE=" + peerNamespace, "RELEASE_VERSION=4.20.0", "RESYNC_PERIOD=600", "CLUSTER_NODE_TUNED_IMAGE=tuned:scale",
				"POD_NAME=node-tuning-operator", "OPERATOR_NAME=cluster-node-tuning-operator",
			}
		},
	}
	defer func() { err = errors.Join(err, p.manager.stop()) }()
	for _, phase := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"preparing", p.prepare}, {"starting the Node Tuning Operator", p.join}, {"a PerformanceProfile", p.change}, {"nothing", p.idle},
	} {
		progress("%d nodes: %s", size, phase.name)
		if err := phase.run(ctx); err != nil {
			return p.result, fmt.Errorf("%d nodes: %s: %w", size, phase.name, err)
		}
	}
	return p.result, nil
}

// prepare makes what the operator finds on OpenShift, and the nodes.
func (p *peer) prepare(ctx context.Context) error {
	for _, text := range []string{
		`{apiVersion: config.openshift.io/v1, kind: FeatureGate, metadata: {name: cluster}, spec: {}}`,
		`{apiVersion: config.openshift.io/v1, kind: ClusterVersion, metadata: {name: version}, spec: {clusterID: 0e7e4e3c-5a0c-4a52-8f43-6d5f4c1b2a90}}`,
		`{apiVersion: config.openshift.io/v1, kind: Infrastructure, metadata: {name: cluster}, spec: {platformSpec: {type: None}}}`,
		`{apiVersion: config.openshift.io/v1, kind: APIServer, metadata: {name: cluster}, spec: {}}`,
		`{apiVersion: machineconfiguration.openshift.io/v1, kind: MachineConfigPool, metadata: {name: trading, labels: {scale/pool: trading}}, spec: {
			machineConfigSelector: {matchExpressions: [{key: machineconfiguration.openshift.io/role, operator: In, values: [worker, trading]}]},
			nodeSelector: {matchLabels: {node-role.kubernetes.io/trading: ""}}}}`,
	} {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "\t", " ")), object); err != nil {
			return fmt.Errorf("reading what OpenShift has: %w", err)
		}
		if err := p.cluster.direct.Create(ctx, object); err != nil {
			return fmt.Errorf("making what OpenShift has: %w", err)
		}
	}
	if err := p.gates(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for i := range p.size {
		group.Go(func() error {
			return p.cluster.direct.Create(ctx, workerNode(fmt.Sprintf("worker-%05d", i), "rendered-trading"))
		})
	}
	return group.Wait()
}

// gates are those of the operator's version, without which it waits for them.
func (p *peer) gates(ctx context.Context) error {
	gate := &unstructured.Unstructured{}
	gate.SetGroupVersionKind(schema.GroupVersionKind{Group: "config.openshift.io", Version: "v1", Kind: "FeatureGate"})
	gate.SetName("cluster")
	patch := `{"status":{"featureGates":[{"version":"4.20.0","enabled":[],"disabled":[{"name":"MixedCPUsAllocation"}]}]}}`
	return p.cluster.direct.Status().Patch(ctx, gate, client.RawPatch("application/merge-patch+json", []byte(patch)))
}

// join starts the operator and waits until every node has a Profile.
func (p *peer) join(ctx context.Context) error {
	begin := time.Now()
	if err := p.manager.start(); err != nil {
		return err
	}
	if err := until(ctx, p.limit, func() (bool, error) {
		n, err := p.profiles(ctx, "")
		return n == p.size, err
	}); err != nil {
		return err
	}
	p.result.Joined = time.Since(begin)
	if err := p.quiet(ctx); err != nil {
		return err
	}
	requests, err := p.cluster.audit.since(begin)
	p.result.JoinWrites = count(requests, (*request).writes)
	return err
}

// profiles counts the Profiles of nodes that name a profile of TuneD; "" counts all.
func (p *peer) profiles(ctx context.Context, tuned string) (int, error) {
	all := &unstructured.UnstructuredList{}
	all.SetGroupVersionKind(schema.GroupVersionKind{Group: "tuned.openshift.io", Version: "v1", Kind: "ProfileList"})
	if err := p.cluster.direct.List(ctx, all, client.InNamespace(peerNamespace)); err != nil {
		return 0, err
	}
	n := 0
	for i := range all.Items {
		name, _, err := unstructured.NestedString(all.Items[i].Object, "spec", "config", "tunedProfile")
		if err != nil {
			return 0, err
		}
		if tuned == "" || name == tuned {
			n++
		}
	}
	return n, nil
}

// change applies a PerformanceProfile for all nodes. What moves nodes, its MachineConfig and KubeletConfig, is not measured: the
// operator writes these when a TuneD daemon has told it the kernel arguments, and no daemon runs here.
func (p *peer) change(ctx context.Context) error {
	before, err := p.manager.used()
	if err != nil {
		return err
	}
	profile := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`{apiVersion: performance.openshift.io/v2, kind: PerformanceProfile, metadata: {name: trading}, spec: {
  cpu: {reserved: "0-3", isolated: "4-63"}, nodeSelector: {node-role.kubernetes.io/trading: ""},
  machineConfigPoolSelector: {scale/pool: trading}, machineConfigLabel: {machineconfiguration.openshift.io/role: trading},
  hugepages: {defaultHugepagesSize: 1G, pages: [{size: 1G, count: 16, node: 0}]}, additionalKernelArgs: [audit_backlog_limit=8192],
  numa: {topologyPolicy: single-numa-node}, realTimeKernel: {enabled: false}}}`), profile); err != nil {
		return fmt.Errorf("reading the PerformanceProfile: %w", err)
	}
	begin := time.Now()
	if err := p.cluster.direct.Create(ctx, profile); err != nil {
		return fmt.Errorf("creating the PerformanceProfile: %w", err)
	}
	if err := until(ctx, p.limit, func() (bool, error) {
		n, err := p.profiles(ctx, "openshift-node-performance-trading")
		return n == p.size, err
	}); err != nil {
		return err
	}
	p.result.Adopted = time.Since(begin)
	if err := p.quiet(ctx); err != nil {
		return err
	}
	after, err := p.manager.used()
	if err != nil {
		return err
	}
	p.result.ChangeCost = after.minus(before)
	requests, err := p.cluster.audit.since(begin)
	perNode := 0
	for i := range requests {
		one := &requests[i]
		if !one.writes() {
			continue
		}
		if strings.HasPrefix(one.resource, "profiles") {
			perNode++
		}
	}
	p.result.ChangeWrites, p.result.ChangeEvents = count(requests, (*request).writes), count(requests, (*request).isEvent)
	p.result.ChangePerNode = float64(perNode) / float64(p.size)
	return err
}

// quiet waits until the operator has written nothing for a while.
func (p *peer) quiet(ctx context.Context) error { return until(ctx, p.limit, p.cluster.quiet()) }

func (p *peer) idle(ctx context.Context) error {
	before, err := p.manager.used()
	if err != nil {
		return err
	}
	begin := time.Now()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(idleTime):
	}
	after, err := p.manager.used()
	if err != nil {
		return err
	}
	requests, err := p.cluster.audit.since(begin)
	p.result.Idle = quiet{Writes: count(requests, (*request).writes), Seconds: idleTime.Seconds(), Cost: after.minus(before)}
	return err
}

// peerTable prints the figures as the documentation shows them.
func peerTable(results []*peerResult) string {
	var b strings.Builder
	b.WriteString("| Node Tuning Operator, nodes |")
	for _, r := range results {
		fmt.Fprintf(&b, " %d |", r.Nodes)
	}
	b.WriteString("\n|---|" + strings.Repeat("---:|", len(results)) + "\n")
	for _, one := range []struct {
		name  string
		value func(*peerResult) string
	}{
		{"its start: every node has a Profile", func(r *peerResult) string { return seconds(r.Joined) }},
		{"its start: writes for each node", func(r *peerResult) string { return each(float64(r.JoinWrites), r.Nodes) }},
		{"a PerformanceProfile: all nodes' Profiles name it", func(r *peerResult) string { return seconds(r.Adopted) }},
		{"a PerformanceProfile: writes for each node", func(r *peerResult) string { return fmt.Sprintf("%.2f", r.ChangePerNode) }},
		{"a PerformanceProfile: events", func(r *peerResult) string { return strconv.Itoa(r.ChangeEvents) }},
		{"a PerformanceProfile: processor time", func(r *peerResult) string { return seconds(r.ChangeCost.Processor) }},
		{"memory at most (resident)", func(r *peerResult) string { return mebibytes(max(r.ChangeCost.Peak, r.Idle.Cost.Peak)) }},
		{"nothing changes: writes in 30 s", func(r *peerResult) string { return strconv.Itoa(r.Idle.Writes) }},
		{"nothing changes: processor", func(r *peerResult) string {
			return fmt.Sprintf("%.1f %%", 100*r.Idle.Cost.Processor.Seconds()/max(r.Idle.Seconds, 1))
		}},
	} {
		fmt.Fprintf(&b, "| %s |", one.name)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", one.value(r))
		}
		b.WriteString("\n")
	}
	return b.String()
}
