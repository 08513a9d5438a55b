// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

const (
	poolName     = "x2"
	poolResource = "lowlatency.dev/x2"
	// portsPerNode and pagesPerPort are what each simulated host has, and what the pool asks for each of them.
	portsPerNode, pagesPerPort = 2, 400
	// maximumNUMANodes is more than any simulated host has.
	maximumNUMANodes = 16
	// pluginPace is how often a device plugin looks at its host.
	pluginPace = 2 * time.Second
	// otherRelease of Onload's modules does not belong to the user files.
	otherRelease, otherInterface = "9.2.0.4", "77aa0c1e5d2b43f89a6b0c1d2e3f4051"
)

// withOnload gives a machine Onload, and an interface that carries the node's own traffic.
func withOnload(machine hosttree.Machine) hosttree.Machine {
	machine.Onload = hosttree.NewOnload()
	for _, nic := range machine.NICs {
		if machine.DefaultRoute == "" && nic.Vendor != "0x1924" {
			machine.DefaultRoute = nic.Name
		}
	}
	return machine
}

// playOtherRelease upgrades one half of Onload on one node.
func playOtherRelease(ctx context.Context, s *stage) error {
	root, err := s.fleet.Root(wrongNode)
	if err != nil {
		return err
	}
	if err := hosttree.SetOnloadVersion(root, otherRelease, otherInterface); err != nil {
		return fmt.Errorf("loading other modules: %w", err)
	}
	s.narrator.say("modprobe onload    # on %s: modules of %s, user files of %s\n", wrongNode, otherRelease, hosttree.OnloadVersion)
	err = s.watchPool(ctx, "no pod gets these NICs, and the pool says why", func(v poolView) bool {
		row := v.row(wrongNode)
		return row.allocatable == 0 && v.is(v1alpha1.ConditionDegraded, metav1.ConditionTrue) && v.finding(wrongNode) != nil
	})
	if err != nil {
		return err
	}
	v, err := s.lookAtPool(ctx)
	if err != nil {
		return err
	}
	s.narrator.block("\n" + color.RedString("Unhealthy") + "  " + wrongNode + "  " + v.finding(wrongNode).PCIAddress)
	s.narrator.paragraph(v.finding(wrongNode).Message)
	return nil
}

// playSameRelease upgrades the other half.
func playSameRelease(ctx context.Context, s *stage) error {
	root, err := s.fleet.Root(wrongNode)
	if err != nil {
		return err
	}
	whole := hosttree.NewOnload()
	whole.Version, whole.InterfaceVersion = otherRelease, otherInterface
	if err := hosttree.SetOnload(root, whole); err != nil {
		return fmt.Errorf("installing the user files: %w", err)
	}
	s.narrator.say("onload_install --userfiles    # on %s: %s below /opt/onload\n", wrongNode, otherRelease)
	return s.watchPool(ctx, "the NICs are handed out again", poolServed)
}

// poolView is what the demo shows of the pool at one moment.
type poolView struct {
	profile view
	pool    v1alpha1.BypassNICPool
	rows    []poolRow
}

// poolRow is a node with its NICs of the pool.
type poolRow struct {
	node        string
	platform    string
	nics        []v1alpha1.PoolNIC
	allocatable int64
	// pages are the hugepages of 2 MiB by NUMA node, as the node's kernel has them.
	pages map[int]int64
}

// poolServed is the promised state: every NIC can be handed out, and its hugepages are on its own NUMA node only.
func poolServed(v poolView) bool {
	for _, row := range v.rows {
		if row.allocatable != portsPerNode || !row.pagesFollowNICs() {
			return false
		}
	}
	return v.is(v1alpha1.ConditionReady, metav1.ConditionTrue) && allGreen(v.profile)
}

func (r poolRow) pagesFollowNICs() bool {
	wanted := map[int]int64{}
	for _, nic := range r.nics {
		if nic.NUMANode == nil {
			return false
		}
		wanted[int(*nic.NUMANode)] += pagesPerPort
	}
	for numa, pages := range r.pages {
		if pages != wanted[numa] {
			return false
		}
	}
	return len(r.nics) == portsPerNode
}

func (v poolView) is(kind string, status metav1.ConditionStatus) bool {
	found := condition(v.pool.Status.Conditions, kind)
	return found != nil && found.Status == status && found.ObservedGeneration == v.pool.Generation
}

func (v poolView) row(node string) poolRow {
	for _, row := range v.rows {
		if row.node == node {
			return row
		}
	}
	return poolRow{}
}

func (v poolView) finding(node string) *v1alpha1.PoolFinding {
	for i := range v.pool.Status.Findings {
		if finding := &v.pool.Status.Findings[i]; finding.Node == node && finding.PCIAddress != "" {
			return finding
		}
	}
	return nil
}

// summary is the pool in one line.
func (v poolView) summary() string {
	counts, ready := nicCounts(&v.pool), condition(v.pool.Status.Conditions, v1alpha1.ConditionReady)
	return fmt.Sprintf("pool %s: Ready %s (%s), %d NICs, %d healthy", v.pool.Name, status(ready), reason(ready), counts.Found, counts.Healthy)
}

// watchPool redraws the table of the pool until the state is reached.
func (s *stage) watchPool(ctx context.Context, goal string, reached func(poolView) bool) error {
	screen := s.narrator.screen()
	return s.until(ctx, goal, func(view) bool {
		v, err := s.lookAtPool(ctx)
		if err != nil {
			return false
		}
		screen.show(v.summary(), poolTable(v, s.narrator.columns()))
		if !reached(v) {
			return false
		}
		screen.finish()
		return true
	})
}

