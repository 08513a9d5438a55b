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
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
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

// observeSetting reads a small file. A kernel that was built without it does what the plan wants if that is nothing.
func observeSetting(path, wanted string) func(*host.Facts) (string, string) {
	return func(f *host.Facts) (value, reason string) {
		// The path is the item's own name, so that the reason need not repeat it.
		fact := f.Setting(path)
		switch {
		case fact.Missing && setting.HoldsWithout(path, wanted):
			return wanted, ""
		case fact.Missing:
			return "", ""
		}
		fact.Source = ""
		return told(fact, setting.Selected)
	}
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
		if left, _ := fields[host.OmittedFields].([]any); slices.Contains(left, any(name)) {
			return "", missing(f.Kubelet.Config.Source, "the snapshot leaves it out")
		}
		if fields[name] == nil {
			return "", ""
		}
		return kubeletValue(fields[name]), ""
	}
}
