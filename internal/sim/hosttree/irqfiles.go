// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const irqFolder = "/proc/irq"

// writeInterrupts writes /proc/irq as Documentation/core-api/irq/irq-affinity.rst describes it.
func (k *kernel) writeInterrupts(t *tree) {
	t.file(irqFolder+"/default_smp_affinity", k.defaultAffinity.Mask())
	for _, irq := range k.interrupts() {
		folder := fmt.Sprint(irqFolder, "/", irq.number)
		writeRoute(t, folder, k.routes[irq.number])
		t.file(folder+"/node", irq.numaNode)
		t.directory(folder + "/" + irq.handler)
	}
}

func writeRoute(t *tree, folder string, r route) {
	t.masks(folder, "smp_affinity", "smp_affinity_list", notationOf(r.allowed))
	t.masks(folder, "effective_affinity", "effective_affinity_list", notationOf(r.effective))
}

// writeCounters writes /proc/interrupts, with a column for each online CPU, and /proc/softirqs, with one
// for each possible CPU; every counter is 0.
func (k *kernel) writeCounters(t *tree) {
	interrupts := counters{columns: k.online.IDs()}
	for _, irq := range k.interrupts() {
		interrupts.add(strconv.Itoa(irq.number), irq.chip+"      "+irq.handler)
	}
	names := [][2]string{
		{"NMI", "Non-maskable interrupts"}, {"LOC", "Local timer interrupts"}, {"SPU", "Spurious interrupts"},
		{"PMI", "Performance monitoring interrupts"}, {"IWI", "IRQ work interrupts"}, {"RTR", "APIC ICR read retries"},
		{"RES", "Rescheduling interrupts"}, {"CAL", "Function call interrupts"}, {"TLB", "TLB shootdowns"},
		{"TRM", "Thermal event interrupts"}, {"THR", "Threshold APIC interrupts"}, {"DFR", "Deferred Error APIC interrupts"},
		{"MCE", "Machine check exceptions"}, {"MCP", "Machine check polls"},
	}
	totals := []string{"ERR", "MIS"}
	if k.Architecture == "arm64" {
		names = [][2]string{
			{"IPI0", "Rescheduling interrupts"}, {"IPI1", "Function call interrupts"}, {"IPI2", "CPU stop interrupts"},
			{"IPI3", "CPU stop (for crash dump) interrupts"}, {"IPI4", "Timer broadcast interrupts"}, {"IPI5", "IRQ work interrupts"},
		}
		totals = []string{"Err"}
	}
	for _, name := range names {
		interrupts.add(name[0], "  "+name[1])
	}
	interrupts.totals = totals
	t.text("/proc/interrupts", interrupts.String())

	softirqs := counters{columns: k.all.IDs()}
	for _, name := range []string{"HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"} {
		softirqs.add(name, "")
	}
	t.text("/proc/softirqs", softirqs.String())
}

// writeKernelFiles writes the rest of /sys that tells how the kernel was started.
func (k *kernel) writeKernelFiles(t *tree) {
	if k.realTime() {
		t.file("/sys/kernel/realtime", 1)
	}
	t.file("/sys/devices/virtual/workqueue/cpumask", k.unboundWork().Mask())
	// The queue's own mask is every CPU; the kernel applies the one above to it.
	t.file("/sys/devices/virtual/workqueue/writeback/cpumask", k.all.Mask())
	t.link("/sys/bus/workqueue/devices/writeback", "/sys/devices/virtual/workqueue/writeback")
	current, available := k.clocksource()
	t.file("/sys/devices/system/clocksource/clocksource0/current_clocksource", current)
	t.file("/sys/devices/system/clocksource/clocksource0/available_clocksource", available)
	t.file("/sys/kernel/rcu_expedited", 0)
	t.file("/sys/kernel/tracing/current_tracer", "nop")
	t.text("/sys/kernel/tracing/set_event", "")
	t.text("/sys/kernel/tracing/enabled_functions", "")
	t.directory("/sys/kernel/tracing/instances")
	k.writeParameters(t)
	checks, _ := k.line.Get("mce")
	if k.Architecture == "amd64" && checks != "off" {
		ignore := 0
		if k.line.Contains("mce=ignore_ce") {
			ignore = 1
		}
		// Every CPU has such a folder with the same values (arch/x86/kernel/cpu/mce/core.c); one is enough.
		t.file("/sys/devices/system/machinecheck/machinecheck0/ignore_ce", ignore)
		t.file("/sys/devices/system/machinecheck/machinecheck0/check_interval", 300)
	}
}

// writeParameters writes parameters of the kernel's parts: what the command line says, else the default.
// Tickless CPUs make power-efficient workqueues unbound (workqueue_init_early).
func (k *kernel) writeParameters(t *tree) {
	efficient, boost := "N", "0"
	if !k.isolation.Noise.IsEmpty() {
		efficient = "Y"
	}
	if k.realTime() {
		boost = "1"
	}
	parameters := map[string]string{
		"processor.max_cstate": "8", "rcutree.kthread_prio": boost, "workqueue.power_efficient": efficient,
	}
	if len(k.NativeIdleStates) > 0 {
		parameters["intel_idle.max_cstate"] = "9"
	}
	for name, value := range parameters {
		if asked, given := k.line.Get(name); given {
			value = asked
		}
		part, parameter, _ := strings.Cut(name, ".")
		t.file("/sys/module/"+part+"/parameters/"+parameter, value)
	}
	policy, _ := k.line.Get("pcie_aspm.policy")
	t.file("/sys/module/pcie_aspm/parameters/policy", choice(policy, "default", "default", "performance", "powersave", "powersupersave"))
}

// unboundWork follows workqueue_init_early of kernel/workqueue.c: unbound workqueues keep off CPUs without
// tick and off CPUs without scheduler domain, unless that leaves none.
func (k *kernel) unboundWork() cpus.Set {
	mask := k.all
	for _, away := range []cpus.Set{k.isolation.Noise, k.isolation.Domain} {
		mask = firstNonEmpty(mask.Difference(away), mask)
	}
	return mask
}

// clocksource follows kernel/time/clocksource.c and arch/x86/kernel/tsc.c: clocksource= chooses,
// tsc=unstable takes the TSC out.
func (k *kernel) clocksource() (current, available string) {
	sources := []string{"tsc", "hpet", "acpi_pm"}
	if k.Architecture == "arm64" {
		sources = []string{"arch_sys_counter"}
	} else if k.line.Contains("tsc=unstable") {
		sources = sources[1:]
	}
	available = strings.Join(sources, " ")
	if asked, _ := k.line.Get("clocksource"); asked != "" && strings.Contains(available, asked) {
		return asked, available
	}
	return sources[0], available
}
