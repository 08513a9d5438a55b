// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

func argument(texts ...v1alpha1.KernelArgument) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Kernel.AdditionalArguments = texts }
}

func stopped(units ...v1alpha1.UnitName) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.System.StopServices = units }
}

func unloaded(modules ...v1alpha1.ModuleName) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.System.UnloadModules = modules }
}

func parameterSet(name, value string) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.System.KernelParameters = []v1alpha1.KernelParameter{{Name: name, Value: value}}
	}
}

func accepted(settings ...string) change {
	return func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		for _, setting := range settings {
			s.AcceptedRisks = append(s.AcceptedRisks, v1alpha1.AcceptedRisk{Setting: setting, Reason: "tested"})
		}
	}
}

// hazardsOf lists the findings about dangerous settings, each as "severity field: message remedy".
func hazardsOf(machine *topology.Topology, changes ...change) []string {
	plan, findings := New(Input{
		Profile: profileWith(changes...), Topology: machine,
		Platform: PlatformRules{KubeletFields: []string{"staticPodPath"}, Services: []string{"machine-config-daemon-*"}},
	})
	var texts []string
	for _, f := range findings {
		if f.Rule == ruleHazard {
			texts = append(texts, string(f.Severity)+" "+f.Field+": "+f.Message+" "+f.Remedy)
		}
	}
	if plan == nil && len(texts) == 0 {
		texts = append(texts, "no plan: "+describe(findings))
	}
	return texts
}

// TestHazardsAreRefused: whatever takes a node away or opens it leaves the node without a plan, in all spellings.
func TestHazardsAreRefused(t *testing.T) {
	arguments := []v1alpha1.KernelArgument{
		"init=/bin/sh", "rdinit=/bin/sh", "root=/dev/sda1", "rootflags=ro", "rootfstype=ext4", "ostree=/ostree/boot.1", "ostree.prepare-root.composefs=0",
		"ignition.firstboot=1", "ignition.config.url=http://a/b", "coreos.inst.install_dev=sda", "rd.break", "rd.break=pre-mount",
		"rd.systemd.unit=emergency.target", "systemd.unit=rescue.target", "emergency", "rescue", "single", "S", "1", "systemd.mask=kubelet.service",
		"systemd.run=/bin/sh", "systemd.run_success_action=none", "systemd.hostname=a", "systemd.machine-id=a", "systemd.machine_id=a", "hostname=a",
		"fips=1", "fips=0", "nomodule", "cgroup_disable=memory", "cgroup-disable=foo,cpuset", "numa=off", "numa=fake=4",
		"numa=noacpi", "pci=off", "pci=nomsi,off", "panic=0", "panic=3600", "panic", "sysctl.kernel.panic=0",
		"LD_PRELOAD=/tmp/a.so", "SYSTEMD_UNIT_PATH=/tmp", "module_blacklist=overlay", "module-blacklist=irdma,nvme", "modprobe.blacklist=xfs",
		"rd.driver.blacklist=nvme-core", "initrd=/a", "boot=UUID=1", "mount.usrflags=ro", "mount.usr=/dev/sda2", "systemd.volatile=yes",
		"sysctl.kernel.modules_disabled=1", "sysctl/kernel/modprobe=/tmp/a", "sysctl.net.ipv4.ip_forward=0", "sysctl.net/ipv4/ip_forward=0x0",
	}
	units := []v1alpha1.UnitName{
		"kubelet.service", "crio.service", "containerd.socket", "dbus.socket", "dbus.service", "dbus-broker.service", "DBus.socket", "-.mount",
		"tmp.mount", "var-lib-kubelet.mount", "basic.target", "multi-user.target", "network-online.target", "system.slice", "kubepods.slice",
		"NetworkManager.service", "ovs-vswitchd.service", "systemd-udevd.service", "systemd-udevd-kernel.socket", "systemd-journald@a.service",
		"systemd-journald.socket", "machine-config-daemon-pull.service", "systemd-fsck@dev-sda1.service", "lowlatency-unload-modules.service",
		"kubelet@1.service",
	}
	modules := []v1alpha1.ModuleName{"overlay", "xfs", "ext4", "nvme", "nvme_core", "nvme-core", "dm-mod", "dm_multipath", "sd_mod", "virtio-blk", "veth",
		"OVERLAY", "openvswitch"}
	settings := map[string]change{
		"kubelet authentication": configuration("authentication: {anonymous: {enabled: true}}"),
		"kubelet authorization":  configuration("authorization: {mode: AlwaysAllow}"),
		"kubelet readOnlyPort":   configuration("readOnlyPort: 10255"),
		"kubelet staticPodURL":   configuration("staticPodURL: http://a/b"),
		"kubelet tlsCertFile":    configuration("{tlsCertFile: /a}"),
		"kubelet registerNode":   configuration("registerNode: false"),
		"kubelet endpoint":       configuration("containerRuntimeEndpoint: unix:///a"),
		"modules_disabled":       parameterSet("kernel.modules_disabled", "1"),
		"modprobe":               parameterSet("kernel.modprobe", "/tmp/a"),
		"ip_forward":             parameterSet("net.ipv4.ip_forward", " 0"),
	}
	for _, text := range arguments {
		settings["argument "+string(text)] = argument(text)
	}
	for _, name := range units {
		settings["unit "+string(name)] = stopped(name)
	}
	for _, name := range modules {
		settings["module "+string(name)] = unloaded(name)
	}
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			got := hazardsOf(xeon(), setting)
			if len(got) != 1 || !strings.HasPrefix(got[0], "Critical spec.") || strings.Contains(got[0], acceptedField) {
				t.Errorf("findings %q, want one that refuses it", got)
			}
		})
	}
}

