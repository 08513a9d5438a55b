// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	intelCPUInfo = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz\n" +
		"microcode\t: 0x5003707\ncpu MHz\t\t: 2101.000\nflags\t\t: fpu lm constant_tsc\n\nprocessor\t: 1\nvendor_id\t: AuthenticAMD\n"
	amdCPUInfo   = "vendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9374F 32-Core Processor\nflags\t\t: fpu lm hypervisor\n"
	armCPUInfo   = "processor\t: 0\nBogoMIPS\t: 200.00\nFeatures\t: fp asimd evtstrm\nCPU implementer\t: 0x48\nCPU architecture: 8\nCPU part\t: 0xd01\n"
	powerCPUInfo = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"
)

func TestProcessor(t *testing.T) {
	none := "absent: no such file"
	cases := map[string]struct {
		cpuinfo                                  string
		other                                    files
		wantArchitecture, wantVendor, wantModel  string
		wantMicrocode, wantFlags, wantHypervisor string
	}{
		"intel": {
			intelCPUInfo, nil, "amd64", "Intel", "Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", "0x5003707", "[fpu lm constant_tsc]", "",
		},
		"amd guest without DMI": {
			amdCPUInfo, nil, "amd64", "AMD", "AMD EPYC 9374F 32-Core Processor", "absent: no line microcode", "[fpu lm hypervisor]", "unknown",
		},
		"arm": {
			armCPUInfo, nil, "arm64", "HiSilicon", "CPU part 0xd01", "absent: no line microcode", "[fp asimd evtstrm]",
			"absent: neither the flags of the processor nor DMI report one",
		},
		"arm with DMI": {
			armCPUInfo, files{"sys/devices/virtual/dmi/id/sys_vendor": "Huawei\n"}, "arm64", "HiSilicon", "CPU part 0xd01",
			"absent: no line microcode", "[fp asimd evtstrm]", "",
		},
		"arm guest": {
			armCPUInfo, files{"sys/class/dmi/id/sys_vendor": "QEMU\n", "sys/class/dmi/id/product_name": "virt-9.0\n"}, "arm64",
			"HiSilicon", "CPU part 0xd01", "absent: no line microcode", "[fp asimd evtstrm]", "KVM",
		},
		"the kernel names the machine": {
			amdCPUInfo, files{"proc/sys/kernel/arch": "x86_64\n", "sys/devices/system/cpu/cpu0/microcode/version": "0xa101148\n"},
			"amd64", "AMD", "AMD EPYC 9374F 32-Core Processor", "0xa101148", "[fpu lm hypervisor]", "unknown",
		},
		"a microcode that is kept secret": {
			intelCPUInfo, files{"sys/devices/system/cpu/cpu0/microcode/version": ""}, "amd64", "Intel",
			"Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz", "0x5003707", "[fpu lm constant_tsc]", "",
		},
		"another vendor": {
			"vendor_id: Shanghai\nflags: lm\n", nil, "amd64", "Shanghai", "absent: no line model name", "absent: no line microcode", "[lm]", "",
		},
		"32 bit": {
			"vendor_id: GenuineIntel\nflags: fpu\n", nil, "absent: neither the shape of amd64 nor that of arm64", "Intel",
			"absent: no line model name", "absent: no line microcode", "[fpu]", "absent: neither the flags of the processor nor DMI report one",
		},
		"another architecture": {
			powerCPUInfo, files{"proc/sys/kernel/arch": "ppc64le"}, "ppc64le", "absent: no line vendor_id or CPU implementer",
			"absent: no line model name", "absent: no line microcode", "absent: no line flags or Features",
			"absent: neither the flags of the processor nor DMI report one",
		},
		"binary": {
			"\x7fELF\x00\x01", nil, "absent: binary content", "absent: binary content", "absent: binary content",
			"absent: binary content", "absent: binary content", "absent: neither the flags of the processor nor DMI report one",
		},
		"an endless line": {
			"vendor_id: GenuineIntel\nflags: lm " + strings.Repeat("x ", longLine) + "\nmodel name: A", nil,
			"absent: neither the shape of amd64 nor that of arm64", "Intel", "A", "absent: no line microcode",
			"absent: no line flags or Features", "absent: neither the flags of the processor nor DMI report one",
		},
		"too long": {
			strings.Repeat("vendor_id: GenuineIntel\n", mediumFile/24+1), nil, "absent: longer than 16777216 bytes", "absent: longer than 16777216 bytes",
			"absent: longer than 16777216 bytes", "absent: longer than 16777216 bytes", "absent: longer than 16777216 bytes",
			"absent: neither the flags of the processor nor DMI report one",
		},
		"missing": {"", nil, none, none, none, none, none, "absent: neither the flags of the processor nor DMI report one"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := tc.other.with()
			if tc.cpuinfo != "" {
				tree["proc/cpuinfo"] = tc.cpuinfo
			}
			facts := readAll(t, tree)
			expect(t, "the architecture", facts.Architecture, tc.wantArchitecture)
			expect(t, "the vendor", facts.Processor.Vendor, tc.wantVendor)
			expect(t, "the model", facts.Processor.Model, tc.wantModel)
			expect(t, "the microcode", facts.Processor.Microcode, tc.wantMicrocode)
			expect(t, "the flags", facts.Processor.Flags, tc.wantFlags)
			expect(t, "the hypervisor", facts.Processor.Hypervisor, tc.wantHypervisor)
		})
	}
}

