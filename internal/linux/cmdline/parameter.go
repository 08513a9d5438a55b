// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

// Machine is what the meaning of a command line depends on besides its text. The zero Machine is one of which nothing
// is known; then arguments whose meaning depends on it mean the same only if they are written alike.
type Machine struct {
	// Architecture is "amd64" or "arm64".
	Architecture string
	// Possible are the CPUs that "all" and "N" speak of (cpu_possible_mask).
	Possible cpus.Set
	// Gone are CPUs that are offline and in none of the sets that are compared: what arguments say about them has no effect.
	Gone cpus.Set
	// MemoryNodes are the numbers of the NUMA nodes with memory, over which a number of hugepages is dealt out.
	MemoryNodes []int
}

const amd64 = "amd64"

// notation is how the kernel reads the value of a parameter.
type notation int

const (
	// words compare letter by letter.
	words notation = iota
	// boolean is read by kstrtobool.
	boolean
	// integer is read in base 0: by kstrtol, by get_option, or as a module parameter of type int.
	integer
	// size is read by memparse.
	size
	// cpuList is read by cpulist_parse.
	cpuList
	// pages is read by sscanf with %lu, or lists numbers of NUMA nodes with one each.
	pages
	// systemdList is a CPU list that systemd reads, which knows neither "all" nor "N" (parse_cpu_set of
	// src/shared/cpu-set-util.c).
	systemdList
	// isolation is a CPU list behind flags (housekeeping_isolcpus_setup of kernel/sched/isolation.c).
	isolation
)

// notationOf knows the parameters whose values have several spellings: those that profiles plan, and those that are
// found beside them. The functions that read them are, in this order: setup_psi, setup_tick_nohz, setup_hrtimer_hres,
// iommu_set_def_domain_type, iommu_dma_setup, early_init_on_alloc and early_init_on_free, param_set_bool of modules,
// parse_hardened_usercopy, early_debug_pagealloc, parse_kpti of arm64; skew_tick,
// maxcpus, nrcpus, selinux_enabled_setup, enforcing_setup, and param_set_int of RCU, cpuidle, processor and intel_idle;
// hugepagesz_setup, default_hugepagesz_setup, log_buf_len_setup, early_cma, parse_crashkernel, cmdline_parse_movablecore;
// housekeeping_nohz_full_setup, rcu_nocb_setup, irq_affinity_setup.
func notationOf(name string) notation {
	switch name {
	case "psi", "nohz", "highres", "iommu.passthrough", "iommu.strict", "init_on_alloc", "init_on_free", "workqueue.power_efficient",
		"zswap.enabled", "printk.time", "random.trust_cpu", "random.trust_bootloader", "rcutree.use_softirq", "nvme_core.multipath",
		"page_alloc.shuffle", "hardened_usercopy", "debug_pagealloc", "kpti":
		return boolean
	case "skew_tick", "maxcpus", "nr_cpus", "possible_cpus", "selinux", "enforcing", "audit", "rcupdate.rcu_normal_after_boot",
		"rcupdate.rcu_normal", "rcupdate.rcu_expedited", "rcutree.kthread_prio", "rcutree.nohz_full_patience_delay", "cpuidle.off",
		"processor.max_cstate", "intel_idle.max_cstate":
		return integer
	case "hugepagesz", "default_hugepagesz", "mem", "log_buf_len", "cma", "crashkernel", "kernelcore", "movablecore":
		return size
	case "nohz_full", "rcu_nocbs", "irqaffinity", "kthread_cpus":
		return cpuList
	case unsized: // hugepages_setup of mm/hugetlb.c
		return pages
	case "systemd.cpu_affinity":
		return systemdList
	case "isolcpus":
		return isolation
	default:
		return words
	}
}

// IsCumulative reports whether every argument of that name has an effect when it is repeated, so that two of them do not
// contradict each other. Of other parameters the kernel obeys one.
func IsCumulative(name string) bool {
	switch underscored(name) {
	case "console", "earlycon", "earlyprintk", "ifname", "initcall_blacklist", "ip", "memmap", "modprobe.blacklist",
		"module_blacklist", "nameserver", "pci", "systemd.mask", "systemd.setenv", "systemd.wants", "vlan", "bond", "bridge",
		"team", "reserve_mem":
		return true
	default:
		return strings.HasPrefix(name, "rd.")
	}
}