// TestHazardsMayBeAccepted: what is legitimate on some nodes is refused until it is named, in any spelling.
func TestHazardsMayBeAccepted(t *testing.T) {
	cases := map[string]struct {
		setting change
		name    string
	}{
		"selinux":             {argument("selinux=0"), "selinux=0x0"},
		"enforcing":           {argument("enforcing=0"), "enforcing=0"},
		"cgroup v1":           {argument("systemd.unified_cgroup_hierarchy=0"), "systemd.unified-cgroup-hierarchy=0"},
		"names of interfaces": {argument("net.ifnames=0"), "net.ifnames=0"},
		"memory":              {argument("mem=64G"), "mem=64G"},
		"security modules":    {argument("lsm=lockdown,yama"), "lsm=lockdown,yama"},
		"sshd":                {stopped("sshd.service"), "sshd.service"},
		"a target":            {stopped("bluetooth.target", "sshd@1.service"), "sshd@2.service"},
		"a module":            {unloaded("usb-storage"), "usb_storage"},
		"a network's module":  {unloaded("geneve"), "geneve"},
		"a blacklisted one":   {argument("module_blacklist=irdma,vxlan"), "module-blacklist=irdma,vxlan"},
		"a file system":       {unloaded("ceph"), "ceph"},
		"encrypted disks":     {argument("rd.luks=0"), "rd.luks=0"},
		"logical volumes":     {argument("rd.lvm=off"), "rd.lvm=off"},
		"an environment":      {argument("systemd.setenv=LD_PRELOAD=/tmp/a.so"), "systemd.setenv=LD_PRELOAD=/tmp/a.so"},
		"255 processors":      {argument("nox2apic"), "nox2apic"},
		"a kernel parameter":  {parameterSet("vm.overcommit_memory", "2"), "vm.overcommit_memory=2"},
		"a kubelet field":     {configuration("tlsMinVersion: VersionTLS12"), "tlsMinVersion"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			refused := hazardsOf(xeon(), tc.setting)
			if len(refused) != 1 || !strings.HasPrefix(refused[0], "Critical spec.") || !strings.Contains(refused[0], acceptedField) {
				t.Errorf("findings %q, want one that names %s", refused, acceptedField)
			}
			if got := hazardsOf(xeon(), tc.setting, accepted(tc.name)); len(got) > 0 {
				t.Errorf("findings %q although it is accepted", got)
			}
		})
	}
}