func TestVendors(t *testing.T) {
	for line, want := range map[string]string{
		"vendor_id: GenuineIntel": "Intel", "vendor_id: AuthenticAMD": "AMD", "vendor_id: HygonGenuine": "Hygon",
		"CPU implementer: 0x41": "ARM", "CPU implementer: 0x43": "Cavium", "CPU implementer: 0x48": "HiSilicon",
		"CPU implementer: 0x4E": "NVIDIA", "CPU implementer: 0xc0": "Ampere", "CPU implementer: 0x99": "0x99",
	} {
		if got := shown(cpuinfo(parseColonPairs(line, "vendor_id", "CPU implementer")).vendor("")); got != want {
			t.Errorf("%s gives %q, want %q", line, got, want)
		}
	}
}

func TestHypervisors(t *testing.T) {
	cases := map[string]struct{ vendor, product, want string }{
		"openshift virtualization": {"Red Hat", "KubeVirt", "KVM"},
		"qemu":                     {"QEMU", "Standard PC (Q35 + ICH9, 2009)", "KVM"},
		"rhel":                     {"Red Hat", "KVM", "KVM"},
		"vmware":                   {"VMware, Inc.", "VMware7,1", "VMware"},
		"hyper-v":                  {"Microsoft Corporation", "Virtual Machine", "Microsoft"},
		"surface":                  {"Microsoft Corporation", "Surface Hub", ""},
		"ec2":                      {"Amazon EC2", "c7i.4xlarge", "Amazon"},
		"ec2 bare metal":           {"Amazon EC2", "c7i.metal-24xl", ""},
		"gce":                      {"Google", "Google Compute Engine", "Google"},
		"virtualbox":               {"innotek GmbH", "VirtualBox", "VirtualBox"},
		"dell":                     {"Dell Inc.", "PowerEdge R740xd", ""},
		"nothing":                  {"", "", "absent: no such file"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tree := files{}
			if tc.vendor != "" {
				tree["sys/class/dmi/id/sys_vendor"], tree["sys/class/dmi/id/product_name"] = tc.vendor, tc.product
			}
			firmware := readAll(t, tree).Firmware
			expect(t, "the hypervisor", hypervisorOf(firmware), tc.want)
		})
	}
}

