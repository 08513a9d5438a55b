// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// told splits a fact into its value as text and the reason why it is absent.
func told[T any](fact host.Fact[T], text func(T) string) (value, reason string) {
	known, ok := fact.Get()
	if !ok {
		return "", missing(fact.Source, fact.Reason)
	}
	return text(known), ""
}

// missing is never empty, so that an absent fact cannot pass for an empty value.
func missing(source, reason string) string {
	return strings.Trim(source+": "+cmp.Or(reason, "no value"), ": ")
}

func observeKernelType(f *host.Facts) (value, reason string) {
	return told(f.Kernel.RealTime, func(realTime bool) string {
		if realTime {
			return string(v1alpha1.KernelRealTime)
		}
		return string(v1alpha1.KernelDefault)
	})
}

func observePageSize(f *host.Facts) (value, reason string) {
	return told(f.Kernel.PageSizeBytes, func(bytes int64) string { return strconv.FormatInt(bytes/1024, 10) + "Ki" })
}

// observeOffline reads which of the CPUs that are to be offline are so. Others do not matter: nosmt has
// an item of its own.
func observeOffline(wanted cpus.Set) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		if wanted.IsEmpty() {
			return "", ""
		}
		return told(f.CPUs.Online, func(online cpus.Set) string { return wanted.Difference(online).String() })
	}
}

func observeDefaultAffinity(f *host.Facts) (value, reason string) {
	return told(f.Interrupts.DefaultAffinity, cpus.Set.String)
}

// observeGovernor reads the governors of all online CPUs, in the API's notation when all are performance.
func observeGovernor(f *host.Facts) (value, reason string) {
	var governors []string
	for _, c := range f.CPUs.List {
		if governor, ok := c.Frequency.Governor.Get(); ok && !slices.Contains(governors, governor) {
			governors = append(governors, governor)
		}
	}
	switch {
	case len(governors) == 0:
		return "", "no CPU has a frequency governor"
	case len(governors) == 1 && governors[0] == "performance":
		return string(v1alpha1.GovernorPerformance), ""
	}
	slices.Sort(governors)
	return strings.Join(governors, ", "), ""
}

func observeHugepages(numa int, kibibytes int64) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		for _, node := range f.NUMANodes {
			for _, pool := range node.Hugepages {
				if node.ID == numa && pool.SizeKibibytes == kibibytes {
					return told(pool.Total, func(total int64) string { return strconv.FormatInt(total, 10) })
				}
			}
		}
		return "", fmt.Sprintf("NUMA node %d has no pool of hugepages of %d kB", numa, kibibytes)
	}
}

// observeFunctions counts the virtual functions of a NIC.
func observeFunctions(address string) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		nic, reason := nicOf(f, address)
		if nic == nil {
			return "", reason
		}
		return strconv.Itoa(len(nic.VirtualFunctions)), ""
	}
}

// observeDriver reads the driver of a NIC, or those of its virtual functions. Nothing is bound where there are none.
func (n PoolNICPlan) observeDriver(f *host.Facts) (value, reason string) {
	nic, reason := nicOf(f, n.PCIAddress)
	if nic == nil {
		return "", reason
	}
	if n.VirtualFunctions == 0 {
		return nic.Driver.Value, ""
	}
	var drivers []string
	for _, address := range nic.VirtualFunctions {
		if function, _ := nicOf(f, address); function != nil && !slices.Contains(drivers, function.Driver.Value) {
			drivers = append(drivers, function.Driver.Value)
		}
	}
	slices.Sort(drivers)
	return strings.Join(drivers, ", "), ""
}

// nicOf finds a NIC, or says that there is none.
func nicOf(f *host.Facts, address string) (found *host.NIC, reason string) {
	for i := range f.NICs {
		if f.NICs[i].PCIAddress == address {
			return &f.NICs[i], ""
		}
	}
	return nil, "there is no NIC " + address
}

// observeSetting reads a small file. Files that list all choices mark the current one with brackets.
func observeSetting(path string) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		// The path is the item's own name, so that the reason need not repeat it.
		fact := f.Setting(path)
		fact.Source = ""
		return told(fact, func(content string) string {
			if _, rest, marked := strings.Cut(content, "["); marked {
				choice, _, _ := strings.Cut(rest, "]")
				return choice
			}
			return content
		})
	}
}

// sameSetting compares two values of a sysctl or a file below /sys: white space does not matter, nor do
// leading zeros of CPU masks.
func sameSetting(a, b string) bool {
	if slices.Equal(strings.Fields(a), strings.Fields(b)) {
		return true
	}
	left, leftErr := cpus.ParseMask(a)
	right, rightErr := cpus.ParseMask(b)
	return leftErr == nil && rightErr == nil && left.Equal(right)
}

// observeKubelet reads a field of the kubelet's configuration file; a field that it does not have is "".
func observeKubelet(name string) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		config, ok := f.Kubelet.Config.Get()
		if !ok {
			return "", missing(f.Kubelet.Config.Source, f.Kubelet.Config.Reason)
		}
		fields := map[string]any{}
		if err := yaml.Unmarshal([]byte(config), &fields); err != nil {
			return "", err.Error()
		}
		if fields[name] == nil {
			return "", ""
		}
		return kubeletValue(fields[name]), ""
	}
}

// runningArguments groups the arguments of the running kernel by name.
func runningArguments(f *host.Facts) (groups map[string][]string, reason string) {
	fact := f.Kernel.CommandLine
	text, ok := fact.Get()
	if !ok {
		return nil, missing(fact.Source, fact.Reason)
	}
	line, err := cmdline.Parse(text)
	if err != nil {
		return nil, err.Error()
	}
	var texts []string
	for _, arg := range line.Args() {
		texts = append(texts, arg.Text())
	}
	_, groups = groupArguments(texts)
	return groups, ""
}

// observeArgument reads the arguments of one name. The kernel obeys the last of several, unless the plan
// itself has several: then all of them must be there.
func observeArgument(name string, planned []string) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		groups, reason := runningArguments(f)
		running := groups[name]
		if reason != "" || len(running) == 0 {
			return "", reason
		}
		if len(planned) == 1 {
			return running[len(running)-1], ""
		}
		for _, text := range planned {
			if !slices.ContainsFunc(running, func(have string) bool { return sameArgument(have, text) }) {
				return strings.Join(running, " "), ""
			}
		}
		return strings.Join(planned, " "), ""
	}
}

// decidingArguments contradict a plan when a host has them and the plan has not.
func decidingArguments() []string {
	return []string{"nosmt", "nohz_full", "isolcpus", "irqaffinity", "idle", "nohlt", "maxcpus", "nr_cpus"}
}

// unplannedArguments are arguments of the running kernel that the plan does without, and that would
// contradict it if they stayed.
func unplannedArguments(f *host.Facts, to *NodePlan) []Change {
	groups, _ := runningArguments(f)
	planned := map[string]bool{}
	for _, i := range to.argumentItems() {
		planned[i.name] = true
	}
	var changes []Change
	for _, name := range decidingArguments() {
		if running := groups[name]; len(running) > 0 && !planned[name] {
			changes = append(changes, Change{What: kindArgument + " " + name, From: strings.Join(running, " "),
				Reboot: v1alpha1.RebootRequired, Why: whyCommandLine})
		}
	}
	return changes
}
