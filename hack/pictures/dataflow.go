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
		{"facts", "Facts", 270, 30, 120, 44, "value"},
		{"topology", "Topology", 480, 30, 120, 44, "value"},
		{"wishes", "LowLatencyNodeProfile\nBypassNICPools", 20, 160, 190, 60, "wish"},
		{"plan", "NodePlan, one for\neach shape", 460, 130, 160, 120, "value"},
		{"pods", "device plugins, DRA drivers,\nnetwork attachments", 710, 78, 230, 56, "outside"},
		{"openshift", "on OpenShift: MachineConfig,\nKubeletConfig, Tuned", 710, 147, 230, 56, "outside"},
		{"ordinary", "on ordinary hosts: operations,\nsigned as an instruction", 710, 216, 230, 56, "outside"},
		{"kernel", "the running\nkernel after\none reboot", 1090, 130, 130, 120, "outside"},
		{"findings", "Findings", 270, 390, 120, 44, "value"},
		{"node", "LowLatencyNode.status", 480, 390, 210, 44, "value"},
		{"test", "LatencyTest", 480, 480, 210, 44, "wish"},
		{"status", "status of profile, pools\nand tests, Node conditions,\nlabels, taint", 850, 390, 230, 134, "wish"},
	}
}

func arrows() []arrow {
	return []arrow{
		{"host", "facts", "host"}, {"facts", "topology", "topology"}, {"topology", "plan", "plan"}, {"wishes", "plan", "plan"},
		{"plan", "pods", "render"}, {"plan", "openshift", "render"}, {"plan", "ordinary", "render"},
		{"openshift", "kernel", "its operators"}, {"ordinary", "kernel", "the guard"}, {"plan", "findings", "verify"},
		{"kernel", "findings", "verify: read again"}, {"findings", "node", "the agent"}, {"node", "status", "fleet"}, {"test", "status", "Jobs on nodes"},
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
	out.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1240 550" role="img" aria-label="From a host and the objects of users to the plan, and from the running kernel to the status">` + "\n" + dataFlowStyle)
	out.WriteString(`<rect x="0" y="0" width="1240" height="550" fill="#ffffff"/>` + "\n")
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