// underscored is the name as parameq of kernel/params.c compares it: "-" and "_" are the same character. The kernel takes
// "." and "/" in the names of kernel parameters (sysctl.*) for the same, too (process_sysctl_arg of
// fs/proc/proc_sysctl.c).
func underscored(name string) string {
	if parameter, ok := strings.CutPrefix(name, "sysctl"); ok && parameter != "" && (parameter[0] == '.' || parameter[0] == '/') {
		return "sysctl" + strings.ReplaceAll(parameter, "/", ".")
	}
	return strings.ReplaceAll(name, "-", "_")
}

// alias is the argument of another name that does the same, or the argument itself. Unless a line says otherwise,
// Documentation/admin-guide/kernel-parameters.txt calls both equivalent.
func (m Machine) alias(arg Arg) Arg {
	arg.Name = underscored(arg.Name)
	switch arg.Text() {
	case "nosmp":
		return valued("maxcpus", "0")
	case "nohibernate":
		return valued("hibernate", "no")
	case "audit=off": // audit_enable of kernel/audit.c
		return valued("audit", "0")
	case "audit=on":
		return valued("audit", "1")
	}
	if m.Architecture != amd64 {
		return arg
	}
	switch arg.Text() {
	case "iommu=pt": // iommu_setup of arch/x86/kernel/pci-dma.c; only x86 reads iommu=
		return valued("iommu.passthrough", "1")
	case "iommu=nopt":
		return valued("iommu.passthrough", "0")
	case "nopti":
		return valued("pti", "off")
	case "nospectre_v2":
		return valued("spectre_v2", "off")
	case "nohpet": // disable_hpet and hpet_setup of arch/x86/kernel/hpet.c
		return valued("hpet", "disable")
	}
	return arg
}

func valued(name, value string) Arg { return Arg{Name: name, Value: value, HasValue: true} }

// atoms are the arguments that an argument stands for: iommu=pt,soft is iommu=pt and iommu=soft.
func (m Machine) atoms(arg Arg) []Arg {
	name := underscored(arg.Name)
	switch {
	case name == "nmi_watchdog" && arg.HasValue: // hardlockup_panic_setup of kernel/watchdog.c looks at one character of a number
		return []Arg{oneOf(name, arg.Value, "0", "1")}
	case m.Architecture != amd64 || strings.Trim(arg.Value, ",") == "":
		return []Arg{m.alias(arg)}
	}
	switch name {
	case anyIOMMU:
		return m.words(arg, func(word string) Arg { return m.alias(valued(name, word)) })
	case intelIOMMU:
		return m.words(arg, func(word string) Arg { return oneOf(name, word, "on", "off") })
	case amdIOMMU:
		return m.words(arg, func(word string) Arg { return oneOf(name, word, "off") })
	case "intel_pstate": // intel_pstate_setup of drivers/cpufreq/intel_pstate.c
		return []Arg{oneOf(name, arg.Value, "active", "passive", "disable")}
	default:
		return []Arg{m.alias(arg)}
	}
}

// words are the arguments that the words of a value between commas stand for.
func (m Machine) words(arg Arg, read func(word string) Arg) []Arg {
	var atoms []Arg
	for word := range strings.SplitSeq(arg.Value, ",") {
		if word != "" {
			atoms = append(atoms, read(word))
		}
	}
	slices.SortStableFunc(atoms, func(a, b Arg) int { return cmp.Compare(a.Name, b.Name) })
	return atoms
}

// oneOf is an argument whose value decides between a few words that exclude each other. Another value has nothing to do with
// these: it is a parameter of its own.
func oneOf(name, value string, words ...string) Arg {
	for _, word := range words {
		if strings.HasPrefix(value, word) {
			return valued(name, word)
		}
	}
	return Arg{Name: name + " " + value}
}

// Parameter is the name of the parameter that an argument sets: its own name with underscores, or that of the parameter
// that it is another spelling of.
func (m Machine) Parameter(arg Arg) string { return m.atoms(arg)[0].Name }

// SameArgument reports whether two arguments mean the same to the kernel of the machine, each taken alone.
func (m Machine) SameArgument(a, b Arg) bool {
	return slices.EqualFunc(m.atoms(a), m.atoms(b), func(x, y Arg) bool {
		return x.Name == y.Name && m.meaning(x) == m.meaning(y)
	})
}

