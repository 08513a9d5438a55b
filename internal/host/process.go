// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"strconv"
	"strings"
)

const procRoot = "/proc"

// processesOfInterest are the daemons that move interrupts, threads or settings around, and the control plane of
// Onload.
func processesOfInterest() map[string]bool {
	return map[string]bool{"irqbalance": true, "tuned": true, "stalld": true, controlPlane: true}
}

// readProcesses looks for the daemons of interest among all processes. What it sees of others goes
// nowhere, except for the name of process 1, which shows that a snapshot had processes at all.
func readProcesses(r *reader, f *Facts) {
	names, err := r.peekList(procRoot, func(e entry) bool {
		_, ok := numberIn(e.name, "", "")
		return ok
	})
	switch {
	case err != nil:
		f.Processes = Absent[[]Process](procRoot, reasonOf(err))
		return
	case len(names) == 0:
		f.Processes = Absent[[]Process](procRoot, "no processes")
		return
	}
	if r.live && !r.seesKernelThreads() {
		f.Processes = Absent[[]Process](procRoot, reasonOtherNamespace)
		return
	}
	f.Processes = Known[[]Process](nil, procRoot)
	r.processesSeen = true
	for _, pid := range numbersIn(names, "", "") {
		f.Processes.Value = append(f.Processes.Value, r.process(pid)...)
	}
	// The first process is recorded whoever it is, or a snapshot would seem to come from no running host.
	r.taken.list(procRoot, []string{strconv.Itoa(numbersIn(names, "", "")[0])}, nil)
}

// reasonOtherNamespace is why a container that sees its own processes only knows nothing of those of the host.
const reasonOtherNamespace = "the processes of the host are not to be seen from here: kthreadd is not among them"

// seesKernelThreads reports whether the processes are those of the host: process 2 of its PID namespace is the one that makes
// threads of the kernel (kernel/kthread.c), and no other namespace has any.
func (r *reader) seesKernelThreads() bool {
	name, err := r.peek(procRoot+"/2/comm", smallFile)
	return err == nil && strings.TrimSpace(name) == "kthreadd"
}

// readStackProcesses looks for processes only on a host with Onload, whose control planes are among them: each process
// is a file to read.
func readStackProcesses(r *reader, f *Facts) {
	if _, err := r.directory(onloadRoot); err == nil {
		readProcesses(r, f)
	}
}

// process returns a process if it is of interest. Processes come and go: one that vanished is none.
func (r *reader) process(pid int) []Process {
	folder := procRoot + "/" + strconv.Itoa(pid)
	content, err := r.peek(folder+"/comm", smallFile)
	name := strings.TrimSpace(content)
	if err == nil && name == kubeletProcess && r.kubelet == 0 {
		r.kubelet = pid
		r.taken.file(folder+"/comm", content, nil)
	}
	if err != nil || !processesOfInterest()[name] {
		return nil
	}
	r.taken.file(folder+"/comm", content, nil)
	process := Process{PID: pid, Name: name}
	if name == "irqbalance" {
		process.Environment = r.environment(folder + "/environ")
	}
	return []Process{process}
}

// environment reads the variables that tell irqbalance(1) which CPUs to leave alone. An environment may hold secrets: nothing else
// of it is kept, nor put into a snapshot.
func (r *reader) environment(file string) map[string]string {
	content, err := r.peek(file, smallFile)
	if err != nil {
		r.taken.file(file, "", err)
		return nil
	}
	variables := map[string]string{}
	var kept strings.Builder
	for variable := range strings.SplitSeq(content, "\x00") {
		name, value, ok := strings.Cut(variable, "=")
		if ok && isBanList(name) {
			variables[name] = strings.ToValidUTF8(value, "")
			kept.WriteString(variable + "\x00")
		}
	}
	r.taken.file(file, kept.String(), nil)
	return variables
}
