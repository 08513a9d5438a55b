// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cgroup"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// taskChecks ask which threads run on isolated CPUs.
func taskChecks() []Check {
	deJittered := []string{v1alpha1.ConditionDeJittered}
	reads := []string{"/proc/*/stat", "/proc/*/status", "/proc/*/task/*/{stat,status}", "/proc/*/cgroup", fileOwners}
	return []Check{
		{
			ID: "cpu.foreign-tasks", Severity: v1alpha1.SeverityCritical, Impact: ImpactWork, Conditions: deJittered,
			Title:   "No program runs on an isolated CPU but those of the pod that owns it",
			Applies: onOwnCPUs,
			Why:     "A second program takes the CPU for up to milliseconds at a time, and brings the tick back.",
			Reads:   reads,
			Fix:     "Start the program with housekeeping CPUs only: CPUAffinity= of its unit, or taskset -p on the process named; a pod needs whole CPUs and limits equal to requests.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/kernel-parameters.txt (isolcpus=: only affinity moves a task there); systemd.exec(5) (CPUAffinity=)",
			run:     where(someAreCalm, (*state).programsKeepOff),
		},
		{
			ID: "cpu.kernel-threads", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "Threads of the kernel that can be moved keep off isolated CPUs",
			Applies: onOwnCPUs,
			Why:     "Threads such as kswapd and khugepaged work for milliseconds, and the program of the CPU waits.",
			Reads:   []string{"/proc/*/stat (flags PF_KTHREAD, PF_NO_SETAFFINITY)", "/proc/*/status (Cpus_allowed_list)", "/proc/irq/*/effective_affinity_list (threads of interrupts)"},
			Fix:     "Start lowlatency-kernel-threads.service again, which moves them, or move the threads named with taskset -cp; nohz_full= and isolcpus= keep new ones away.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: kernel/kthread.c (kthreads take the CPUs of HK_TYPE_KTHREAD); Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
			run: where(someAreCalm, func(s *state) verdict {
				return s.threadsKeepOff(func(task *host.Task) bool { return !isCallbackThread(task) && !s.followsInterrupt(task) })
			}),
		},
		{
			ID: "cpu.rcu-threads", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered,
			Title:   "The threads that run offloaded RCU callbacks keep off isolated CPUs",
			Applies: onOwnCPUs,
			Why:     "Offloading only moves the callbacks into threads; left on the CPU, they interrupt it all the same.",
			Reads:   []string{"/proc/*/stat", "/proc/*/status (rcuog/*, rcuop/*, rcuos/*)"},
			Fix:     "Start lowlatency-kernel-threads.service again, which moves them, or move the threads named to housekeeping CPUs with taskset -cp.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/admin-guide/kernel-parameters.txt (rcu_nocbs=)",
			run: where(someAreCalm, func(s *state) verdict {
				return s.threadsKeepOff(isCallbackThread)
			}),
		},
		{
			ID: "cpu.preemption", Severity: v1alpha1.SeverityHigh, Impact: ImpactWork, Conditions: deJittered, Window: true,
			Title:   "No thread that a pod has pinned to one CPU of its own lost the CPU since the last reading",
			Applies: "pods own CPUs; threads that did not sleep as often",
			Why:     "An involuntary switch means that something else ran on the CPU in the middle of the program.",
			Reads:   []string{"/proc/*/task/*/status (voluntary_ctxt_switches, nonvoluntary_ctxt_switches)", "/proc/*/cgroup", fileOwners},
			Fix:     "See cpu.foreign-tasks and cpu.kernel-threads; pin each thread of the program to a CPU of its own.",
			Reboot:  v1alpha1.RebootNotRequired,
			Source:  "kernel: Documentation/filesystems/proc.rst (nonvoluntary_ctxt_switches)",
			run:     where(func(s *state) bool { return !s.ownedCPUs().IsEmpty() }, (*state).pinnedThreadsStay),
		},
	}
}

// isCallbackThread knows rcuog/N, rcuop/N, rcuos/N and rcuob/N (kernel/rcu/tree_nocb.h).
func isCallbackThread(task *host.Task) bool { return strings.HasPrefix(task.Name, "rcuo") }