// lookAtPool reads the pool, its nodes and what their kernels say about hugepages.
func (s *stage) lookAtPool(ctx context.Context) (poolView, error) {
	profile, err := s.look(ctx)
	if err != nil {
		return poolView{}, err
	}
	v := poolView{profile: profile}
	if err := s.client.Get(ctx, client.ObjectKey{Name: poolName}, &v.pool); err != nil {
		return v, fmt.Errorf("reading the pool: %w", err)
	}
	platforms := map[string]string{}
	for _, row := range profile.rows {
		platforms[row.name] = row.platform
	}
	for _, name := range s.tradingNodes() {
		row := poolRow{node: name, platform: platforms[name]}
		for _, member := range v.pool.Status.Members {
			if member.Node == name {
				row.nics = member.NICs
			}
		}
		var node corev1.Node
		if err := s.client.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
			return v, fmt.Errorf("reading Node %q: %w", name, err)
		}
		units := node.Status.Allocatable[poolResource]
		row.allocatable = units.Value()
		if row.pages, err = s.hugepages(name); err != nil {
			return v, err
		}
		v.rows = append(v.rows, row)
	}
	return v, nil
}

// hugepages reads the hugepages of 2 MiB of a node, by NUMA node.
func (s *stage) hugepages(node string) (map[int]int64, error) {
	root, err := s.fleet.Root(node)
	if err != nil {
		return nil, err
	}
	pages := map[int]int64{}
	for numa := range maximumNUMANodes {
		text, err := os.ReadFile(filepath.Join(root, fmt.Sprintf("sys/devices/system/node/node%d/hugepages/hugepages-2048kB/nr_hugepages", numa)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading the hugepages of node %s: %w", node, err)
		}
		if pages[numa], err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
			return nil, fmt.Errorf("reading the hugepages of node %s: %w", node, err)
		}
	}
	return pages, nil
}

// poolTable is what `kubectl get bnp` and `kubectl lowlatency pool` show, in one picture.
func poolTable(v poolView, width int) string {
	return grid(width, poolColumns(), []*v1alpha1.BypassNICPool{&v.pool}) + "\n\n" + grid(width, poolNodeColumns(), v.rows)
}

func poolColumns() []column[*v1alpha1.BypassNICPool] {
	type pool = *v1alpha1.BypassNICPool
	return []column[pool]{
		{title: "pool", cell: func(p pool) string { return p.Name }},
		{title: "ready", cell: func(p pool) string { return status(condition(p.Status.Conditions, v1alpha1.ConditionReady)) }},
		{title: "reason", cell: func(p pool) string { return reason(condition(p.Status.Conditions, v1alpha1.ConditionReady)) }},
		{title: "NICs", cell: func(p pool) string { return number(nicCounts(p).Found) }},
		{title: "healthy", cell: func(p pool) string { return number(nicCounts(p).Healthy) }},
		{title: "units", cell: func(p pool) string { return number(nicCounts(p).Units) }},
	}
}

// nicCounts are the NICs of a pool, zero before they are counted.
func nicCounts(pool *v1alpha1.BypassNICPool) v1alpha1.PoolNICCounts {
	if pool.Status.NICs == nil {
		return v1alpha1.PoolNICCounts{}
	}
	return *pool.Status.NICs
}

func poolNodeColumns() []column[poolRow] {
	return []column[poolRow]{
		{title: "node", cell: func(r poolRow) string { return r.node }},
		{title: "NICs", drop: 2, cell: func(r poolRow) string { return addresses(r.nics) }},
		{title: "NUMA node", cell: func(r poolRow) string { return numaNodes(r.nics) }},
		{title: "health", cell: func(r poolRow) string { return healths(r.nics) }},
		{title: "pages of 2 MiB", cell: func(r poolRow) string { return pagesText(r.pages) }},
		{title: poolResource, cell: func(r poolRow) string { return number(r.allocatable) }},
		{title: "platform", drop: 1, cell: func(r poolRow) string { return r.platform }},
	}
}

// addresses are the PCI addresses of the NICs of a node.
func addresses(nics []v1alpha1.PoolNIC) string {
	texts := make([]string, 0, len(nics))
	for _, nic := range nics {
		texts = append(texts, nic.PCIAddress)
	}
	return strings.Join(texts, ", ")
}

// numaNodes are the NUMA nodes of NICs, each once.
func numaNodes(nics []v1alpha1.PoolNIC) string {
	var texts []string
	for _, nic := range nics {
		numa := "?"
		if nic.NUMANode != nil {
			numa = number(*nic.NUMANode)
		}
		if !slices.Contains(texts, numa) {
			texts = append(texts, numa)
		}
	}
	return strings.Join(texts, ", ")
}

// healths counts the NICs of a node by their health: "2 Healthy".
func healths(nics []v1alpha1.PoolNIC) string {
	numbers := map[v1alpha1.NICHealth]int{}
	for _, nic := range nics {
		numbers[nic.Health]++
	}
	texts := make([]string, 0, len(numbers))
	for _, health := range slices.Sorted(maps.Keys(numbers)) {
		paint := color.RedString
		if health == v1alpha1.NICHealthy {
			paint = color.GreenString
		}
		texts = append(texts, paint("%d %s", numbers[health], health))
	}
	return strings.Join(texts, ", ")
}

// pagesText says on which NUMA nodes there are how many hugepages: "800 on node 1".
func pagesText(pages map[int]int64) string {
	var parts []string
	for _, numa := range slices.Sorted(maps.Keys(pages)) {
		if pages[numa] > 0 {
			parts = append(parts, fmt.Sprintf("%d on NUMA node %d", pages[numa], numa))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
