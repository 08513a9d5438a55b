// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command checksdoc prints docs/checks.md, the manual of the checks, from the catalogue that the agent
// runs:
//
//	go run ./hack/checksdoc > docs/checks.md
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

const introduction = `# Checks

<!-- Printed by hack/checksdoc from internal/verify. Edit the catalogue, not this file. -->

The agent on each node asks the running kernel whether the plan is in force. Each check has one of three
outcomes: **Passed** when the kernel satisfies it, **Failed** when the kernel contradicts it, **Unknown** when
the host does not give the facts. A missing file is never a pass. Checks that the plan does not ask for are
left out of the counts. A check listed in ` + "`spec.verification.waivedChecks`" + ` is **Waived** when it does not pass.

The **impact** of a check says what its failure means: *Work* when other work can run on an isolated CPU, *Speed* when an
isolated CPU or a program on it can be slowed down, *Placement* when CPUs, memory, interrupts or devices can be on another
NUMA node than planned, *Plan* when the plan is not in force, *None* when it means none of these. The **severity** says how
urgent the finding is. A condition of LowLatencyNode is False when one of its checks with an impact failed, else Unknown when one of its
*critical* checks is unknown, else True. With ` + "`spec.verification.failOn`" + ` a severity takes the place of the impact:
` + "`Critical`, `High`, `Medium` or `Low`" + ` count the failed checks of that severity and of higher ones. What did not pass and
decides nothing is a *lesser finding*; the messages of the conditions say how many there are. A condition in brackets below is one that a check
without an impact belongs to: its failure is a lesser finding there, unless ` + "`failOn`" + ` counts its severity.

What threads of a pod do on CPUs that the pod owns, or has owned since the last reading, is not held against the node. Ticks, timers, RCU and calls of other CPUs
(` + "`cpu.tick`, `irq.ipis`, `irq.background-softirqs`" + `) may come there ten times more for each time that a thread got the CPU, as /proc/schedstat counts: a thread that sleeps is
woken, and threads that share a CPU take turns by the tick. A thread that never sleeps is given its CPU once, so that for it the bound is that of every CPU. A thread has
lost its CPU (` + "`cpu.preemption`" + `) when that happened more often than it slept. The softirqs of
networks and disks (` + "`irq.softirqs`" + `) are judged on CPUs that no pod owns: a thread that sends by the kernel has the kernel work on its own CPU. What devices
bring there is seen by ` + "`irq.delivered`" + `, packets that another CPU hands on by ` + "`net.flow-steering`, `nic.receive-steering` and `irq.ipis`" + `. The agent reads the host whenever the
kubelet gives CPUs to containers, or takes them back, so that it knows of those that were there for a second or more between two readings.

Some failures can be the doing of a pod all the same: a timer of a thread that never sleeps (` + "`cpu.tick`" + `), threads on other CPUs
that unmap its memory (` + "`irq.ipis`" + `), two threads that it has pinned to one CPU (` + "`cpu.preemption`" + `), a quota that it did not ask to be without (` + "`pod.cpu-quota`" + `). The kernel does not tell
who caused them, and the CPU is disturbed all the same; where that is accepted, waive the check.

A setting that is not as planned was never applied, or something set it after TuneD did: TuneD's log (on OpenShift that of the
node's tuned pod) says whether it applied the profile, and ` + "`grep -r` over /etc/sysctl.d, /etc/udev/rules.d and the units of the host\n" +
	"finds who else writes it. Where a fix says to write a file, that holds until the next boot. With `spec.verification.repair` the agent\n" +
	"writes what can be set right while the kernel runs." + `

Checks marked *window* compare the counters of two readings; they are left out where a host is read once only, as by
the command line. Checks marked *qualification* judge a node by a [LatencyTest](latency-tests.md#as-a-gate) that its profile names and that it has passed;
they are left out where the profile names none, before the first pass, and by the command line. The agent compares the node with what it
was then: ` + "`firmware.fingerprint` says as a finding what the reason `QualificationStale` of `Ready` says, and after the next pass it\n" +
	"passes again. With `failOn: High` it decides `DeJittered` as well: a node that boots another kernel is then not de-jittered until it was\n" +
	"measured again. `firmware.smi` is left out, with the reason, where nobody counted system management interrupts during the run: the agent\n" +
	"never does, and the pod of a LatencyTest [only where it may](jitter.md#system-management-interrupts)." + `

What is configured and what happens are different checks, because the difference is the interesting case:
` + "`cpu.nohz-full` reads a setting, `cpu.tick` counts interrupts. A rule follows the plan: a profile that keeps the\n" +
	"tick is not failed for ticking, and one with `interrupts.placement: PerPod` is judged on the CPUs that pods own.\n" + `
The address of a check in this document is its identifier: ` + "`docs/checks.md#cpu.nohz-full`" + `; ` + "`kubectl lowlatency explain cpu.nohz-full`" + `
prints the same.

Not judged, and why: transmit packet steering (XPS), coalescing of interrupts and the energy bias of processors. A
profile says nothing about the first two, which matter to traffic through the kernel only, and the third is a
register that is read by interrupting its CPU. The lowest frequency follows from ` + "`power.governor`" + `: the governor
performance asks for the highest alone. Whether a bypass stack is there stands in the status of
BypassNICPools; whether programs really use it is shown by the counters of the stack, which
` + "`kubectl lowlatency pool --acceleration`" + ` reads ([pools.md](pools.md)).
`

func main() {
	if err := printDocument(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "checksdoc:", err)
		os.Exit(1)
	}
}

// printDocument writes the whole document.
func printDocument(w io.Writer) error {
	var b strings.Builder
	b.WriteString(introduction)
	manuals := view.Manuals()
	printSummary(&b, manuals)
	for i := range manuals {
		printManual(&b, &manuals[i])
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

func printSummary(b *strings.Builder, manuals []view.Manual) {
	b.WriteString("\n| Check | Severity | Impact | Conditions | It passes when |\n|---|---|---|---|---|\n")
	for i := range manuals {
		m := &manuals[i]
		fmt.Fprintf(b, "| [%s](#%s) | %s | %s | %s | %s |\n", m.Check, m.Check, m.SeverityAndNeeds(), m.Impact, m.ConditionNames(), m.Title)
	}
}

func printManual(b *strings.Builder, manual *view.Manual) {
	fmt.Fprintf(b, "\n<a id=\"%s\"></a>\n\n## %s\n\n%s.\n\n", manual.Check, manual.Check, manual.Title)
	for _, row := range manual.Rows(func(file string) string { return "`" + file + "`" }) {
		fmt.Fprintf(b, "- **%s:** %s\n", row[0], row[1])
	}
}
