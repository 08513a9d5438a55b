// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package text

import (
	"fmt"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// Pools draws BypassNICPools with their NICs.
func Pools(pools []view.Pool, palette Palette, columns int) string {
	drawn := make([]string, 0, len(pools))
	for _, pool := range pools {
		drawn = append(drawn, drawPool(pool, palette, columns))
	}
	return strings.Join(drawn, "\n")
}

func drawPool(pool view.Pool, palette Palette, columns int) string {
	var b strings.Builder
	b.WriteString(poolHead(pool, palette))
	b.WriteString(poolTable(pool, palette, columns))
	for _, node := range pool.Nodes {
		b.WriteString(poolReasons(node, palette, columns))
	}
	b.WriteString(poolAcceleration(pool, palette, columns))
	b.WriteString(poolRoom(pool, palette, columns))
	for _, node := range pool.Nodes {
		b.WriteString(poolEdits(node, palette, columns))
	}
	return b.String()
}

func poolHead(pool view.Pool, palette Palette) string {
	return layout.Join(palette.Title("pool "+pool.Pool), string(pool.Stack), pool.ResourceName, poolCounts(pool, palette)) + "\n"
}

// poolCounts says how many NICs there are and how many of them are healthy.
func poolCounts(pool view.Pool, palette Palette) string {
	nics, healthy := 0, 0
	for _, node := range pool.Nodes {
		nics += len(node.NICs)
		for _, nic := range node.NICs {
			if nic.Health == v1alpha1.NICHealthy {
				healthy++
			}
		}
	}
	paint := palette.Good
	if healthy < nics || nics == 0 {
		paint = palette.Bad
	}
	return paint(fmt.Sprintf("%d of %s healthy", healthy, layout.Plural(nics, "NIC"))) + " on " + layout.Plural(len(pool.Nodes), "node")
}

func poolTable(pool view.Pool, palette Palette, columns int) string {
	var rows [][]string
	for _, node := range pool.Nodes {
		for _, nic := range node.NICs {
			rows = append(rows, []string{
				node.Node, nic.PCIAddress, text(nic.Name), text(nic.Series), numaText(nic.NUMANode),
				paintHealth(nic.Health, palette)(string(nic.Health)), poolVersions(nic), poolUnits(nic), poolUsers(nic, palette),
			})
		}
	}
	if len(rows) == 0 {
		return palette.Warn("no NIC of these nodes matches spec.nics") + "\n" + poolHardware(pool, columns)
	}
	header := []string{"NODE", "NIC", "INTERFACE", "SERIES", "NUMA", "HEALTH", "MODULE/USER FILES", "UNITS", "USED BY"}
	return "\n" + Table(header, rows, palette, columns)
}

// poolHardware names the NICs that nodes have, where the pool selects none.
func poolHardware(pool view.Pool, columns int) string {
	var lines []string
	for _, node := range pool.Nodes {
		if len(node.Hardware) == 0 {
			continue
		}
		lines = append(lines, node.Node+" has")
		for _, kind := range node.Hardware {
			for _, line := range wrap(hardwareWords(kind), "  ", columns-2) {
				lines = append(lines, "  "+line)
			}
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.Join(lines, "\n") + "\n"
}

// hardwareWords are the ids of a kind of NIC as a selector writes them, its name where it has one, and the NICs.
func hardwareWords(kind view.NICKind) string {
	words := kind.Vendor + ":" + kind.Device
	if kind.Product != nil {
		words += " " + *kind.Product
	}
	return words + " (" + strings.Join(kind.Names, ", ") + ")"
}

// text is the value, or a dash for one that is not known.
func text(value *string) string {
	if value == nil {
		return orDash("")
	}
	return *value
}

func numaText(number *int) string {
	if number == nil {
		return "?"
	}
	return strconv.Itoa(*number)
}

func paintHealth(health v1alpha1.NICHealth, palette Palette) Paint {
	switch health {
	case v1alpha1.NICHealthy:
		return palette.Good
	case v1alpha1.NICUnhealthy:
		return palette.Bad
	default:
		return palette.Warn
	}
}

func poolVersions(nic view.PoolNIC) string {
	if nic.ModuleVersion == nil && nic.UserVersion == nil {
		return orDash("")
	}
	return text(nic.ModuleVersion) + "/" + text(nic.UserVersion)
}

// poolUnits is "1 of 4 used", or "4" when nobody knows what is used.
func poolUnits(nic view.PoolNIC) string {
	if nic.Users == nil {
		return strconv.Itoa(nic.Units)
	}
	return fmt.Sprintf("%d of %d used", len(nic.Users), nic.Units)
}

func poolUsers(nic view.PoolNIC, palette Palette) string {
	if nic.Users == nil {
		return "?"
	}
	lines := make([]string, 0, len(nic.Users))
	for _, user := range nic.Users {
		name := user.Namespace + "/" + user.Pod + "/" + user.Container
		switch user.Alignment {
		case v1alpha1.AlignmentAligned:
			lines = append(lines, name)
		case v1alpha1.AlignmentSplit:
			lines = append(lines, name+" "+palette.Bad("(split)"))
		default:
			lines = append(lines, name+" "+palette.Warn("(unknown)"))
		}
	}
	return orDash(strings.Join(lines, "\n"))
}

// poolReasons says why NICs are not healthy, and which containers are not aligned.
func poolReasons(node view.PoolNode, palette Palette, columns int) string {
	var b strings.Builder
	if node.Problem != nil {
		b.WriteString("\n" + block(palette.Warn(node.Node), [][]string{{"", *node.Problem}}, palette, columns))
	}
	for _, nic := range node.NICs {
		var sentences [][]string
		for _, reason := range nic.Reasons {
			sentences = append(sentences, []string{"", reason})
		}
		for _, user := range nic.Users {
			if user.Message != nil {
				sentences = append(sentences, []string{
					strings.ToLower(string(user.Alignment)), user.Namespace + "/" + user.Pod + "/" + user.Container + ": " + *user.Message,
				})
			}
		}
		if len(sentences) > 0 {
			headline := layout.Join(paintHealth(nic.Health, palette)(string(nic.Health)), node.Node, palette.Title(nic.PCIAddress))
			b.WriteString("\n" + block(headline, sentences, palette, columns))
		}
	}
	return b.String()
}

// poolRoom says what would fit next: a pod gets its units from one NUMA node.
func poolRoom(pool view.Pool, palette Palette, columns int) string {
	var rows [][]string
	for _, node := range pool.Nodes {
		for _, numa := range node.NUMANodes {
			free := "?"
			if numa.Free != nil {
				free = strconv.Itoa(*numa.Free)
			}
			rows = append(rows, []string{node.Node, numaText(numa.ID), strconv.Itoa(numa.HealthyNICs), strconv.Itoa(numa.Units), free})
		}
	}
	if len(rows) == 0 {
		return ""
	}
	return "\n" + Table([]string{"NODE", "NUMA", "HEALTHY NICs", "UNITS", "FREE FOR ONE POD"}, rows, palette, columns)
}

// poolEdits says what a container with each NIC gets.
func poolEdits(node view.PoolNode, palette Palette, columns int) string {
	var b strings.Builder
	for _, nic := range node.NICs {
		headline := "a container with NIC " + palette.Title(nic.PCIAddress) + " of " + node.Node
		switch {
		case nic.Edits != nil:
			b.WriteString("\n" + block(headline+" gets", editSentences(*nic.Edits), palette, columns))
		case nic.EditsProblem != nil:
			b.WriteString("\n" + block(headline+" cannot start", [][]string{{"", *nic.EditsProblem}}, palette, columns))
		}
	}
	return b.String()
}

func editSentences(edits view.PoolEdits) [][]string {
	sentences := make([][]string, 0, len(edits.DeviceNodes)+len(edits.Mounts)+len(edits.Environment))
	for _, node := range edits.DeviceNodes {
		sentences = append(sentences, []string{"device", node.Path + " (" + node.Permissions + ")"})
	}
	for _, mount := range edits.Mounts {
		sentences = append(sentences, []string{"file", mount.HostPath + " at " + mount.ContainerPath})
	}
	for _, variable := range edits.Environment {
		sentences = append(sentences, []string{"variable", variable.Name + "=" + variable.Value})
	}
	return sentences
}