// TestHarmlessSettingsPass: what low-latency hosts are known to be tuned by needs no confirmation.
func TestHarmlessSettingsPass(t *testing.T) {
	settings := map[string]change{
		"arguments": argument("audit=0", "mitigations=off", "selinux=1", "systemd.unified_cgroup_hierarchy=1", "console=ttyS0,115200n8", "module_blacklist=irdma",
			"crashkernel=512M", "lockdown=none", "ipv6.disable=1", "vfio_pci.ids=8086:154c", "rd.neednet=1", "ip=dhcp", "efi=runtime", "acpi=on", "panic=-1",
			"quiet", "nokaslr", "cgroup_disable=pressure", "sysctl.net.ipv4.ip_forward=1", "psi=0", "numa_zonelist_order=n", "rd.luks.uuid=luks-1", "rd.lvm=1", "numa=nohmat", "pci=realloc", "pci=nomsi", "systemd.setenv=HTTP_PROXY=http://a"),
		"units": stopped("fwupd-refresh.timer", "bluetooth.service", "firewalld.service", "chronyd.service", "sleep.target", "irqbalance-ui.service", "tuned.service",
			"getty@tty1.service"),
		"modules":           unloaded("ip_tables", "bridge", "nf_conntrack", "sunrpc", "ipmi_si", "edac_core"),
		"kernel parameters": parameterSet("net.core.busy_poll", "50"),
		"kubelet":           configuration("{maxPods: 100, readOnlyPort: 0, registerNode: true, allowedUnsafeSysctls: [net.core.somaxconn]}"),
	}
	for name, setting := range settings {
		t.Run(name, func(t *testing.T) {
			if got := hazardsOf(xeon(), setting); len(got) > 0 {
				t.Errorf("findings %q", got)
			}
		})
	}
}

