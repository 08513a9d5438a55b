// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

const (
	// hostOfGuest is this machine, as a guest on QEMU's user network sees it.
	hostOfGuest = "10.0.2.2"
	// windowPairs are the windows with the agent and as many without.
	windowPairs = 5
	// windowSeconds of the guest are the length of each window; the agent looks at its host several times in each.
	windowSeconds = 20
	agentUnit     = "agent.service"
)

// withAgent runs the agent itself on a tuned machine, against a real API server. It must come to the verdict of the
// checks, keep off the isolated CPUs and leave no trace in their counters, and put back what drifts.
func (j *judged) withAgent(table *outcomeTable) {
	j.t.Helper()
	server, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	j.must(err)
	j.t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			j.t.Error(err)
		}
	})
	j.startAgent(server)
	j.await(server, "verified", func(status v1alpha1.LowLatencyNodeStatus) bool {
		return verdictsIn(status) == verdicts{yes, yes, yes}
	})
	table.add(j.Name(), "as planned, judged by the running agent", string(yes), string(yes), string(yes), "nothing")
	j.t.Run("the agent is quiet", func(t *testing.T) { j.in(t).agentIsQuiet(table) })
	for _, tc := range repairs() {
		j.t.Run(tc.name, func(t *testing.T) { j.in(t).repaired(server, tc, table) })
	}
}

// agentIsQuiet compares windows in which the agent runs with windows in which it is stopped.
func (j *judged) agentIsQuiet(table *outcomeTable) {
	j.t.Helper()
	j.agentKeepsOff()
	// Every five minutes the kernel polls for machine checks on each CPU, in one of the windows.
	const polling = "/sys/devices/system/machinecheck/machinecheck0/check_interval"
	j.run(set(polling, "0"))
	readings := j.alternate()
	j.run(set(polling, "300"))
	printQuietness(readings)
	for _, kind := range readings.kinds() {
		on, off := readings.of(kind)
		if difference, noise := mean(on)-mean(off), spread(off); difference > noise {
			j.t.Errorf("%s on isolated CPUs: %.1f more in a window with the agent; windows without it differ by %.1f among themselves", kind, difference, noise)
		}
	}
	table.add(j.Name(), fmt.Sprintf("the agent runs and is stopped in turn, %d windows of %d s each", windowPairs, windowSeconds),
		string(yes), string(yes), string(yes), "no counter of isolated CPUs beyond their noise")
}

// drift is something that the agent puts back.
type drift struct {
	name, disturb string
	// restored succeeds when the kernel is as planned again.
	restored string
	check    v1alpha1.CheckID
}

func repairs() []drift {
	return []drift{
		{
			name:    "transparent hugepages are switched on, with repair",
			disturb: set(hugepageMode, "always"), restored: "grep -q '\\[never\\]' " + hugepageMode,
			check: "memory.transparent-hugepages",
		},
		{
			name:    "the mask of unbound kernel work is reset, with repair",
			disturb: set(workqueueMask, "ff"), restored: "grep -q '^0*11$' " + workqueueMask,
			check: "workqueue.unbound",
		},
		{
			name:     "a NIC's interrupt is moved to isolated CPU 2, with repair",
			disturb:  moveInterrupt(2),
			restored: "irq=$(awk -F: '/ens1-rx-0/ {print $1 + 0}' /proc/interrupts); grep -qE '^[04]$' /proc/irq/$irq/effective_affinity_list",
			check:    "irq.effective-affinity",
		},
	}
}

// repaired breaks something and waits until the kernel is as planned again, and until the agent has counted it.
func (j *judged) repaired(server *apiserver.Environment, d drift, table *outcomeTable) {
	j.t.Helper()
	j.run(d.disturb)
	j.run("for i in $(seq 240); do " + d.restored + " && exit 0; sleep 0.5; done; exit 1")
	j.await(server, "repaired", func(status v1alpha1.LowLatencyNodeStatus) bool {
		return slices.ContainsFunc(status.Drift, func(counted v1alpha1.CheckDrift) bool {
			return counted.Check == d.check && counted.Drifted > 0 && counted.Repaired > 0
		}) && verdictsIn(status) == verdicts{yes, yes, yes}
	})
	table.add(j.Name(), d.name, string(yes), string(yes), string(yes), string(d.check)+" put back and counted")
}

