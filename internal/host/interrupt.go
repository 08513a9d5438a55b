// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const irqRoot = "/proc/irq"

func (h *Host) readInterrupts(r *reader, f *Facts) {
	h.readCounters(r, &f.Interrupts, &f.Softirqs)
	f.Interrupts.DefaultAffinity = read(r, source[cpus.Set]{irqRoot + "/default_smp_affinity", r.parseMask})
	actions := actionsByName(f.Interrupts.Lines.Value)
	f.Interrupts.Routes = each(r.numbered(irqRoot, "", "", maxEntries), func(number int) InterruptRoute {
		return r.route(number, actions)
	})
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
	route := InterruptRoute{
		Number:            number,
		Affinity:          read(r, r.set(folder+"smp_affinity_list", folder+"smp_affinity")...),
		EffectiveAffinity: read(r, r.set(folder+"effective_affinity_list", folder+"effective_affinity")...),
		// Each handler of an interrupt has a subfolder.
		Actions: r.members(irqRoot+"/"+name, maxEntries, func(e entry) bool { return e.kind == kindDirectory }),
	}
	if len(route.Actions) == 0 {
		route.Actions = actions[name]
	}
	return route
}

// actionsByName takes the names of the handlers out of the descriptions of interrupts.
func actionsByName(lines []InterruptLine) map[string][]string {
	trigger := regexp.MustCompile(`^.*(?:[0-9\s]-[a-z-]+|\s(?:Edge|Level))\s{2,}(\S.*)$`)
	byName := make(map[string][]string, len(lines))
	for _, line := range lines {
		if match := trigger.FindStringSubmatch(line.Description); match != nil {
			byName[line.Name] = strings.Split(match[1], ", ")
		}
	}
	return byName
}
