// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// MoveIRQ does what writing CPUs to /proc/irq/N/smp_affinity_list does: the interrupt may go to them and is
// delivered to the first that is online. It fails as the kernel does: an input/output error for managed
// interrupts and those of the platform (irq_can_set_affinity_usr), an invalid argument when no CPU is online.
func MoveIRQ(dir string, irq int, to cpus.Set) error {
	d, err := describe(dir)
	if err != nil {
		return err
	}
	f := &files{root: dir}
	for _, known := range d.Machine.interrupts() {
		if known.number != irq {
			continue
		}
		if known.perCPU || !known.fixed.IsEmpty() || !known.managed.IsEmpty() {
			return fmt.Errorf("moving IRQ %d (%s), which the kernel manages itself: input/output error", irq, known.handler)
		}
		online := to.Intersection(f.set(cpuFolder + "/online"))
		if online.IsEmpty() {
			return fmt.Errorf("moving IRQ %d to CPUs %s, of which none is online: invalid argument", irq, to)
		}
		moved := map[string]notation{"smp_affinity": notationOf(to), "effective_affinity": notationOf(cpus.Of(online.First()))}
		for name, set := range moved {
			f.replace(irqFile(irq, name), set.mask+"\n")
			f.replace(irqFile(irq, name+"_list"), set.list+"\n")
		}
		return f.err
	}
	return fmt.Errorf("moving IRQ %d: the machine has no such interrupt", irq)
}

// FindIRQ returns the number of the first queue's interrupt of a NIC.
func FindIRQ(dir, nicName string) (int, error) {
	d, err := describe(dir)
	if err != nil {
		return 0, err
	}
	for _, nic := range d.Machine.NICs {
		if nic.Name != nicName {
			continue
		}
		for _, irq := range d.Machine.interrupts() {
			if irq.device == nic.PCIAddress && irq.queue {
				return irq.number, nil
			}
		}
	}
	return 0, fmt.Errorf("machine %s has no NIC %q with an interrupt", d.Machine.Hostname, nicName)
}

// effect is what the kernel does with a value that is written to a file.
type effect struct {
	pattern *regexp.Regexp
	write   func(f *files, path string, match []string, value string) error
}

// effects lists the files that do more than keep what is written.
func effects() []effect {
	return []effect{
		{regexp.MustCompile(`^/proc/irq/([0-9]+)/smp_affinity_list$`), writeAffinity},
		{regexp.MustCompile(`^(/sys/devices/system/node/node([0-9]+)/hugepages)/hugepages-([0-9]+)kB/nr_hugepages$`), writeNodeHugepages},
		{regexp.MustCompile(`^/sys/devices/system/cpu/(smt/control|cpu[0-9]+/online)$`), refuseHotplug},
		{regexp.MustCompile(`^/sys/bus/pci/devices/([0-9a-f:.]+)/sriov_numvfs$`), writeSRIOV},
		{regexp.MustCompile(`^/sys/bus/pci/drivers/([^/]+)/(bind|unbind)$`), writeBinding},
		{regexp.MustCompile(`^/sys/kernel/mm/hugepages/|^/proc/sys/vm/nr_hugepages`), refuseSpread},
	}
}

// WriteSetting writes a value to a file of the tree, given by its absolute path on the host, as a
// program on that host would; folders that are missing are made. Where the kernel does more than keep
// the value, so does WriteSetting: files that show a choice in brackets, /proc/irq/N/smp_affinity_list,
// and nr_hugepages of a NUMA node. It fails for files whose effect it cannot imitate, such as cpuN/online.
func WriteSetting(dir, path, value string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path {
		return fmt.Errorf("writing %q to %q: the path must be absolute and without detours", value, path)
	}
	f := &files{root: dir}
	for _, effect := range effects() {
		if match := effect.pattern.FindStringSubmatch(path); match != nil {
			return effect.write(f, path, match, value)
		}
	}
	if strings.HasPrefix(path, "/proc/") || strings.HasPrefix(path, "/sys/") {
		if words, chosen := bracketed(f.value(path)); chosen {
			shown := choice(value, "", words...)
			if !strings.Contains(shown, "["+value+"]") {
				return fmt.Errorf("writing %q to %s, which takes one of %s: invalid argument", value, path, strings.Join(words, ", "))
			}
			value = shown
		}
	}
	f.replace(path, strings.TrimSuffix(value, "\n")+"\n")
	return f.err
}

// bracketed splits a choice such as "always [madvise] never".
func bracketed(text string) (words []string, chosen bool) {
	chosen = strings.Contains(text, "[") && !strings.Contains(text, "\n")
	return strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(text)), chosen
}

func writeAffinity(f *files, _ string, match []string, value string) error {
	irq, err := strconv.Atoi(match[1])
	if err != nil {
		return fmt.Errorf("writing the affinity of an interrupt: %w", err)
	}
	to, err := cpus.Parse(value)
	if err != nil {
		return fmt.Errorf("writing the affinity of IRQ %d: %w", irq, err)
	}
	return MoveIRQ(f.root, irq, to)
}