// followsInterrupt tells the thread of an interrupt that runs where the interrupt is delivered, which is for the checks of
// interrupts to judge: the kernel moves it there whenever the interrupt moves (irq_thread_check_affinity of
// kernel/irq/manage.c). One that was moved elsewhere is a thread like others.
func (s *state) followsInterrupt(task *host.Task) bool {
	rest, isInterrupts := strings.CutPrefix(task.Name, "irq/")
	if !isInterrupts {
		return false
	}
	digits, _, _ := strings.Cut(rest, "-")
	route := s.routeOf(digits)
	effective, ok := route.EffectiveAffinity.Get()
	return !ok || effective.Contains(task.LastCPU) || s.isBound(route)
}

// scopedTasks are the threads of the host, if those of the CPUs were looked at.
func (s *state) scopedTasks(set cpus.Set) host.Fact[[]host.Task] {
	if missing := set.Difference(s.facts.TaskScope); s.facts.Tasks.Known && !missing.IsEmpty() {
		return host.Absent[[]host.Task](s.facts.Tasks.Source, "the threads of "+missing.Name()+" were not looked at")
	}
	return s.facts.Tasks
}

// taskName is "kubelet (process 2460)" or "worker (thread 71 of process 70)".
func taskName(task *host.Task) string {
	if task.PID == task.TID {
		return fmt.Sprintf("%s (process %d)", task.Name, task.PID)
	}
	return fmt.Sprintf("%s (thread %d of process %d)", task.Name, task.TID, task.PID)
}

// hasEnded tells a thread of which only the exit status is left for its parent to read: it never runs again, and its control
// group may be gone (proc_pid_stat(5)).
func hasEnded(task *host.Task) bool {
	return task.State == "Z" || task.State == "X" || task.State == "x"
}

// taskObjects are the thread and the CPUs that it takes.
func taskObjects(task *host.Task, on cpus.Set) finding.Objects {
	process := v1alpha1.Process{PID: int32(task.PID), Name: task.Name}
	if task.TID != task.PID {
		process.Thread = int32(task.TID)
	}
	return finding.Objects{CPUs: on, Processes: []v1alpha1.Process{process}}
}

// eachTask judges the threads of one kind.
func (s *state) eachTask(expected string, rule func(*host.Task) verdict) verdict {
	return judge(s.scopedTasks(s.calmCPUs()), expected, func(tasks []host.Task) verdict {
		verdicts := []verdict{passed("none on " + s.calmCPUs().Name())}
		for i := range tasks {
			if hasEnded(&tasks[i]) {
				continue
			}
			if found := rule(&tasks[i]); found.outcome != "" {
				verdicts = append(verdicts, found)
			}
		}
		return worst(verdicts...)
	})
}

// programsKeepOff judges programs by where they run, not by where they may: a task whose affinity includes isolated
// CPUs without scheduler domain is not moved there.
func (s *state) programsKeepOff() verdict {
	calm := s.calmCPUs()
	expected := "none on " + calm.Name()
	return s.eachTask(expected, func(task *host.Task) verdict {
		if task.Kernel || !calm.Contains(task.LastCPU) {
			return notApplicable()
		}
		return judge(task.AllowedCPUs, expected, func(allowed cpus.Set) verdict {
			if !allowed.Contains(task.LastCPU) || s.isDormant(task, allowed, calm) {
				return notApplicable()
			}
			_, belongs := s.ownerOf(task)
			if !belongs.Known {
				belongs.Reason += fmt.Sprintf(", so that nobody knows whose %s is, which runs on %s", taskName(task), cpus.Of(task.LastCPU).Name())
			}
			return judge(belongs, expected, func(isOwners bool) verdict {
				if isOwners {
					return notApplicable()
				}
				return failed(fmt.Sprintf("%s%s runs on %s%s", taskName(task), origin(task), s.ownedName(task.LastCPU), cpus.Of(task.LastCPU).Name()),
					fmt.Sprintf("%s: allowed on %s", task.Name, allowed), expected)
			}).about(taskObjects(task, cpus.Of(task.LastCPU)), s.ownerObjects(task.LastCPU))
		})
	})
}

// origin says who started a thread, as far as its control group tells.
func origin(task *host.Task) string {
	path, ok := task.Group.Get()
	switch pod := cgroup.Pod(path); {
	case !ok || path == "/":
		return ""
	case pod != "":
		return " of pod " + pod
	default:
		return " of " + cgroup.Unit(path)
	}
}

// ownerObjects are the containers that own the CPU.
func (s *state) ownerObjects(id int) finding.Objects {
	for _, o := range s.owned() {
		if o.cpus.Contains(id) {
			return o.objects()
		}
	}
	return finding.Objects{}
}