// TestCPUInfoIsOpenedOnce: on a running host, opening it may interrupt every CPU. A copy is read anew.
func TestCPUInfoIsOpenedOnce(t *testing.T) {
	for _, live := range []bool{true, false} {
		t.Run(fmt.Sprintf("live %t", live), func(t *testing.T) {
			tree := openLive(t, files{"proc/cpuinfo": intelCPUInfo, "sys/devices/system/cpu/cpu0/microcode/version": "0x1"}, live)
			h := &Host{tree: tree}
			if _, err := h.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			tree.(*memoryTree).nodes["proc/cpuinfo"].content = amdCPUInfo
			tree.(*memoryTree).nodes["sys/devices/system/cpu/cpu0/microcode/version"].content = "0x2"
			facts, err := h.Read(t.Context())
			must(t, err)
			expect(t, "the vendor", facts.Processor.Vendor, map[bool]string{true: "Intel", false: "AMD"}[live])
			expect(t, "the microcode, which may change,", facts.Processor.Microcode, "0x2")
			taken := newRecording()
			_, err = h.read(t.Context(), Request{}, taken)
			must(t, err)
			if taken.files[cpuinfoFile] != amdCPUInfo {
				t.Error("the snapshot has not the file of now")
			}
		})
	}
}

func TestKernel(t *testing.T) {
	none := "absent: no such file"
	const rt5 = "Linux version 5.14.0-427.el9.x86_64+rt (mockbuild@x) (gcc) #1 SMP PREEMPT_RT Fri\n"
	cases := map[string]struct {
		tree                                files
		wantRelease, wantRealTime, wantLine string
	}{
		"sysctl":                 {files{"proc/sys/kernel/osrelease": "6.1.0-rt\n", "sys/kernel/realtime": "1\n", "proc/cmdline": "quiet \n"}, "6.1.0-rt", "true", "quiet"},
		"version":                {files{"proc/version": rt5}, "5.14.0-427.el9.x86_64+rt", "true", none},
		"old real time":          {files{"proc/version": "Linux version 4.18.0 (x) #1 SMP PREEMPT RT Mon"}, "4.18.0", "true", none},
		"not real time":          {files{"proc/version": "Linux version 6.8.0 (x) #1 SMP PREEMPT_DYNAMIC Mon"}, "6.8.0", "false", none},
		"realtime says no":       {files{"sys/kernel/realtime": "0", "proc/version": rt5}, "5.14.0-427.el9.x86_64+rt", "false", none},
		"no version":             {files{"proc/version": "FreeBSD 14"}, `absent: not a kernel version: "FreeBSD 14"`, `absent: not a kernel version: "FreeBSD 14"`, none},
		"empty release":          {files{"proc/sys/kernel/osrelease": "\n"}, `absent: not a kernel release: ""`, none, none},
		"two words as a release": {files{"proc/sys/kernel/osrelease": "6.1 x"}, `absent: not a kernel release: "6.1 x"`, none, none},
		"two lines of arguments": {files{"proc/cmdline": "a\nb\n"}, none, none, "absent: more than one line"},
		"nothing":                {nil, none, none, none},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kernel := readAll(t, tc.tree).Kernel
			expect(t, "the release", kernel.Release, tc.wantRelease)
			expect(t, "real time", kernel.RealTime, tc.wantRealTime)
			expect(t, "the command line", kernel.CommandLine, tc.wantLine)
		})
	}
}

func TestPageSize(t *testing.T) {
	arm := func(sizes ...string) files {
		tree := files{"proc/sys/kernel/arch": "aarch64"}
		for _, size := range sizes {
			tree["sys/kernel/mm/hugepages/hugepages-"+size+"kB/"] = ""
		}
		return tree
	}
	smaps := files{"proc/self/smaps": "aaaa-bbbb r-xp 00 00:00 0 /bin/x\nSize: 4 kB\nKernelPageSize:       16 kB\nMMUPageSize: 16 kB\n"}
	cases := map[string]struct {
		tree files
		want string
	}{
		"amd64":                      {files{"proc/sys/kernel/arch": "x86_64"}, "4096"},
		"arm64 with 4 KiB":           {arm("64", "2048", "32768", "1048576"), "4096"},
		"arm64 with 64 KiB":          {arm("2048", "524288", "16777216"), "65536"},
		"arm64 that does not report": {arm("2048", "32768", "1048576"), "absent: no such file"},
		"arm64 with a mapping":       {arm("2048", "32768", "1048576").with(smaps), "16384"},
		"unknown with a mapping":     {smaps, "16384"},
		"no line":                    {files{"proc/self/smaps": "nothing"}, "absent: no line KernelPageSize"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			expect(t, "the page size", readAll(t, tc.tree).Kernel.PageSizeBytes, tc.want)
		})
	}
}