// writeNodeHugepages sets the pool of a NUMA node: as many pages as its memory holds, those in use kept.
func writeNodeHugepages(f *files, path string, match []string, value string) error {
	d, err := describe(f.root)
	if err != nil {
		return err
	}
	if !f.exists(path) {
		return fmt.Errorf("writing %s: %w", path, os.ErrNotExist)
	}
	wanted, err := strconv.ParseInt(value, 10, 62)
	if err != nil || wanted < 0 {
		return fmt.Errorf("writing %q to %s: invalid argument", value, path)
	}
	size, before := int64(f.number(match[3])), int64(f.number(f.value(path)))
	room := d.Machine.MemoryBytesPerNUMANode / 1024 * 19 / 20
	pools, err := filepath.Glob(filepath.Join(f.root, match[1], "hugepages-*kB"))
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	for _, pool := range pools {
		other := int64(f.number(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(pool), "hugepages-"), "kB")))
		if other != size {
			room -= other * int64(f.number(f.value(filepath.Join(match[1], filepath.Base(pool), "nr_hugepages"))))
		}
	}
	change := min(wanted, max(0, room)/size) - before
	host := fmt.Sprintf("/sys/kernel/mm/hugepages/hugepages-%dkB", size)
	for _, folder := range []string{filepath.Dir(path), host} {
		for _, name := range []string{"nr_hugepages", "free_hugepages"} {
			file := filepath.Join(folder, name)
			f.replace(file, fmt.Sprintln(int64(f.number(f.value(file)))+change))
		}
	}
	return f.err
}

func refuseHotplug(_ *files, path string, _ []string, value string) error {
	return fmt.Errorf("writing %q to %s: a host tree takes CPUs on- and offline only by Boot (nosmt, BootOptions.Offline)", value, path)
}

func refuseSpread(_ *files, path string, _ []string, value string) error {
	return fmt.Errorf("writing %q to %s: a host tree sets hugepages only by NUMA node or by Boot", value, path)
}

// WriteProcess starts a process, or replaces the one with its PID.
func WriteProcess(dir string, process Process) error {
	if process.PID < 1 || process.Name == "" {
		return errors.New("a process of a host tree needs a PID and a name")
	}
	t := newTree(dir)
	process.write(t)
	if t.err != nil {
		return fmt.Errorf("starting process %d of a host tree: %w", process.PID, t.err)
	}
	return nil
}

// StopProcess ends the processes of a name. It is no error if none runs.
func StopProcess(dir, name string) error {
	folders, err := filepath.Glob(filepath.Join(dir, "proc", "[0-9]*"))
	if err != nil {
		return fmt.Errorf("stopping %s on a host tree: %w", name, err)
	}
	f := &files{root: dir}
	for _, folder := range folders {
		if f.value(filepath.Join("/proc", filepath.Base(folder), "comm")) != name {
			continue
		}
		if err := os.RemoveAll(folder); err != nil {
			return fmt.Errorf("stopping %s on a host tree: %w", name, err)
		}
	}
	return f.err
}

// Confine lets each program in some control groups, and below them, run on these CPUs and no others, whatever it had asked for, as a kernel
// before 6.2 does once the cpuset controller is turned on (Linux da019032819a).
func Confine(dir string, groups []string, to cpus.Set) error {
	folders, err := filepath.Glob(filepath.Join(dir, "proc", "[0-9]*"))
	if err != nil {
		return fmt.Errorf("confining programs of a host tree: %w", err)
	}
	f := &files{root: dir}
	for _, folder := range folders {
		process := "/proc/" + filepath.Base(folder)
		_, group, _ := strings.Cut(f.value(process+"/cgroup"), "0::")
		isWithin := func(parent string) bool { return group == parent || strings.HasPrefix(group, parent+"/") }
		if !slices.ContainsFunc(groups, isWithin) {
			continue
		}
		var status strings.Builder
		for line := range strings.Lines(f.text(process + "/status")) {
			switch name, _, _ := strings.Cut(line, ":"); name {
			case "Cpus_allowed":
				line = name + ":\t" + to.Mask() + "\n"
			case "Cpus_allowed_list":
				line = name + ":\t" + to.String() + "\n"
			}
			status.WriteString(line)
		}
		f.replace(process+"/status", status.String())
	}
	return f.err
}

// Prioritize does what chrt -f -p PRIORITY does to each thread of the kernel with a name that matches; priority 0 gives back
// the policy of most. It returns how many there are.
func Prioritize(dir string, matches func(name string) bool, priority int) (count int, err error) {
	folders, err := filepath.Glob(filepath.Join(dir, "proc", "[0-9]*"))
	if err != nil {
		return 0, fmt.Errorf("setting priorities on a host tree: %w", err)
	}
	f := &files{root: dir}
	for _, folder := range folders {
		file := "/proc/" + filepath.Base(folder) + "/stat"
		// The last parenthesis ends the name; rt_priority and policy are the 40th and 41st field, and the third follows the name.
		text := f.text(file)
		opens, closes := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
		fields := strings.Fields(text[closes+1:])
		const parent, realTimePriority, policy = 1, 37, 38
		if opens < 0 || len(fields) <= policy || fields[parent] != "2" || !matches(text[opens+1:closes]) {
			continue
		}
		fields[realTimePriority], fields[policy] = strconv.Itoa(priority), strconv.Itoa(min(priority, 1))
		f.replace(file, text[:closes+1]+" "+strings.Join(fields, " ")+"\n")
		count++
	}
	return count, f.err
}
