// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cgroup"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Flags of a task (include/linux/sched.h), as the field flags of proc_pid_stat(5) has them.
const (
	flagKernelThread = 0x00200000
	flagNoAffinity   = 0x04000000
)

// maxTasks bounds how many threads one Read looks at. A worker with 250 pods has some thousand.
const maxTasks = 1 << 15

const reasonNotAsked = "not asked for"

// taskStat is what is needed of proc_pid_stat(5).
type taskStat struct {
	name, state           string
	parent, threads, last int
	flags                 uint64
	// scheduling is what the fields rt_priority and policy say; scheduled is false in copies that end before them.
	scheduling Scheduling
	scheduled  bool
}

// parseTaskStat reads "PID (NAME) STATE PPID …". A name may hold spaces and parentheses, so that only the last
// closing parenthesis ends it.
func parseTaskStat(text string) (taskStat, error) {
	opens, closes := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if opens < 0 || closes < opens {
		return taskStat{}, fmt.Errorf("not the state of a task: %q", abbreviate(text))
	}
	// Fields are numbered from 1 in proc_pid_stat(5), and the third is the first after the name.
	const stateField, parentField, flagsField, threadsField, processorField = 0, 1, 6, 17, 36
	fields := strings.Fields(text[closes+1:])
	if len(fields) <= processorField {
		return taskStat{}, fmt.Errorf("the state of a task has %d fields after its name, want more than %d", len(fields), processorField)
	}
	stat := taskStat{name: text[opens+1 : closes], state: fields[stateField]}
	var err error
	if stat.flags, err = parseCount(fields[flagsField]); err != nil {
		return taskStat{}, err
	}
	for field, value := range map[int]*int{parentField: &stat.parent, threadsField: &stat.threads, processorField: &stat.last} {
		if *value, err = parseIdentifier(fields[field]); err != nil {
			return taskStat{}, err
		}
	}
	err = stat.parseScheduling(fields[processorField+1:])
	return stat, err
}

// parseScheduling reads the fields rt_priority and policy, which follow the processor
// (Documentation/filesystems/proc.rst, fields 40 and 41).
func (s *taskStat) parseScheduling(fields []string) (err error) {
	if s.scheduled = len(fields) >= 2; !s.scheduled {
		return nil
	}
	if s.scheduling.Priority, err = parseIdentifier(fields[0]); err != nil {
		return err
	}
	s.scheduling.Policy, err = parseIdentifier(fields[1])
	return err
}

// fact is how the thread is scheduled, as the file says.
func (s *taskStat) fact(file string) Fact[Scheduling] {
	if !s.scheduled {
		return Absent[Scheduling](file, "it ends before the real-time priority")
	}
	return Known(s.scheduling, file)
}

// String is the line as a snapshot keeps it: without the addresses, times and sizes of a program's memory.
func (s taskStat) String(id int) string {
	zeros := func(count int) string { return strings.Repeat("0 ", count) }
	line := fmt.Sprintf("%d (%s) %s %d %s%d %s%d %s%d", id, s.name, s.state, s.parent,
		zeros(4), s.flags, zeros(10), s.threads, zeros(18), s.last)
	if s.scheduled {
		line += fmt.Sprintf(" %d %d", s.scheduling.Priority, s.scheduling.Policy)
	}
	return line + "\n"
}

// readTasks looks for the threads that matter to the latency of CPUs. Of a running host that means the given
// CPUs, and nothing where there are none; of a copy, and for a snapshot, all.
func readTasks(scope cpus.Set) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		if !r.live || r.taken != nil {
			scope = f.CPUs.Present.Value
		}
		if scope.IsEmpty() {
			f.setTasks(Absent[[]Task](procRoot, reasonNotAsked), nil)
			return
		}
		if r.live && !r.seesKernelThreads() {
			f.setTasks(Absent[[]Task](procRoot, reasonOtherNamespace), nil)
			return
		}
		names, err := r.peekList(procRoot, isNumbered)
		if err != nil {
			f.setTasks(Absent[[]Task](procRoot, reasonOf(err)), nil)
			return
		}
		found := taskScan{reader: r, scope: scope, groups: map[int]Fact[string]{}}
		for _, pid := range numbersIn(names, "", "") {
			found.process(pid)
		}
		f.TaskScope = scope
		f.setTasks(found.fact(), found.ofCPUs)
	}
}

