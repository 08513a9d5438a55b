// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// box is a value, and where it is drawn.
type box struct {
	name       string
	text       string
	x, y, w, h int
	// edge is a class of the style: what people write, what is computed, what is outside.
	class string
}

// arrow goes from one box to another, by a function. It leaves and arrives on the sides that face each other.
type arrow struct{ from, to, by string }

func boxes() []box {
	return []box{
		{"host", "a node's /proc and /sys", 20, 30, 190, 44, "outside"},
		{"facts", "Facts", 300, 30, 120, 44, "value"},
		{"topology", "Topology", 530, 30, 120, 44, "value"},
		{"wishes", "LowLatencyNodeProfile\nBypassNICPools", 20, 150, 190, 60, "wish"},
		{"plan", "NodePlan, one for\neach shape", 510, 150, 160, 60, "value"},
		{"objects", "MachineConfig, KubeletConfig,\nTuned, device plugins", 745, 150, 240, 60, "outside"},
		{"findings", "Findings", 300, 280, 120, 44, "value"},
		{"kernel", "the running kernel\nafter one reboot", 755, 272, 220, 60, "outside"},
		{"node", "LowLatencyNode.status", 260, 380, 200, 44, "value"},
		{"status", "status of profile and pools,\nNode conditions, labels, taint", 640, 372, 250, 60, "wish"},
	}
}

func arrows() []arrow {
	return []arrow{
		{"host", "facts", "host"}, {"facts", "topology", "topology"}, {"topology", "plan", "plan"}, {"wishes", "plan", "plan"},
		{"plan", "objects", "render"}, {"objects", "kernel", "the platform"}, {"plan", "findings", "verify"},
		{"kernel", "findings", "verify: read again"}, {"findings", "node", "the agent"}, {"node", "status", "fleet"},
	}
}

const dataFlowStyle = `<style>
text { font: 14px system-ui, sans-serif; fill: #1f2430; }
.by { font-size: 12px; fill: #57606a; font-style: italic; }
rect { stroke-width: 1.5; rx: 6; }
.value { fill: #ddf4ff; stroke: #0969da; }
.wish { fill: #fff8c5; stroke: #9a6700; }
.outside { fill: #f6f8fa; stroke: #57606a; }
line { stroke: #57606a; stroke-width: 1.5; marker-end: url(#head); }
</style>
<defs><marker id="head" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto"><path d="M0,0 L9,4 L0,8 z" fill="#57606a"/></marker></defs>
`

// dataFlow draws how values follow from each other.
func dataFlow() []byte {
	var out bytes.Buffer
	out.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 450" role="img" aria-label="From a host and the objects of users to the plan, and from the running kernel to the status">` + "\n" + dataFlowStyle)
	out.WriteString(`<rect x="0" y="0" width="1000" height="450" fill="#ffffff"/>` + "\n")
	at := map[string]box{}
	for _, b := range boxes() {
		at[b.name] = b
	}
	for _, a := range arrows() {
		drawArrow(&out, at[a.from], at[a.to], a.by)
	}
	for _, b := range boxes() {
		fmt.Fprintf(&out, `<rect class="%s" x="%d" y="%d" width="%d" height="%d"/>`+"\n", b.class, b.x, b.y, b.w, b.h)
		lines := strings.Split(b.text, "\n")
		for i, line := range lines {
			y := b.y + b.h/2 + 5 + 18*i - 9*(len(lines)-1)
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", b.x+b.w/2, y, html.EscapeString(line))
		}
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// drawArrow connects two boxes, and writes the function beside the middle.
func drawArrow(out *bytes.Buffer, from, to box, by string) {
	x1, y1, x2, y2 := from.x+from.w/2, from.y+from.h, to.x+to.w/2, to.y
	switch {
	case from.x+from.w <= to.x && from.y < to.y+to.h && to.y < from.y+from.h:
		x1, y1, x2, y2 = from.x+from.w, from.y+from.h/2, to.x, to.y+to.h/2
	case to.x+to.w <= from.x && from.y < to.y+to.h && to.y < from.y+from.h:
		x1, y1, x2, y2 = from.x, from.y+from.h/2, to.x+to.w, to.y+to.h/2
	}
	fmt.Fprintf(out, `<line x1="%d" y1="%d" x2="%d" y2="%d"/>`+"\n", x1, y1, x2, y2)
	x, y, anchor := (x1+x2)/2, (y1+y2)/2-6, "middle"
	if x1-x2 < 40 && x2-x1 < 40 {
		x, y, anchor = x+8, y+10, "start"
	}
	fmt.Fprintf(out, `<text class="by" x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", x, y, anchor, html.EscapeString(by))
}
