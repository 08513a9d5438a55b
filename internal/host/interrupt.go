// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const irqRoot = "/proc/irq"

func (h *Host) readInterrupts(r *reader, f *Facts) {
	h.readCounters(r, &f.Interrupts, &f.Softirqs)
	readDefaultAffinity(r, f)
	actions := actionsByName(f.Interrupts.Lines.Value)
	f.Interrupts.Routes = each(r.numbered(irqRoot, "", "", maxEntries), func(number int) InterruptRoute {
		return r.route(number, actions)
	})
}

func readDefaultAffinity(r *reader, f *Facts) {
	f.Interrupts.DefaultAffinity = read(r, source[cpus.Set]{irqRoot + "/default_smp_affinity", r.parseMask})
}

// readCounters reads the columns and lines of /proc/interrupts and /proc/softirqs.
func (h *Host) readCounters(r *reader, interrupts *Interrupts, softirqs *Softirqs) {
	interrupts.Columns, interrupts.Lines = r.counters("/proc/interrupts", largeFile, &h.interrupts)
	softirqs.Columns, softirqs.Lines = r.counters("/proc/softirqs", mediumFile, &h.softirqs)
}

// counters reads a counter table; one that makes no sense ends the Read. The latest is where the table is kept for the
// next reading, which shares with it what has not changed.
func (r *reader) counters(file string, limit int, latest *atomic.Pointer[counterTable]) ([]int, Fact[[]InterruptLine]) {
	parser := &counterParser{}
	if earlier := latest.Load(); earlier != nil {
		parser.earlier = *earlier
	}
	err := r.stream(file, limit, parser)
	if err == nil {
		var table counterTable
		if table, err = parser.finish(); err == nil {
			latest.Store(&table)
			return table.columns, Known(table.lines, file)
		}
	}
	if !isAbsent(err) {
		r.fail(file, err)
	}
	return nil, Absent[[]InterruptLine](file, reasonOf(err))
}

func (r *reader) route(number int, actions map[string][]string) InterruptRoute {
	name := strconv.Itoa(number)
	folder := irqRoot + "/" + name + "/"
	// Each handler of an interrupt has a subfolder. The folder is listed first, which tells what its files are.
	handlers := r.members(irqRoot+"/"+name, maxEntries, func(e entry) bool { return e.kind == kindDirectory })
	if len(handlers) == 0 {
		handlers = actions[name]
	}
	return InterruptRoute{
		Number:            number,
		Affinity:          read(r, r.set(folder+"smp_affinity_list", folder+"smp_affinity")...),
		EffectiveAffinity: read(r, r.set(folder+"effective_affinity_list", folder+"effective_affinity")...),
		Actions:           handlers,
	}
}

// actionsByName takes the names of the handlers out of the descriptions of interrupts.
func actionsByName(lines []InterruptLine) map[string][]string {
	byName := make(map[string][]string, len(lines))
	for _, line := range lines {
		if actions := actionsIn(line.Description); actions != "" {
			byName[line.Name] = strings.Split(actions, ", ")
		}
	}
	return byName
}

// whiteSpace separates the columns of /proc/interrupts.
const whiteSpace = " \t\n\f\r"

// actionsIn is the part of a description that follows the trigger: it stands behind the last two spaces or more that a
// trigger precedes.
func actionsIn(description string) string {
	actions := ""
	for rest := description; ; {
		start := strings.IndexAny(rest, whiteSpace)
		if start < 0 {
			return actions
		}
		behind := strings.TrimLeft(rest[start:], whiteSpace)
		before := len(description) - len(rest) + start
		if gap := len(rest) - start - len(behind); gap > 1 && behind != "" && endsInTrigger(description[:before]) {
			actions = behind
		}
		rest = behind
	}
}

// endsInTrigger recognises how x86 and Xen write the trigger of an interrupt behind its number ("0-edge", " -event"), and how
// others do ("Level").
func endsInTrigger(text string) bool {
	for _, word := range []string{"Edge", "Level"} {
		if front, ok := strings.CutSuffix(text, word); ok && strings.TrimRight(front, whiteSpace) != front {
			return true
		}
	}
	front := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyz-")
	trigger := text[len(front):]
	return len(trigger) > 1 && trigger[0] == '-' && strings.TrimRight(front, whiteSpace+"0123456789") != front
}