// setTasks sets both facts about threads: what keeps one from being known, keeps the other.
func (f *Facts) setTasks(tasks Fact[[]Task], ofCPUs []CPUThread) {
	f.Tasks, f.CPUThreads = tasks, Known(ofCPUs, tasks.Source)
	if !tasks.Known {
		f.CPUThreads = Absent[[]CPUThread](tasks.Source, tasks.Reason)
	}
}

// CPUThreadNames are the names, without the number of the CPU, of the threads that Facts.CPUThreads lists: they run softirqs,
// timers and callbacks of RCU (kernel/softirq.c, kernel/rcu/tree.c).
func CPUThreadNames() []string { return []string{"ksoftirqd", "ktimers", "rcuc"} }

// readMoreTasks reads the threads of a running host. Of a copy, all were read before.
func readMoreTasks(scope cpus.Set) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		if r.live && !scope.IsEmpty() {
			readTasks(scope)(r, f)
		}
	}
}

func isNumbered(e entry) bool {
	_, ok := numberIn(e.name, "", "")
	return ok
}

// taskScan collects threads.
type taskScan struct {
	*reader

	scope cpus.Set
	tasks []Task
	// ofCPUs are the threads of CPUThreadNames.
	ofCPUs []CPUThread
	seen   int
	// groups are the control groups of the processes that were asked for theirs, by PID.
	groups map[int]Fact[string]
}

// fact is absent where no thread can be seen at all, as in a copy without processes.
func (t *taskScan) fact() Fact[[]Task] {
	switch {
	case t.seen == 0:
		return Absent[[]Task](procRoot, "no threads")
	case t.seen > maxTasks:
		return Absent[[]Task](procRoot, tooManyError{maxTasks}.Error())
	}
	return Known(t.tasks, procRoot)
}

// process looks at one process. The kernel's threads are processes of their own.
func (t *taskScan) process(pid int) {
	folder := procRoot + "/" + strconv.Itoa(pid)
	stat, ok := t.stat(folder, pid)
	if !ok {
		return
	}
	if stat.flags&flagKernelThread != 0 {
		t.kernel(folder, pid, stat)
		return
	}
	if stat.threads <= 1 {
		t.user(folder, pid, pid, stat)
		return
	}
	threads, err := t.peekList(folder+"/task", isNumbered)
	if err != nil {
		return
	}
	for _, tid := range numbersIn(threads, "", "") {
		thread := folder + "/task/" + strconv.Itoa(tid)
		if stat, ok := t.stat(thread, tid); ok {
			t.user(thread, pid, tid, stat)
		}
	}
}

// kernel keeps a thread of the kernel that may be moved, or is one that each CPU has.
func (t *taskScan) kernel(folder string, pid int, stat taskStat) {
	for _, name := range CPUThreadNames() {
		if cpu, ok := numberIn(stat.name, name+"/", ""); ok && cpu <= cpus.MaxCPU {
			t.ofCPUs = append(t.ofCPUs, CPUThread{PID: pid, Name: name, CPU: cpu, Scheduling: stat.fact(folder + "/stat")})
		}
	}
	if stat.flags&flagNoAffinity == 0 {
		t.add(folder, Task{PID: pid, TID: pid, Name: stat.name, State: stat.state, LastCPU: stat.last, Kernel: true})
	}
}

// user keeps a thread of a program that last ran on one of the CPUs. What ran elsewhere needs no second file.
func (t *taskScan) user(folder string, pid, tid int, stat taskStat) {
	if t.scope.Contains(stat.last) {
		t.add(folder, Task{PID: pid, TID: tid, Name: stat.name, State: stat.state, LastCPU: stat.last})
	}
}