// SameText is SameArgument for two texts, each of one argument or of several that belong together, in whatever order.
func (m Machine) SameText(a, b string) bool {
	if a == b {
		return true
	}
	left, leftErr := Parse(a)
	right, rightErr := Parse(b)
	if leftErr != nil || rightErr != nil || len(left.init)+len(right.init) > 0 {
		return false
	}
	if len(left.kernel) == 1 && len(right.kernel) == 1 {
		return m.SameArgument(left.kernel[0], right.kernel[0])
	}
	return slices.EqualFunc(sortedByName(left.Effects(m)), sortedByName(right.Effects(m)), Effect.Equal)
}

func sortedByName(effects []Effect) []Effect {
	return slices.SortedFunc(slices.Values(effects), func(a, b Effect) int { return cmp.Compare(a.Parameter, b.Parameter) })
}

// meaning is the value of an argument in the one spelling in which the same values are the same texts. What cannot be read
// means nothing but itself. Where there is no value, the text has no "=".
func (m Machine) meaning(arg Arg) string {
	switch {
	case !arg.HasValue && strings.Contains(arg.Name, ".") && notationOf(arg.Name) == boolean:
		// param_set_bool of kernel/params.c: a switch of a module without a value is on.
		return "=true"
	case !arg.HasValue:
		return ""
	}
	if known, ok := m.canonical(notationOf(arg.Name), arg.Value); ok {
		return "=" + m.corrected(arg.Name, known)
	}
	return "= " + arg.Value
}

// corrected is what the kernel makes of a value that it does not take as it is. Where idle states are limited to the one of
// number 0, acpi_processor_setup_cstates of drivers/acpi/processor_idle.c takes 1.
func (m Machine) corrected(name, value string) string {
	switch {
	case name == "irqaffinity":
		return m.withBootCPU(value)
	case name == "processor.max_cstate" && value == "0":
		return "1"
	default:
		return value
	}
}

// withBootCPU adds CPU 0 to a list: irq_affinity_setup of kernel/irq/irqdesc.c adds the CPU that the kernel boots on.
func (m Machine) withBootCPU(list string) string {
	set, err := cpus.Parse(list)
	if err != nil {
		return list
	}
	return set.Union(cpus.Of(0)).String()
}

// pages is a number of hugepages: of the host, or node:number for each NUMA node, which means the number of the host where it
// is what each would get of that anyway.
func (m Machine) pages(value string) (text string, ok bool) {
	if !strings.Contains(value, ":") {
		number, err := strconv.ParseUint(value, 10, 64)
		return strconv.FormatUint(number, 10), err == nil
	}
	shares := map[int]uint64{}
	for part := range strings.SplitSeq(value, ",") {
		id, count, _ := strings.Cut(part, ":")
		node, idErr := strconv.Atoi(id)
		share, err := strconv.ParseUint(count, 10, 32)
		if idErr != nil || err != nil {
			return "", false
		}
		shares[node] = share
	}
	if len(shares) != len(m.MemoryNodes) {
		return "", false
	}
	share := shares[m.MemoryNodes[0]]
	for _, node := range m.MemoryNodes {
		if one, given := shares[node]; !given || one != share {
			return "", false
		}
	}
	return strconv.FormatUint(share*uint64(len(m.MemoryNodes)), 10), true
}

// canonical spells a value in the shortest way; not ok when the kernel would not take it.
func (m Machine) canonical(n notation, value string) (text string, ok bool) {
	switch n {
	case boolean:
		on, ok := setting.Boolean(value)
		return strconv.FormatBool(on), ok
	case integer:
		number, ok := setting.Integer(value)
		return strconv.FormatInt(number, 10), ok
	case pages:
		return m.pages(value)
	case size:
		bytes, ok := setting.Size(value)
		return setting.SizeText(bytes), ok
	case cpuList:
		set, err := cpus.ParseArgument(value, m.Possible)
		return set.Difference(m.Gone).String(), err == nil
	case systemdList:
		set, err := cpus.Parse(strings.Join(strings.FieldsFunc(value, isSeparator), ","))
		return set.Difference(m.Gone).String(), err == nil
	case isolation:
		flags, set, ok := m.isolcpus(value)
		return strings.Join(flags, ",") + " " + set.Difference(m.Gone).String(), ok
	default:
		return value, true
	}
}

func isSeparator(r rune) bool { return r == ',' || isSpace(r) }
