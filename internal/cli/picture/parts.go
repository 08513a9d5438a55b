// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package picture

import (
	"fmt"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// tile is how big a CPU is drawn.
type tile struct {
	size
	// numbered reports whether there is room for the number of the CPU beside its letter.
	numbered bool
}

// tile is smaller on machines with many CPUs.
func (d *drawing) tile() tile {
	const many, crowd = 96, 192
	switch count := d.machine.Online.Union(d.machine.Offline).Len(); {
	case count >= crowd:
		return tile{size{15, 17}, false}
	case count >= many:
		return tile{size{27, 28}, true}
	default:
		return tile{size{33, 32}, true}
	}
}

// between cores, and around those that share an L3 cache.
const (
	coreGap = 4.0
	padding = 5.0
)

// cores draws the cores of a NUMA node, those that share an L3 cache in a frame.
func (d *drawing) cores(cores []topology.Core, x, y, width float64) float64 {
	at := point{x, y}
	height := 0.0
	for _, group := range layout.ByL3(cores) {
		need := d.groupSize(group, width)
		if at.x > x && at.x+need.w > x+width {
			at = point{x, at.y + height + padding}
			height = 0
		}
		d.group(group, at, need)
		at.x += need.w + padding
		height = max(height, need.h)
	}
	if height == 0 {
		return at.y
	}
	return at.y + height + padding
}

// coreWidth is that of the core with the most threads.
func (d *drawing) coreWidth() float64 {
	threads := 1
	for _, core := range d.machine.Cores {
		threads = max(threads, core.CPUs.Len())
	}
	return float64(threads) * d.tile().w
}

// perRow is how many cores stand in a row of so many pixels.
func (d *drawing) perRow(width float64) int {
	return max(1, int((width-2*padding+coreGap)/(d.coreWidth()+coreGap)))
}

// head is the height of the label above CPUs that have no number.
func (d *drawing) head() float64 {
	if d.tile().numbered {
		return 0
	}
	return 13
}

func (d *drawing) groupSize(group layout.Group, width float64) size {
	columns := min(len(group.Cores), d.perRow(width))
	rows := (len(group.Cores) + columns - 1) / columns
	return size{
		2*padding + float64(columns)*(d.coreWidth()+coreGap) - coreGap,
		2*padding + d.head() + float64(rows)*(d.tile().h+coreGap) - coreGap,
	}
}

func (d *drawing) group(group layout.Group, at point, s size) {
	if group.ID != layout.Unknown {
		d.rect("l3", at, s, 4)
	}
	if d.head() > 0 {
		first, last := group.Cores[0].CPUs.First(), group.Cores[len(group.Cores)-1].CPUs.Last()
		d.text("f", point{at.x + padding, at.y + 12}, fmt.Sprintf("CPU %d…%d", first, last))
	}
	columns := d.perRow(s.w)
	for i, core := range group.Cores {
		d.core(core, point{
			at.x + padding + float64(i%columns)*(d.coreWidth()+coreGap),
			at.y + padding + d.head() + float64(i/columns)*(d.tile().h+coreGap),
		})
	}
}

// core draws the threads of a core side by side without a gap.
func (d *drawing) core(core topology.Core, at point) {
	for i, cpu := range core.CPUs.IDs() {
		d.cpu(cpu, point{at.x + float64(i)*d.tile().w, at.y})
	}
	for i, cpu := range core.CPUs.IDs() {
		if d.view.Names(cpu) {
			corner := point{at.x + float64(i)*d.tile().w, at.y}
			d.rect("hit", corner, d.tile().size, 2)
			d.warning(point{corner.x + d.tile().w - 0.27*d.tile().h, corner.y - 0.12*d.tile().h}, 0.34*d.tile().h)
		}
	}
}

func (d *drawing) cpu(cpu int, at point) {
	role := d.view.DrawnRole(cpu)
	as, t := lookOf(role), d.tile()
	if d.view.Names(cpu) {
		as = look{ground: "rX", ink: "on"}
	}
	d.printf(`<g><title>%s</title>`, escape(d.tell(cpu)))
	d.rect("cpu "+as.ground, at, t.size, 2)
	if as.over != "" {
		d.rect(as.over, at, t.size, 2)
	}
	middle := at.x + t.w/2
	if t.numbered {
		d.text("num "+as.ink, point{middle, at.y + t.h*0.46}, strconv.Itoa(cpu))
		d.text("let "+as.ink, point{middle, at.y + t.h*0.86}, role.Letter())
	} else {
		d.text("num "+as.ink, point{middle, at.y + t.h*0.72}, role.Letter())
	}
	d.WriteString("</g>\n")
}

// tell says everything about a CPU in one line.
func (d *drawing) tell(cpu int) string {
	parts := []string{fmt.Sprintf("CPU %d", cpu), d.words(d.view.RoleOf(cpu))}
	for _, owner := range d.view.OwnersOf(cpu) {
		parts = append(parts, "owned by "+owner)
	}
	for _, finding := range d.view.Findings {
		if finding.Place.CPUs.Contains(cpu) {
			parts = append(parts, string(finding.Check)+": "+string(finding.Outcome))
		}
	}
	return layout.Join(parts...)
}

// bar draws the hugepages of one size: what is used, what is free, and what is planned and not there.
func (d *drawing) bar(pages view.HugepageState, x, y, width float64) float64 {
	const height = 11.0
	name := 150.0
	length := min(220, width*0.35)
	d.tspans(point{x, y + 10}, "f", "hugepages ", "b", layout.Bytes(pages.SizeKibibytes*1024))
	shares := pages.Shares(int(length))
	left := x + name
	for _, part := range []struct {
		class string
		width int
	}{{"used", shares.Used}, {"dots", shares.Free}, {"cross", shares.Missing}, {"none", shares.Unknown}} {
		if part.width > 0 {
			d.rect(part.class, point{left, y + 1}, size{float64(part.width), height}, 1)
			left += float64(part.width)
		}
	}
	class := "f"
	if shares.Missing > 0 {
		class = "bad"
	}
	d.text(class, point{x + name + length + gap, y + 10}, cut(pages.Words(), width-name-length-gap))
	return y + line
}

// nic draws a NIC with what is made of it.
func (d *drawing) nic(nic topology.NIC, x, y, width float64) float64 {
	d.rect("nic", point{x, y + 1}, size{27, 13}, 2)
	d.text("f mid", point{x + 13.5, y + 11}, "NIC")
	if d.view.NamesNIC(nic.PCIAddress) {
		d.warning(point{x + 30, y + 2}, 11)
	}
	var uses, ill []string
	for _, use := range d.view.UsesOf(nic.PCIAddress) {
		words := fmt.Sprintf("pool %s: %s%s", use.Pool, use.NIC.Health, use.Words())
		if use.NIC.Health == v1alpha1.NICHealthy {
			uses = append(uses, words)
		} else {
			ill = append(ill, words)
		}
	}
	if nic.Management != "" {
		uses = append(uses, "carries "+nic.Management)
	}
	if count := layout.VirtualFunctions(d.machine, nic.PCIAddress); count > 0 {
		uses = append(uses, "+ "+layout.Plural(count, "virtual function"))
	}
	room := width - 46
	pieces := []string{"b", nic.Name + " ", "f", strings.TrimSpace(nic.PCIAddress+" "+nic.Driver) + " ", "bad", layout.Join(ill...) + " ", "t", layout.Join(uses...)}
	for i := 1; i < len(pieces); i += 2 {
		pieces[i] = shorten(pieces[i], &room)
	}
	d.tspans(point{x + 46, y + 11}, pieces...)
	return y + line
}

// shorten cuts a text to the room that is left, and takes its length off it.
func shorten(text string, room *float64) string {
	if *room < 2*advance || strings.TrimSpace(text) == "" {
		return ""
	}
	text = cut(text, *room)
	*room -= long(text)
	return text
}

// findings lists the failed checks of a NUMA node, each in two lines: what and where, then the sentence.
func (d *drawing) findings(node *topology.NUMANode, x, y, width float64) float64 {
	const most = 8
	local := d.view.FindingsAt(node)
	for _, finding := range local[:min(most, len(local))] {
		d.warning(point{x, y + 2}, 11)
		room := width - 18
		pieces := []string{"bad", cut(d.view.LabelAt(node, finding), room*0.4) + " ", "b", string(finding.Check) + " ", "f", string(finding.Severity)}
		for i := 1; i < len(pieces); i += 2 {
			pieces[i] = shorten(pieces[i], &room)
		}
		d.tspans(point{x + 18, y + 12}, pieces...)
		d.printf(`<g><title>%s</title>`, escape(finding.Message))
		d.text("f", point{x + 18, y + 12 + line - 3}, cut(finding.Message, width-18))
		d.WriteString("</g>\n")
		y += 2*line - 1
	}
	if more := len(local) - most; more > 0 {
		d.text("bad", point{x + 18, y + 12}, fmt.Sprintf("and %d more", more))
		y += line
	}
	return y
}

// legend explains colours, letters and signs.
func (d *drawing) legend(y float64) float64 {
	const swatch = 22.0
	at := point{margin, y + 4}
	next := func(need float64) {
		if at.x > margin && at.x+need > total-margin {
			at = point{margin, at.y + line + 6}
		}
	}
	for _, role := range d.view.DrawnRoles() {
		words := d.words(role.Role) + " " + cut(role.CPUs.String(), 200)
		need := swatch + 6 + long(words) + 2*gap
		next(need)
		as := lookOf(role.Role)
		d.rect("cpu "+as.ground, at, size{swatch, 16}, 2)
		if as.over != "" {
			d.rect(as.over, at, size{swatch, 16}, 2)
		}
		d.text("num "+as.ink, point{at.x + swatch/2, at.y + 12}, role.Role.Letter())
		d.text("t", point{at.x + swatch + 6, at.y + 12}, words)
		at.x += need
	}
	for _, sign := range d.signs() {
		need := swatch + 6 + long(sign.words) + 2*gap
		next(need)
		if sign.class == "" {
			d.warning(point{at.x + 4, at.y + 1}, 13)
		} else {
			d.rect(sign.class, point{at.x, at.y + 2}, size{swatch, 11}, 1)
		}
		d.text("t", point{at.x + swatch + 6, at.y + 12}, sign.words)
		at.x += need
	}
	return at.y + line + margin
}

// sign is an entry of the legend besides the roles.
type sign struct{ class, words string }

// signs are the entries of the legend besides the roles.
func (d *drawing) signs() []sign {
	inUse, free := sign{"used", "hugepages in use"}, sign{"dots", "free"}
	if d.view.IsHardware() {
		return []sign{inUse, free}
	}
	return []sign{{"", "a failed check names it"}, inUse, free, {"cross", "planned, not there"}}
}

// words name a role in the legend. Where nothing is asked of the machine, a CPU is online or not.
func (d *drawing) words(role view.RoleName) string {
	if role == view.RoleNone && d.view.IsHardware() {
		return "online"
	}
	return role.Words()
}
