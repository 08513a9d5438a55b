// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import (
	"fmt"
	"slices"
	"strings"
)

// IsImpersonal reports whether an argument speaks of nothing but how the kernel, or the systemd of any host, works: CPUs, memory,
// clocks, power, mitigations, drivers. Such a value does not tell whose host it is. Of all other arguments it might: they name
// hosts, addresses, disks, images, users and, in an initial RAM disk, passwords.
func IsImpersonal(name string) bool {
	name = underscored(name)
	if notationOf(name) != words || repetitionOf(name) == agreeingCount {
		return true
	}
	if slices.Contains(strings.Fields(impersonalNames), name) {
		return true
	}
	module, parameter, ok := strings.Cut(name, ".")
	return ok && parameter != "" && slices.Contains(strings.Fields(impersonalModules), module)
}

// impersonalNames are parameters of Documentation/admin-guide/kernel-parameters.txt that name neither a file nor a device nor
// a host, and words that every boot loader passes on.
const impersonalNames = `acpi acpi_irq_nobalance acpi_pad.disable acpi_sleep amd_iommu amd_prefcore amd_pstate apic apparmor arm64.nobti
 arm64.nopauth audit_backlog_limit autogroup cgroup_disable cgroup_enable cgroup_no_v1 cgroup.memory clearcpuid clocksource
 clk_ignore_unused coherent_pool cpu_init_udelay cpu0_hotplug cpufreq_off debug default_hugepagesz dis_ucode_ldr
 edac_report efi enforcing fips force_load_ftrace gather_data_sampling hest_disable hpet hugepages hugepagesz hugetlb_cma
 hugetlb_free_vmemmap ibt idle indirect_target_selection init_on_alloc init_on_free intel_iommu intel_pstate intremap
 iommu irqfixup irqpoll kasan kaslr kfence.sample_interval kvm_intel.nested l1d_flush l1tf loglevel lpj lsm mce mds
 mem_encrypt mem_sleep_default memhp_default_state migration_cost_ns mitigations mmio_stale_data msr nmi_watchdog no_console_suspend
 no_file_caps no_hash_pointers no_timer_check noaer noapic nocache noefi nohibernate nohpet nokaslr nokprobes nomce nomodeset
 nopcid nopti nopvspin norandmaps noreplace_smp nosmap nosmep nosmp nosmt nosoftlockup nospec_store_bypass_disable nospectre_bhb
 nospectre_v1 nospectre_v2 nowatchdog nox2apic nosgx nousb nr_hugepages numa numa_balancing numa_zonelist_order oops panic
 panic_on_oops panic_on_warn pci pci_bridge pcie_aspm pcie_bus_perf pcie_port_pm percpu_alloc preempt print_fatal_signals psi
 pti quiet rcu_nocb_poll reg_file_data_sampling retbleed rhgb ro rw rootwait rootdelay rodata sched_debug security slab_nomerge
 slub_debug slub_nomerge smt snd_hda_intel softlockup_panic spec_rstack_overflow spec_store_bypass_disable spectre_bhi spectre_v2
 spectre_v2_user splash srbds stack_guard_gap swapaccount systemd.unified_cgroup_hierarchy
 systemd.legacy_systemd_cgroup_controller thermal.off threadirqs transparent_hugepage transparent_hugepage_shmem tsa tsc
 tsc_early_khz tsx tsx_async_abort tuned.non_isolcpus vdso vmalloc vsyscall watchdog_thresh workqueue.cpu_intensive_thresh_us workqueue.unbound_cpus
 x2apic_phys xhci_hcd zswap.enabled`

// impersonalModules are modules and parts of the kernel whose parameters are numbers and switches.
const impersonalModules = `amd_pstate cpufreq cpuidle cpuidle_haltpoll haltpoll hrtimer idle intel_idle intel_pstate intel_uncore_frequency
 iommu kvm kvm_amd kvm_intel mlx4_core mlx5_core nvme nvme_core page_alloc pcie_aspm printk processor psmouse random rcu_nocbs
 rcupdate rcutree sched sched_ext skew_tick srcutree tsc usbcore vfio vfio_iommu_type1 watchdog workqueue zswap`

// Impersonal is the line with a word in the place of each argument that might tell whose host it is, equal words for equal
// arguments, and without those of the init process; left are the names of the arguments that lost their value. The names of
// parameters that may be given several times stay, as these do not contradict each other.
func (l Line) Impersonal() (text string, left []string) {
	names, values := pseudonyms{}, pseudonyms{}
	texts := make([]string, 0, len(l.kernel))
	for _, arg := range l.kernel {
		if IsImpersonal(arg.Name) {
			texts = append(texts, arg.Text())
			continue
		}
		name := arg.Name
		if !IsCumulative(name) && !isDocumented(name) {
			name = names.of("redacted_", underscored(name))
		}
		if arg.HasValue {
			arg.Value = values.of("redacted-", arg.Value)
		}
		arg.Name = name
		if texts = append(texts, arg.Text()); !slices.Contains(left, name) {
			left = append(left, name)
		}
	}
	return strings.Join(texts, " "), left
}

// isDocumented reports whether the name of an argument is one of the kernel, of dracut or of systemd, and says nothing by itself.
func isDocumented(name string) bool {
	return slices.Contains([]string{
		"BOOT_IMAGE", "bootdev", "hostname", "initrd", "netroot", "ostree", "resume", "root", "rootflags", "rootfstype", "systemd.hostname",
	}, name)
}

// pseudonyms number texts in the order in which they occur.
type pseudonyms map[string]int

func (p pseudonyms) of(prefix, text string) string {
	if _, known := p[text]; !known {
		p[text] = len(p) + 1
	}
	return fmt.Sprintf("%s%d", prefix, p[text])
}
