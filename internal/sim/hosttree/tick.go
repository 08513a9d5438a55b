// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Tick lets time pass: it advances the counters of /proc/interrupts, /proc/softirqs, /proc/schedstat and of the idle states
// as an idle machine with its present settings would. CPUs of nohz_full take no tick; device
// interrupts count where they are delivered; the kernel's messages between CPUs spare isolated ones.
func Tick(dir string, elapsed time.Duration) error {
	d, err := describe(dir)
	if err != nil {
		return err
	}
	return advance(dir, d.Machine, elapsed)
}

// advance is Tick on a tree without description.
func advance(root string, m Machine, elapsed time.Duration) error {
	p := &period{files: files{root: root}, seconds: elapsed.Seconds(), added: map[string]map[int]float64{}}
	p.read()
	p.kernelWork()
	for _, irq := range m.interrupts() {
		p.deliver(irq)
	}
	p.count("/proc/interrupts")
	p.count("/proc/softirqs")
	p.replace("/proc/uptime", fmt.Sprintf("%.2f 0.00\n", p.float(p.value("/proc/uptime"))+p.seconds))
	p.schedule()
	p.idle()
	if p.err != nil {
		return fmt.Errorf("letting time pass on a host tree: %w", p.err)
	}
	return nil
}

// period is a time that passes on a tree.
type period struct {
	files
	seconds float64
	// online, tickless and quiet CPUs; quiet ones get no messages of others.
	online, tickless, quiet cpus.Set
	// running is how many processes run all the time on a CPU, sleeping how many programs sleep there.
	running, sleeping map[int]int
	// added is what counters get, by name and CPU.
	added map[string]map[int]float64
}

func (p *period) read() {
	p.online = p.set(cpuFolder + "/online")
	p.tickless = p.set(cpuFolder + "/nohz_full")
	p.quiet = p.tickless.Union(p.set(cpuFolder + "/isolated"))
	p.countProcesses()
	p.tickless = p.tickless.Filter(func(cpu int) bool { return !p.isCrowded(cpu) })
}

// isCrowded reports whether two processes run all the time on a CPU: those keep the tick to share it, whatever nohz_full says (sched_can_stop_tick
// of kernel/sched/core.c).
func (p *period) isCrowded(cpu int) bool { return p.running[cpu] > 1 }

// countProcesses counts the processes that run all the time, and the programs that sleep.
func (p *period) countProcesses() {
	p.running, p.sleeping = map[int]int{}, map[int]int{}
	folders, err := filepath.Glob(filepath.Join(p.root, "proc", "[0-9]*"))
	if err != nil {
		p.fail("/proc", err)
	}
	for _, folder := range folders {
		fields := strings.Fields(p.text("/proc/" + filepath.Base(folder) + "/stat"))
		const state, flags, processor, kernelThread = 2, 8, 38, 0x200000
		switch {
		case len(fields) <= processor:
		case fields[state] == "R":
			p.running[p.number(fields[processor])]++
		case fields[state] == "S" && p.number(fields[flags])&kernelThread == 0:
			p.sleeping[p.number(fields[processor])]++
		}
	}
}

// add lets a counter grow on CPUs.
func (p *period) add(name string, on cpus.Set, perSecond float64) {
	if p.added[name] == nil {
		p.added[name] = map[int]float64{}
	}
	for _, cpu := range on.IDs() {
		p.added[name][cpu] += perSecond * p.seconds
	}
}

// kernelWork counts what happens without devices.
func (p *period) kernelWork() {
	ticking, busy := p.online.Difference(p.tickless), p.online.Difference(p.quiet)
	for name, perSecond := range map[string]float64{"LOC": 250, "TIMER": 50, "SCHED": 50, "RCU": 30} {
		p.add(name, ticking, perSecond)
	}
	for name, perSecond := range map[string]float64{"RES": 15, "CAL": 5, "TLB": 2, "IWI": 1, "IPI0": 15, "IPI1": 5} {
		p.add(name, busy, perSecond)
	}
	if p.value("/proc/sys/kernel/nmi_watchdog") == "1" {
		watched := p.online.Intersection(p.set("/proc/sys/kernel/watchdog_cpumask"))
		p.add("NMI", watched, 0.1)
		p.add("PMI", watched, 0.1)
	}
	if p.value("/sys/devices/system/machinecheck/machinecheck0/ignore_ce") == "0" {
		p.add("MCP", p.online, 1.0/300)
	}
}