func TestProcesses(t *testing.T) {
	cases := map[string]struct {
		tree files
		want []string
	}{
		"daemons": {files{
			"proc/1/comm":    "systemd\n",
			"proc/20/comm":   "tuned\n",
			"proc/3/comm":    "irqbalance\n",
			"proc/3/environ": "PATH=/bin\x00IRQBALANCE_BANNED_CPULIST=2-3\x00IRQBALANCE_ONESHOT\x00IRQBALANCE_ARGS=a=b\x00",
			"proc/4/comm":    "stalld",
			"proc/5/comm":    "irqbalance-ui\n",
			"proc/6/":        "",
		}, []string{
			"3 irqbalance with map[IRQBALANCE_BANNED_CPULIST:2-3]",
			"4 stalld with map[]",
			"20 tuned with map[]",
		}},
		"no environment": {files{"proc/7/comm": "irqbalance"}, []string{"7 irqbalance with map[]"}},
		"none of them":   {files{"proc/1/comm": "init"}, []string{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			processes := readAll(t, tc.tree).Processes
			got := make([]string, 0, len(processes.Value))
			for _, p := range processes.Value {
				got = append(got, fmt.Sprintf("%d %s with %v", p.PID, p.Name, p.Environment))
			}
			if !processes.Known || strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("known %t\n%s\nwant\n%s", processes.Known, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
			}
		})
	}
	expect(t, "without /proc/*", readAll(t, nil).Processes, "absent: no processes")
}

func TestKubelet(t *testing.T) {
	const (
		openshift, kubeadm, eks = "etc/kubernetes/kubelet.conf", "var/lib/kubelet/config.yaml", "etc/kubernetes/kubelet/config.json"
		kubeconfig              = "apiVersion: v1\nkind: Config\nusers:\n- name: x\n  user: {client-key-data: secret}\n"
	)
	config := func(name string) string {
		return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: " + name
	}
	cases := map[string]struct {
		tree       files
		want       string
		wantSource string
	}{
		"openshift":          {files{openshift: config("a"), kubeadm: config("b")}, config("a"), "/" + openshift},
		"kubeadm":            {files{openshift: kubeconfig, kubeadm: config("b")}, config("b"), "/" + kubeadm},
		"JSON":               {files{eks: `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}`}, `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}`, "/" + eks},
		"JSON over lines":    {files{eks: "{\n  \"kind\": \"KubeletConfiguration\"\n}"}, "{\n  \"kind\": \"KubeletConfiguration\"\n}", "/" + eks},
		"only a kubeconfig":  {files{openshift: kubeconfig}, "absent: not a KubeletConfiguration", "/" + openshift},
		"another kind":       {files{kubeadm: "kind: KubeletConfigurationList\n"}, "absent: not a KubeletConfiguration", "/" + kubeadm},
		"binary":             {files{openshift: "\x00", kubeadm: config("b")}, config("b"), "/" + kubeadm},
		"a comment names it": {files{kubeadm: kubeconfig + "# kind: KubeletConfiguration\n"}, "absent: not a KubeletConfiguration", "/" + kubeadm},
		"nothing":            {nil, "absent: no such file", "/" + openshift},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := readAll(t, tc.tree).Kubelet.Config
			expect(t, "the configuration", got, tc.want)
			if got.Source != tc.wantSource {
				t.Errorf("the source is %s, want %s", got.Source, tc.wantSource)
			}
		})
	}
	state := readAll(t, files{"var/lib/kubelet/cpu_manager_state": "{\"policyName\":\"static\"}\n", "var/lib/kubelet/memory_manager_state": "{}"}).Kubelet
	expect(t, "the state of CPUs", state.CPUManagerState, `{"policyName":"static"}`)
	expect(t, "the state of memory", state.MemoryManagerState, "{}")
}