// ownedName says to whom the CPU belongs.
func (s *state) ownedName(id int) string {
	for _, o := range append(slices.Clone(s.owned()), s.hostDataPlane()...) {
		if o.cpus.Contains(id) {
			return "the CPU of " + o.name + ", "
		}
	}
	return "isolated "
}

// isDormant tells a thread that sleeps and has slept since the last reading. Where CPUs stay balanced until a pod owns
// them, a thread that may also run elsewhere needs a second reading to be seen at work.
func (s *state) isDormant(task *host.Task, allowed, calm cpus.Set) bool {
	if task.State == "R" {
		return false
	}
	if earlier, ok := s.earlier(task); ok {
		return switches(task) == switches(earlier)
	}
	return s.plan.CPUs.Isolation == v1alpha1.IsolationPerPod && !allowed.IsSubsetOf(calm)
}

func switches(task *host.Task) uint64 {
	return task.VoluntarySwitches.Value + task.InvoluntarySwitches.Value
}

// earlier is the same thread at the last reading.
func (s *state) earlier(task *host.Task) (*host.Task, bool) {
	if s.before == nil {
		return nil, false
	}
	tasks := s.before.Tasks.Value
	i := slices.IndexFunc(tasks, func(t host.Task) bool { return t.TID == task.TID && t.PID == task.PID && t.Name == task.Name })
	if i < 0 {
		return nil, false
	}
	return &tasks[i], true
}

// threadsKeepOff judges threads of the kernel by name. Without scheduler domain, an isolated CPU gets only a thread
// that is told to run there, so that what counts is where it ran.
func (s *state) threadsKeepOff(concerns func(*host.Task) bool) verdict {
	calm := s.calmCPUs()
	expected := "off " + calm.Name()
	return s.eachTask(expected, func(task *host.Task) verdict {
		if !task.Kernel || !concerns(task) {
			return notApplicable()
		}
		return judge(task.AllowedCPUs, expected, func(allowed cpus.Set) verdict {
			wrong := allowed.Intersection(calm)
			if wrong.IsEmpty() {
				return notApplicable()
			}
			if s.plan.CPUs.Isolation != v1alpha1.IsolationPerPod {
				wrong = wrong.Intersection(cpus.Of(task.LastCPU))
			}
			if wrong.IsEmpty() {
				return notApplicable()
			}
			return failed(fmt.Sprintf("kernel thread %s (%d) may run on isolated %s", task.Name, task.PID, wrong.Name()),
				fmt.Sprintf("%s: allowed on %s", task.Name, allowed), expected).about(taskObjects(task, wrong))
		})
	})
}

// lostItsCPU reports whether the CPU was taken from a thread since an earlier reading, and more often than it gave it up to sleep: to one that sleeps as often, the
// kernel gives its messages and its timers, for which softirqs and threads of the kernel run on its CPU.
func lostItsCPU(task, earlier *host.Task) bool {
	taken := task.InvoluntarySwitches.Value - min(task.InvoluntarySwitches.Value, earlier.InvoluntarySwitches.Value)
	given := task.VoluntarySwitches.Value - min(task.VoluntarySwitches.Value, earlier.VoluntarySwitches.Value)
	return taken > given
}

func (s *state) pinnedThreadsStay() verdict {
	const expected = "no involuntary switch"
	return judge(s.scopedTasks(s.ownedCPUs().Intersection(s.plan.CPUs.Isolated)), expected, func(tasks []host.Task) verdict {
		verdicts := []verdict{passed(expected)}
		for i := range tasks {
			task := &tasks[i]
			earlier, seen := s.earlier(task)
			if task.Kernel || !seen || task.AllowedCPUs.Value.Len() != 1 || !lostItsCPU(task, earlier) {
				continue
			}
			o, belongs := s.ownerOf(task)
			verdicts = append(verdicts, judge(belongs, expected, func(isOwners bool) verdict {
				if !isOwners {
					return notApplicable()
				}
				return failed(fmt.Sprintf("%s of %s lost CPU %d since the last reading", taskName(task), o.name, task.LastCPU),
					task.Name+": involuntary switches", expected)
			}).about(taskObjects(task, cpus.Of(task.LastCPU)), o.objects()))
		}
		return worst(verdicts...)
	})
}
