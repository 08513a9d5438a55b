// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/jedib0t/go-pretty/v6/table"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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

// playPool adds a pool of NICs, and follows its hugepages to the NUMA nodes of the NICs.
func playPool(ctx context.Context, s *stage) error {
	s.narrator.block(poolYAML)
	pool, err := parsePool(poolYAML)
	if err != nil {
		return err
	}
	before := map[string]int{}
	for _, name := range s.tradingNodes() {
		before[name] = s.fleet.Reboots(name)
	}
	if err := s.client.Create(ctx, pool); err != nil {
		return fmt.Errorf("creating the pool: %w", err)
	}
	s.narrator.done("created")
	if err := s.watchPool(ctx, "every NIC can be asked for, with its hugepages beside it", poolServed); err != nil {
		return err
	}
	for _, name := range s.tradingNodes() {
		if reboots := s.fleet.Reboots(name) - before[name]; reboots != 1 {
			return fmt.Errorf("the pool cost node %s %d reboots, but one change must cost one", name, reboots)
		}
	}
	s.narrator.done("one change, one reboot per node")
	return nil
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
	s.narrator.say("modprobe onload    # on %s: the modules of %s; the user files stay at %s", wrongNode, otherRelease, hosttree.OnloadVersion)
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
	s.narrator.block("\n" + color.RedString("Unhealthy") + "  " + wrongNode + "  " + v.finding(wrongNode).PCIAddress + "\n" + v.finding(wrongNode).Message)
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
	s.narrator.say("onload_install --userfiles    # on %s: %s below /opt/onload", wrongNode, otherRelease)
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
	condition := meta.FindStatusCondition(v.pool.Status.Conditions, kind)
	return condition != nil && condition.Status == status && condition.ObservedGeneration == v.pool.Generation
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

// watchPool redraws the table of the pool until the state is reached.
func (s *stage) watchPool(ctx context.Context, goal string, reached func(poolView) bool) error {
	screen := s.narrator.screen()
	return s.until(ctx, goal, func(view) bool {
		v, err := s.lookAtPool(ctx)
		if err != nil {
			return false
		}
		screen.show(poolTable(v))
		return reached(v)
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
	for _, name := range s.tradingNodes() {
		row := poolRow{node: name}
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
func poolTable(v poolView) string {
	head := newTable()
	head.AppendHeader(table.Row{"pool", "ready", "reason", "NICs", "healthy", "units"})
	ready := meta.FindStatusCondition(v.pool.Status.Conditions, v1alpha1.ConditionReady)
	reason, counts := "", &v1alpha1.PoolNICCounts{}
	if ready != nil {
		reason = ready.Reason
	}
	if v.pool.Status.NICs != nil {
		counts = v.pool.Status.NICs
	}
	head.AppendRow(table.Row{v.pool.Name, status(ready), reason, counts.Found, counts.Healthy, counts.Units})
	rows := newTable()
	rows.AppendHeader(table.Row{"node", "NIC", "NUMA node", "health", "hugepages by NUMA node", poolResource, "platform"})
	for i, row := range v.rows {
		addresses, numas, healths := poolCells(row.nics)
		rows.AppendRow(table.Row{row.node, addresses, numas, healths, pagesText(row.pages), row.allocatable, v.profile.rows[i].platform})
	}
	return head.Render() + "\n\n" + rows.Render() + "\n"
}

// poolCells are the NICs of a node, one line each.
func poolCells(nics []v1alpha1.PoolNIC) (addresses, numas, healths string) {
	lines := make([]string, 3)
	for i, nic := range nics {
		separator := "\n"
		if i == 0 {
			separator = ""
		}
		numa, paint := "?", color.RedString
		if nic.NUMANode != nil {
			numa = strconv.Itoa(int(*nic.NUMANode))
		}
		if nic.Health == v1alpha1.NICHealthy {
			paint = color.GreenString
		}
		lines[0] += separator + nic.PCIAddress
		lines[1] += separator + numa
		lines[2] += separator + paint(string(nic.Health))
	}
	return lines[0], lines[1], lines[2]
}

// pagesText is "0 · 800" for none on NUMA node 0 and 800 on NUMA node 1.
func pagesText(pages map[int]int64) string {
	var parts []string
	for numa := range maximumNUMANodes {
		if count, there := pages[numa]; there {
			text := strconv.FormatInt(count, 10)
			if count > 0 {
				text = color.CyanString(text)
			}
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, " · ")
}