// startAgent stores the plan as the operator does and starts the agent with the node's name.
func (j *judged) startAgent(server *apiserver.Environment) {
	j.t.Helper()
	ctx := j.t.Context()
	config, err := manifest.PlanConfigMap(j.plan, j.plan.Hash(), corev1.NamespaceDefault)
	j.must(err)
	j.must(server.Client().Create(ctx, config))
	j.must(server.Client().Create(ctx, &v1alpha1.LowLatencyNode{
		ObjectMeta: metav1.ObjectMeta{Name: j.Name()},
		Spec:       v1alpha1.LowLatencyNodeSpec{Profile: j.plan.Profile, PlanHash: j.plan.Hash(), PlanConfigMap: config.Name},
	}))
	j.must(j.WriteFile(ctx, "/root/kubeconfig", kubeconfig(j.t, server.Config()), 0o600))
	j.run("systemd-run --quiet --unit=" + agentUnit + " --setenv=KUBECONFIG=/root/kubeconfig --setenv=GOMAXPROCS=2" +
		" /usr/local/bin/lowlatency-operator agent --root=/ --repair --namespace=default --interval=5s --full-interval=10s --node-name=" + j.Name())
}

// kubeconfig leads from the guest to the API server on this machine, whose certificate does not name that address.
func kubeconfig(t *testing.T, config *rest.Config) string {
	t.Helper()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(config.Host, "https://"))
	if err != nil {
		t.Fatalf("address %q of the API server: %v", config.Host, err)
	}
	file := clientcmdapi.NewConfig()
	file.Clusters["lab"] = &clientcmdapi.Cluster{Server: "https://" + net.JoinHostPort(hostOfGuest, port), InsecureSkipTLSVerify: true}
	file.AuthInfos["lab"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	file.CurrentContext = "lab"
	text, err := clientcmd.Write(*file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// await waits until the agent has reported a status.
func (j *judged) await(server *apiserver.Environment, what string, reached func(v1alpha1.LowLatencyNodeStatus) bool) {
	j.t.Helper()
	node := &v1alpha1.LowLatencyNode{}
	for range 90 {
		j.must(server.Client().Get(j.t.Context(), client.ObjectKey{Name: j.Name()}, node))
		if reached(node.Status) {
			return
		}
		j.run("sleep 2")
	}
	log, _ := j.Execute(j.t.Context(), "journalctl --no-pager -n 30 -u "+agentUnit)
	j.t.Fatalf("the node is not %s: %v, drift %+v, findings %+v; the agent's log ends with\n%s",
		what, verdictsIn(node.Status), node.Status.Drift, node.Status.Findings, log.Stdout)
}

func verdictsIn(status v1alpha1.LowLatencyNodeStatus) verdicts {
	return verdicts{
		Applied: statusOf(status, v1alpha1.ConditionApplied), DeJittered: statusOf(status, v1alpha1.ConditionDeJittered),
		NUMAAligned: statusOf(status, v1alpha1.ConditionNUMAAligned),
	}
}

func statusOf(status v1alpha1.LowLatencyNodeStatus, conditionType string) metav1.ConditionStatus {
	if condition := meta.FindStatusCondition(status.Conditions, conditionType); condition != nil {
		return condition.Status
	}
	return ""
}

// agentKeepsOff looks at every thread of the agent: where it may run, and where it ran last.
func (j *judged) agentKeepsOff() {
	j.t.Helper()
	threads := j.run(`pid=$(systemctl show -p MainPID --value ` + agentUnit + `)
for t in /proc/$pid/task/*; do
  echo "$(awk '/^Cpus_allowed_list/ {print $2}' $t/status) $(sed 's/.*) //' $t/stat | cut -d' ' -f37)"
done`)
	for line := range strings.Lines(strings.TrimSpace(threads)) {
		allowed, last, _ := strings.Cut(strings.TrimSpace(line), " ")
		for what, list := range map[string]string{"may run": allowed, "ran": last} {
			set, err := cpus.Parse(list)
			j.must(err)
			if wrong := set.Difference(j.plan.CPUs.Housekeeping); !wrong.IsEmpty() {
				j.t.Errorf("a thread of the agent %s on CPUs %s", what, wrong)
			}
		}
	}
}

// isolatedCounts is what the isolated CPUs counted in one window, by kind.
type isolatedCounts map[string]float64

// windows alternate: the agent runs in those with an even index.
type windows []isolatedCounts

// kinds are sorted.
func (w windows) kinds() []string { return slices.Sorted(maps.Keys(w[0])) }

// of are the counts of a kind with the agent and without it.
func (w windows) of(kind string) (on, off []float64) {
	for i, counts := range w {
		if i%2 == 0 {
			on = append(on, counts[kind])
		} else {
			off = append(off, counts[kind])
		}
	}
	return on, off
}

// alternate lets the agent run in every other window. A stopped process costs nothing, and what starting it costs
// is in no window. That the agent did look at its host in its windows shows in the CPU time that it used.
func (j *judged) alternate() windows {
	j.t.Helper()
	all := make(windows, 0, 2*windowPairs)
	for i := range 2 * windowPairs {
		signal := "CONT"
		if i%2 == 1 {
			signal = "STOP"
		}
		j.run("systemctl kill --signal=" + signal + " " + agentUnit + "; sleep 3")
		before, used := j.countIsolated(), j.agentTime()
		j.run(fmt.Sprintf("sleep %d", windowSeconds))
		after, now := j.countIsolated(), j.agentTime()
		if runs := now > used; runs != (i%2 == 0) {
			j.t.Errorf("window %d: the agent used %d ticks of CPU time", i, now-used)
		}
		for kind := range after {
			after[kind] -= before[kind]
		}
		all = append(all, after)
	}
	j.run("systemctl kill --signal=CONT " + agentUnit)
	return all
}

// agentTime is the CPU time of the agent in clock ticks.
func (j *judged) agentTime() int {
	j.t.Helper()
	text := j.run("sed 's/.*) //' /proc/$(systemctl show -p MainPID --value " + agentUnit + ")/stat | cut -d' ' -f12,13")
	user, system, _ := strings.Cut(strings.TrimSpace(text), " ")
	return number(j.t, user) + number(j.t, system)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// countIsolated adds up counters over the isolated CPUs. Context switches are in no other file than the scheduler's
// own, which the lab's kernel has in debugfs.
func (j *judged) countIsolated() isolatedCounts {
	j.t.Helper()
	counts := isolatedCounts{}
	for _, file := range []string{"/proc/interrupts", "/proc/softirqs"} {
		for line := range strings.Lines(j.run("cat " + file)) {
			fields := strings.Fields(line)
			if len(fields) <= j.cpuCount() || !strings.HasSuffix(fields[0], ":") {
				continue
			}
			kind := kindOf(file, strings.TrimSuffix(fields[0], ":"))
			for _, cpu := range j.plan.CPUs.Isolated.IDs() {
				value, err := strconv.ParseFloat(fields[1+cpu], 64)
				j.must(err)
				counts[kind] += value
			}
		}
	}
	cpu := -1
	header := regexp.MustCompile(`^cpu#(\d+)`)
	for line := range strings.Lines(j.run("grep -E '^cpu#|nr_switches' /sys/kernel/debug/sched/debug")) {
		if match := header.FindStringSubmatch(line); match != nil {
			cpu = number(j.t, match[1])
		} else if fields := strings.Fields(line); len(fields) == 3 && fields[0] == ".nr_switches" && j.plan.CPUs.Isolated.Contains(cpu) {
			counts["context switches"] += float64(number(j.t, fields[2]))
		}
	}
	return counts
}

func (j *judged) cpuCount() int { return j.plan.CPUs.Housekeeping.Union(j.plan.CPUs.Isolated).Len() }

// kindOf is the kind of a line of /proc/interrupts or /proc/softirqs.
func kindOf(file, name string) string {
	if file == "/proc/softirqs" {
		return "softirqs"
	}
	if _, err := strconv.Atoi(name); err == nil {
		return "device interrupts"
	}
	return cmp.Or(map[string]string{
		"LOC": "timer interrupts", "RES": "inter-processor interrupts", "CAL": "inter-processor interrupts",
		"TLB": "inter-processor interrupts", "IWI": "inter-processor interrupts",
	}[name], "other interrupts")
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

func spread(values []float64) float64 { return slices.Max(values) - slices.Min(values) }

// printQuietness prints the mean of a window with the agent and of one without.
func printQuietness(readings windows) {
	writer := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(writer, "\nON ISOLATED CPUS, PER WINDOW OF %d s\tAGENT RUNS\tAGENT STOPPED\tDIFFERENCE\tNOISE\t\n", windowSeconds)
	for _, kind := range readings.kinds() {
		on, off := readings.of(kind)
		_, _ = fmt.Fprintf(writer, "%s\t%.1f\t%.1f\t%+.1f\t%.1f\t\n", kind, mean(on), mean(off), mean(on)-mean(off), spread(off))
	}
	_, _ = fmt.Fprintln(writer)
	_ = writer.Flush()
}