// deliver counts a device's interrupt, and the work that it causes, where it is delivered. A managed one
// whose CPUs are all isolated comes only when a program on them does input or output
// (Documentation/admin-guide/kernel-parameters.txt, isolcpus=managed_irq).
func (p *period) deliver(irq interrupt) {
	name := strconv.Itoa(irq.number)
	if irq.perCPU {
		if irq.handler == "arch_timer" {
			p.add(name, p.online.Difference(p.tickless), 250)
		}
		return
	}
	effective := p.set(irqFile(irq.number, "effective_affinity_list"))
	if !irq.managed.IsEmpty() && effective.IsSubsetOf(p.quiet) {
		return
	}
	p.add(name, effective, irq.perSecond)
	switch {
	case !irq.managed.IsEmpty():
		p.add("BLOCK", effective, irq.perSecond)
	case irq.queue:
		p.add("NET_RX", effective, irq.perSecond)
	}
}

func irqFile(number int, name string) string { return fmt.Sprintf("%s/%d/%s", irqFolder, number, name) }

// count adds to the counters of a file, if the host shows it.
func (p *period) count(path string) {
	if !p.exists(path) {
		return
	}
	table, err := parseCounters(p.text(path))
	if err != nil {
		p.fail(path, err)
		return
	}
	for _, row := range table.rows {
		for i, cpu := range table.columns {
			row.counts[i] += uint64(p.added[row.name][cpu])
		}
	}
	p.replace(path, table.String())
}

// idle lets every CPU enter the deepest state that its latency limit and switches allow
// (Documentation/admin-guide/pm/cpuidle.rst).
func (p *period) idle() {
	for _, cpu := range p.online.IDs() {
		perSecond := 50.0
		if p.quiet.Contains(cpu) {
			perSecond = 1
		}
		if state := p.deepestState(cpu); state != "" {
			usage := state + "/usage"
			before, err := strconv.ParseUint(p.value(usage), 10, 64)
			if err != nil {
				p.fail(usage, err)
				return
			}
			p.replace(usage, fmt.Sprintln(before+uint64(perSecond*p.seconds)))
		}
	}
}

// deepestState is the folder of the last state within the CPU's latency limit: 0 means no limit, n/a the
// shallowest state alone.
func (p *period) deepestState(cpu int) string {
	limit := 0
	switch text := p.value(cpuPath(cpu, "power/pm_qos_resume_latency_us")); text {
	case "n/a":
	case "0":
		limit = math.MaxInt
	default:
		limit = p.number(text)
	}
	limit = min(limit, p.latencyLimit())
	deepest := ""
	for index := 0; ; index++ {
		state := cpuPath(cpu, fmt.Sprint("cpuidle/state", index))
		if !p.exists(state + "/usage") {
			return deepest
		}
		if p.value(state+"/disable") == "0" && (index == 0 || p.number(p.value(state+"/latency")) <= limit) {
			deepest = state
		}
	}
}

// latencyLimit is what a program asked for that holds latencyDevice open, in microseconds.
func (p *period) latencyLimit() int {
	if !p.exists(latencyDevice) {
		return math.MaxInt
	}
	return p.number(p.value(latencyDevice))
}

// files reads and replaces files of a tree and keeps the first error.
type files struct {
	root string
	err  error
}

func (f *files) fail(path string, err error) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %w", path, err)
	}
}

func (f *files) exists(path string) bool {
	_, err := os.Stat(filepath.Join(f.root, path))
	return err == nil
}

func (f *files) text(path string) string {
	data, err := os.ReadFile(filepath.Join(f.root, path))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		f.fail(path, err)
	}
	return string(data)
}

// value is a small file without surrounding white space; "" when it does not exist.
func (f *files) value(path string) string { return strings.TrimSpace(f.text(path)) }

func (f *files) set(path string) cpus.Set {
	set, err := cpus.Parse(f.value(path))
	if err != nil {
		f.fail(path, err)
	}
	return set
}

func (f *files) number(text string) int {
	number, err := strconv.Atoi(text)
	if err != nil {
		f.fail("a number of the tree", err)
	}
	return number
}

// float is the first number of a text.
func (f *files) float(text string) float64 {
	first, _, _ := strings.Cut(text, " ")
	number, err := strconv.ParseFloat(first, 64)
	if err != nil {
		f.fail("a number of the tree", err)
	}
	return number
}

// replace puts a whole new file into the place of an old one, so that a reader never sees a part. It
// stays within the tree whatever links the path runs over.
func (f *files) replace(path, content string) {
	if f.err != nil {
		return
	}
	if err := replaceWithin(f.root, path, content); err != nil {
		f.fail(path, err)
	}
}

func replaceWithin(dir, path, content string) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	aside := fmt.Sprintf(".write-%x", rand.Uint64())
	path = strings.TrimPrefix(path, "/")
	if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := root.WriteFile(aside, []byte(content), 0o644); err != nil {
		return err
	}
	return root.Rename(aside, path)
}