// group reads the control group of a process. Its threads share it, or are below it (threaded groups of version 2): one file
// for each process that has a thread on the CPUs. Of version 1's many lines, a snapshot keeps the one that counts.
func (t *taskScan) group(pid int) Fact[string] {
	if known, ok := t.groups[pid]; ok {
		return known
	}
	file := procRoot + "/" + strconv.Itoa(pid) + "/cgroup"
	fact, err := t.readGroup(file)
	if err != nil {
		t.taken.file(file, "", err)
		fact = Absent[string](file, reasonOf(err))
		if isVanished(err) {
			fact.Reason = reasonMissing
		}
	}
	t.groups[pid] = fact
	return fact
}

func (t *taskScan) readGroup(file string) (Fact[string], error) {
	text, err := t.peek(file, smallFile)
	if err != nil {
		return Fact[string]{}, err
	}
	text, err = plainText(text)
	if err != nil {
		return Fact[string]{}, err
	}
	path, err := cgroup.Path(text)
	if err != nil {
		return Fact[string]{}, err
	}
	t.taken.file(file, "0::"+path+"\n", nil)
	return Known(path, file), nil
}

// stat reads the state of a thread. Threads come and go: one that vanished is none.
func (t *taskScan) stat(folder string, id int) (taskStat, bool) {
	if t.seen > maxTasks {
		return taskStat{}, false
	}
	file := folder + "/stat"
	text, err := t.peek(file, smallFile)
	if err != nil {
		return taskStat{}, false
	}
	stat, err := parseTaskStat(text)
	if err != nil {
		return taskStat{}, false
	}
	t.seen++
	stat.name = strings.ToValidUTF8(stat.name, "")
	t.taken.file(file, stat.String(id), nil)
	return stat, true
}

// keptOfStatus are the lines of proc_pid_status(5) that are read, and the only ones that a snapshot keeps.
func keptOfStatus() []string {
	return []string{"Cpus_allowed_list", "Mems_allowed_list", "voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"}
}

// add reads the status of a thread and keeps it.
func (t *taskScan) add(folder string, task Task) {
	file := folder + "/status"
	text, err := t.peek(file, smallFile)
	if err != nil {
		t.taken.file(file, "", err)
		if !isVanished(err) {
			task.AllowedCPUs = Absent[cpus.Set](file, reasonOf(err))
			t.tasks = append(t.tasks, task)
		}
		return
	}
	lines := parseColonPairs(text, keptOfStatus()...)
	if t.taken != nil {
		t.taken.file(file, essentialStatus(text), nil)
	}
	task.AllowedCPUs = statusLine(file, lines, "Cpus_allowed_list", t.parseSet)
	if !task.Kernel && task.AllowedCPUs.Value.Overlaps(t.scope) {
		task.Group = t.group(task.PID)
	}
	if t.live && task.Group.Reason == reasonMissing {
		return // It ended after its status was read.
	}
	task.MemoryNodes = statusLine(file, lines, "Mems_allowed_list", t.parseSet)
	task.VoluntarySwitches = statusLine(file, lines, "voluntary_ctxt_switches", parseCount)
	task.InvoluntarySwitches = statusLine(file, lines, "nonvoluntary_ctxt_switches", parseCount)
	t.tasks = append(t.tasks, task)
}

// isVanished tells the errors of a thread that ended between two readings.
func isVanished(err error) bool {
	return errors.Is(err, syscall.ESRCH) || errors.Is(err, fs.ErrNotExist)
}

// statusLine interprets one line of a status.
func statusLine[T any](file string, lines map[string]string, key string, parse func(string) (T, error)) Fact[T] {
	text, ok := lines[key]
	if !ok {
		return Absent[T](file, "no line "+key)
	}
	value, err := parse(text)
	if err != nil {
		return Absent[T](file, err.Error())
	}
	return Known(value, file)
}