func TestNumerousSettings(t *testing.T) {
	facts := readAll(t, files{
		"sys/devices/virtual/workqueue/cpumask":               "3\n",
		"sys/devices/virtual/workqueue/nvme-wq/cpumask":       "f\n",
		"sys/devices/virtual/workqueue/power/control":         "auto\n",
		"sys/devices/virtual/workqueue/writeback/cpumask":     "00000000,00000003\n",
		"sys/devices/system/cpu/vulnerabilities/spectre_v2":   "Mitigation: Retpolines\n",
		"sys/devices/system/cpu/vulnerabilities/\x1b[31mevil": "x",
		"sys/kernel/tracing/instances/agent/current_tracer":   "nop\n",
		"sys/kernel/tracing/instances/agent/set_event":        "sched:sched_switch\n",
	})
	for path, want := range map[string]string{
		"/sys/devices/virtual/workqueue/cpumask":               "3",
		"/sys/devices/virtual/workqueue/nvme-wq/cpumask":       "f",
		"/sys/devices/virtual/workqueue/writeback/cpumask":     "00000000,00000003",
		"/sys/devices/virtual/workqueue/power/cpumask":         "absent: not read",
		"/sys/devices/system/cpu/vulnerabilities/spectre_v2":   "Mitigation: Retpolines",
		"/sys/devices/system/cpu/vulnerabilities/\x1b[31mevil": "absent: not read",
		"/sys/kernel/mm/transparent_hugepage/enabled":          "absent: no such file",
		"/sys/kernel/tracing/instances/agent/current_tracer":   "nop",
		"/sys/kernel/tracing/instances/agent/set_event":        "sched:sched_switch",
	} {
		expect(t, path, facts.Setting(path), want)
	}
}

// TestChangedHost: every Read sees the host as it is, also where the last Read ended.
func TestChangedHost(t *testing.T) {
	root := files{"proc/cmdline": "old", "sys/module/pcie_aspm/parameters/policy": "N"}.write(t)
	h := open(t, root)
	if _, err := h.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	must(t, os.RemoveAll(filepath.Join(root, "sys/module")))
	must(t, os.MkdirAll(filepath.Join(root, "sys/module/pcie_aspm/parameters"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "sys/module/pcie_aspm/parameters/policy"), []byte("Y"), 0o644))
	must(t, os.WriteFile(filepath.Join(root, "proc/cmdline"), []byte("new"), 0o644))
	facts, err := h.Read(t.Context())
	must(t, err)
	expect(t, "the command line", facts.Kernel.CommandLine, "new")
	expect(t, "the parameter", facts.Setting("/sys/module/pcie_aspm/parameters/policy"), "Y")
}

// TestProcessorGeneration: the line "model" is not the one of the model's name.
func TestProcessorGeneration(t *testing.T) {
	cases := map[string]struct{ cpuinfo, wantFamily, wantModel string }{
		"intel":        {"vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: Xeon 6230\n", "6", "85"},
		"a name alone": {"vendor_id\t: GenuineIntel\nmodel name\t: 85\n", "absent: no line cpu family", "absent: no line model"},
		"no numbers":   {"cpu family\t: six\nmodel\t: -1\n", `absent: cpu family is "six", not a number`, `absent: model is "-1", not a number`},
		"arm":          {armCPUInfo, "absent: no line cpu family", "absent: no line model"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			processor := readAll(t, files{"proc/cpuinfo": tc.cpuinfo}).Processor
			expect(t, "the family", processor.Family, tc.wantFamily)
			expect(t, "the number of the model", processor.ModelNumber, tc.wantModel)
		})
	}
}