// TestHazardsOfNICs depends on what the node's NICs do.
func TestHazardsOfNICs(t *testing.T) {
	machine := xeon()
	withNIC(machine, new(0))
	nic := &machine.NICs[len(machine.NICs)-1]
	nic.Management, nic.Driver, nic.Vendor, nic.Device = "the default route", "mlx5_core", "15b3", "1017"
	for name, setting := range map[string]change{
		"unloaded": unloaded("mlx5-core"), "blacklisted": argument("module_blacklist=irdma,mlx5_core"), "bound": argument("vfio-pci.ids=0x15B3:1017:1:2"),
		"bound by vendor and device": argument("vfio_pci.ids=15b3:1017"),
	} {
		t.Run(name, func(t *testing.T) {
			got := hazardsOf(machine, setting)
			if len(got) != 1 || !strings.Contains(got[0], "NIC "+nic.PCIAddress+", which carries the default route") {
				t.Errorf("findings %q", got)
			}
		})
	}
	for name, other := range map[string]v1alpha1.KernelArgument{"another device": "15b3:1018", "another vendor": "1924:1017", "no device": "15b3"} {
		if got := hazardsOf(machine, argument("vfio_pci.ids="+other)); len(got) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestSentencesOfHazards(t *testing.T) {
	want := []string{
		"Critical spec.kernel.additionalArguments[1]: init=/bin/sh replaces the first program of the node, so that nothing else starts. Remove it.",
		"Critical spec.kernel.additionalArguments[2]: selinux=0 switches off what keeps containers away from the host. Remove it. If it is meant, name it in spec.acceptedRisks.",
		"Critical spec.kernel.additionalArguments[3]: module_blacklist=xfs keeps module xfs from loading, which is a module that file systems of the node or of its containers need. Remove it.",
		"Critical spec.kubelet.additionalConfiguration: readOnlyPort lets everybody read the pods of the node without authentication. Remove it.",
		"Critical spec.system.stopServices[0]: dbus.socket is a part of the operating system without which other services do not start. Remove it.",
		"Low spec.acceptedRisks[1]: rd.luks=0 is accepted, but the profile asks for nothing of that name that needs it. Remove it.",
	}
	got := hazardsOf(xeon(), argument("audit=0", "init=/bin/sh", "selinux=0", "module_blacklist=xfs"), stopped("dbus.socket"),
		configuration("readOnlyPort: 10255"), accepted("init=/bin/sh", "rd.luks=0"))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}

// apiRule is the expression behind "!self.matches(" of a list's elements in the CRD.
func apiRule(t *testing.T, section, list string) *regexp.Regexp {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/bases/lowlatency.dev_lowlatencynodeprofiles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	for _, rule := range spec.Properties[section].Properties[list].Items.Schema.XValidations {
		if text, ok := strings.CutPrefix(rule.Rule, "!self.matches('"); ok {
			return regexp.MustCompile(strings.TrimSuffix(text, "')"))
		}
	}
	t.Fatalf("spec.%s.%s has no such rule", section, list)
	return nil
}

// expression is the regular expression of the names that are refused whatever their value; around it stands the format.
func expression(table []Hazard, before, after string) string {
	var names []string
	for _, h := range table {
		if h.harmless == nil && !h.Acceptable {
			names = append(names, h.names...)
		}
	}
	for i, name := range names {
		names[i] = strings.NewReplacer(".", "[.]", "_", "[_-]", "*", ".*").Replace(name)
	}
	return before + strings.Join(names, "|") + after
}

// TestTheAPIRefusesWhatThePlanRefuses: what no node survives does not get into the cluster at all.
func TestTheAPIRefusesWhatThePlanRefuses(t *testing.T) {
	cases := map[string]struct{ section, list, want string }{
		"arguments": {"kernel", "additionalArguments", expression(argumentHazards(), "^(", ")(=.*)?$")},
		"units":     {"system", "stopServices", strings.ReplaceAll(expression(unitHazards(), "(?i)^(", ")$"), "[.].*", "(@.*)?[.].*")},
		"modules":   {"system", "unloadModules", expression(moduleHazards(), "(?i)^(", ")$")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := apiRule(t, tc.section, tc.list).String(); got != tc.want {
				t.Errorf("the API refuses\n%s\nand the plan\n%s", got, tc.want)
			}
		})
	}
}

// FuzzArgumentHazard: neither quotes nor spaces nor spelling hide an argument that the kernel would obey.
func FuzzArgumentHazard(f *testing.F) {
	for _, seed := range []string{"init=/bin/sh", `"init=/bin/sh"`, "audit=0 init=a", "-- single", "systemd.mask=a", "selinux=00", "module-blacklist=a,overlay"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\x00") || len(text) > 256 || strings.Contains(text, `"`) {
			return
		}
		_, alone := ArgumentHazard(text)
		for _, other := range []string{"audit=0 " + text, text + " audit=0", "\t" + text, strings.ReplaceAll(text, "_", "-"), text + " init=/bin/sh"} {
			if _, found := ArgumentHazard(other); alone && !found {
				t.Errorf("%q is refused and %q is not", text, other)
			}
		}
		if _, found := ArgumentHazard(text + " init=/bin/sh"); !found {
			t.Errorf("init= is not seen behind %q", text)
		}
	})
}

// TestHazardsAreDocumented keeps docs/dangerous-settings.md complete: each name, and what to do instead.
func TestHazardsAreDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/dangerous-settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(data), "<!-- tables -->\n")
	if diff := cmp.Diff(hazardTables(), tables); diff != "" {
		t.Errorf("docs/dangerous-settings.md (-want +got):\n%s", diff)
	}
}

// hazardTables prints the tables in Markdown.
func hazardTables() string {
	var b strings.Builder
	for _, section := range []struct {
		title string
		table []Hazard
	}{
		{"Kernel arguments", argumentHazards()},
		{"Units that are not to be stopped", unitHazards()},
		{"Kernel modules that are not to be unloaded or blacklisted", moduleHazards()},
		{"Kernel parameters, also as `sysctl.` arguments", parameterHazards()},
		{"Fields of KubeletConfiguration", kubeletHazards()},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| Setting | Verdict | Because it | Instead |\n|---|---|---|---|\n", section.title)
		for _, h := range section.table {
			verdict := "refused"
			if h.Acceptable {
				verdict = "by name"
			}
			if h.harmless != nil {
				verdict += ", for some values"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", strings.Join(h.names, "`, `"), verdict, h.Why, h.Instead)
		}
	}
	return b.String()
}
