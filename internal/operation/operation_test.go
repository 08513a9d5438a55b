// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package operation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// all has an operation of each kind.
func all() []Operation {
	return []Operation{
		PutFile("/usr/local/bin/lowlatency-hugepages", 0o755, "#!/bin/bash\n"),
		PutFile("/etc/modprobe.d/lowlatency-trading.conf", 0o644, "install ip_tables /bin/false\n"),
		PutFile("/etc/lowlatency/irqbalance.env", 0o644, "IRQBALANCE_BANNED_CPULIST=2-7\n"),
		PutUnit("lowlatency-hugepages-1048576kB-numa0.service", "[Unit]\n", Enabled),
		PutUnit("dataplane.slice", "[Slice]\n", Enabled),
		MaskUnit("fwupd-refresh.timer"),
		PutDropIn("irqbalance.service", "90-lowlatency.conf", "[Service]\n"),
		PutTuneDProfile("lowlatency-trading", "[main]\n"),
		PutRuntimeDropIn("/etc/crio/crio.conf.d/99-lowlatency-trading.conf", "[crio]\n"),
		PutKubeletDropIn("/etc/kubernetes/kubelet.conf.d/90-lowlatency.conf", "kind: KubeletConfiguration\n"),
		RemoveStateFile("/var/lib/kubelet/cpu_manager_state"),
		SetModule("ip_tables", Unloaded),
		SetSysctl("vm.stat_interval", "10"),
		SetSysfs("/sys/devices/virtual/workqueue/cpumask", "3"),
		SetService("fwupd-refresh.timer", Stopped),
		AddKernelArguments("nohz=on", "isolcpus=managed_irq,domain,2-7"),
	}
}

func TestAllKindsAreValid(t *testing.T) {
	var kinds []Kind
	for _, o := range Ordered(all()) {
		if !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
	}
	if diff := cmp.Diff(Kinds(), kinds); diff != "" {
		t.Errorf("kinds in order (-want +got):\n%s", diff)
	}
	if err := Validate(all()); err != nil {
		t.Error(err)
	}
}

func TestValidateRefuses(t *testing.T) {
	argument := func(text string) Operation { return AddKernelArguments(text) }
	cases := map[string]struct {
		operation Operation
		want      string
	}{
		"an unknown kind":               {Operation{Kind: "Shell"}, `there is no operation of the kind "Shell"`},
		"a file of somebody else":       {PutFile("/etc/passwd", 0o644, "x"), `"/etc/passwd" is not among the paths that operations of the kind File may change`},
		"a way out of a folder":         {PutFile("/etc/lowlatency/../shadow", 0o644, "x"), "is not among the paths"},
		"a folder below":                {PutFile("/etc/sysctl.d/a/lowlatency.conf", 0o644, "x"), "is not among the paths"},
		"a relative path":               {PutFile("etc/lowlatency/x", 0o644, "x"), "is not among the paths"},
		"a drop-in of somebody else":    {PutDropIn("kubelet.service", "10-kubeadm.conf", "x"), "is not among the paths"},
		"a drop-in in a unit's place":   {Operation{Kind: DropIn, Name: "a.service", Path: "/etc/systemd/system/b.service.d/lowlatency.conf", Mode: 0o644, Content: "x"}, `DropIn "a.service" is written to /etc/systemd/system/a.service.d/lowlatency.conf and not to`},
		"kubeadm's own file":            {PutKubeletDropIn("/var/lib/kubelet/config.yaml", "x"), "is not among the paths"},
		"another file of the kubelet":   {RemoveStateFile("/var/lib/kubelet/kubeconfig"), "is not among the paths"},
		"a register":                    {SetSysfs("/sys/bus/pci/devices/0000:00:00.0/remove", "1"), "is not among the paths"},
		"a sysctl that is a path":       {SetSysctl("../etc/x", "1"), "is not a name that an operation of the kind Sysctl can have"},
		"a line break in a value":       {SetSysctl("vm.stat_interval", "1\n2"), "holds characters that no setting of the kernel has"},
		"no value":                      {SetSysctl("vm.stat_interval", ""), "sysctl vm.stat_interval is set to no value"},
		"a quote in an argument":        {argument(`init="/bin/sh"`), "is not written to the kernel's command line"},
		"a space in an argument":        {argument("a b"), "is not written to the kernel's command line"},
		"the end of the kernel's part":  {argument("--"), "is not written to the kernel's command line"},
		"a line that is too long":       {argument("a=" + strings.Repeat("b", 2048)), "and at most 2048 are added"},
		"arguments without a marker":    {Operation{Kind: KernelArguments, Arguments: []string{"nohz=on"}}, "have no marker"},
		"a marker of other arguments":   {Operation{Kind: KernelArguments, Arguments: []string{"nohz=on", Marker([]string{"nohz=off"})}}, "have no marker"},
		"a distribution's unit":         {PutUnit("irqbalance.service", "[Unit]\n", Enabled), "unit irqbalance.service is not ours"},
		"a unit without content":        {PutUnit("lowlatency-a.service", "", Enabled), "needs a content unless it is masked"},
		"the kubelet masked":            {MaskUnit("kubelet.service"), "without unit kubelet.service nobody reaches the host"},
		"the guard stopped":             {SetService("lowlatency-guard.service", Stopped), "unit lowlatency-guard.service is the guard's own"},
		"the guard restarted":           {SetService("lowlatency-guard-inbox.service", Restarted), "unit lowlatency-guard-inbox.service is the guard's own"},
		"the guard masked":              {MaskUnit("lowlatency-guard-trial.service"), "unit lowlatency-guard-trial.service is the guard's own"},
		"the guard's unit":              {PutUnit("lowlatency-guard.service", "[Unit]\n", Enabled), "unit lowlatency-guard.service is the guard's own"},
		"a drop-in for the guard":       {PutDropIn("lowlatency-guard.service", "90-lowlatency.conf", "[Service]\n"), "unit lowlatency-guard.service is the guard's own"},
		"a drop-in for the guard, too":  {PutDropIn("lowlatency-.service", "90-lowlatency.conf", "[Service]\n"), "unit lowlatency-.service is the guard's own"},
		"the guard's program":           {PutFile("/usr/local/bin/lowlatency-guard", 0o755, "x"), "/usr/local/bin/lowlatency-guard is the guard's own"},
		"a need of the guard":           {PutUnit("lowlatency-a.service", "[Install]\nRequiredBy=lowlatency-guard.service\n", Enabled), "unit lowlatency-guard.service is the guard's own, and does not start"},
		"a unit in another folder":      {PutUnit("lowlatency-a.service", "[Install]\nWantedBy=../../../home/a\n", Enabled), `"../../../home/a", by which unit lowlatency-a.service is to be started, is not the name of a unit`},
		"a unit in a folder below":      {PutUnit("lowlatency-a.service", "[Install]\nRequiredBy=a.target basic.target/b.target\n", Enabled), `"basic.target/b.target", by which`},
		"a state of another kind":       {SetModule("a", Masked), `"Masked" is not a state of module a`},
		"a state where there is none":   {Operation{Kind: Sysctl, Name: "vm.stat_interval", Value: "1", State: Enabled}, "is not a state of sysctl"},
		"a file that anybody may write": {PutFile("/etc/lowlatency/x", 0o666, "x"), "would have the mode 0666"},
		"a file that runs as its owner": {PutFile("/usr/local/bin/lowlatency-x", 0o4755, "x"), "would have the mode 04755"},
		"content that nobody writes":    {Operation{Kind: Module, Name: "a", State: Loaded, Content: "x"}, "is of the kind Module, which has no content"},
		"a name that nobody reads":      {Operation{Kind: File, Name: "a", Path: "/etc/lowlatency/a", Mode: 0o644}, "has no name, and this one is called"},
		"a huge file":                   {PutFile("/etc/lowlatency/a", 0o644, strings.Repeat("a", 256<<10+1)), "and at most 262144 are written"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Validate([]Operation{tc.operation}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestValidateRefusesTwoOperationsOnOneThing(t *testing.T) {
	err := Validate([]Operation{SetSysctl("vm.stat_interval", "10"), SetSysctl("vm.stat_interval", "20")})
	if err == nil || err.Error() != "there are two operations for sysctl vm.stat_interval" {
		t.Errorf("Validate() = %v", err)
	}
	if err := Validate(make([]Operation, 513)); err == nil || !strings.Contains(err.Error(), "at most 512") {
		t.Errorf("Validate() of many = %v", err)
	}
}

func TestHash(t *testing.T) {
	reversed := all()
	slices.Reverse(reversed)
	// The order of sysctls counts, and there is only one.
	if Hash(all()) != Hash(reversed) || len(Hash(all())) != 16 {
		t.Errorf("hashes %q and %q differ", Hash(all()), Hash(reversed))
	}
	changed := all()
	changed[0].Mode = 0o700
	if Hash(all()) == Hash(changed) {
		t.Error("a changed mode changes no hash")
	}
	one, other := SetSysctl("a.b", "1"), SetSysctl("a.a", "1")
	if Hash([]Operation{one, other}) == Hash([]Operation{other, one}) {
		t.Error("the order of sysctls, which counts, changes no hash")
	}
}

// TestArgumentsWithoutTheWayBack: a kernel that waits after a panic, or for longer than anybody does, is none that is tried.
func TestArgumentsWithoutTheWayBack(t *testing.T) {
	for argument, refused := range map[string]bool{
		"panic=10": false, "panic=60": false, "panic=-1": false, "panic=0": true, "panic=61": true, "panic=": true, "panic=never": true, "panic_on_oops=0": false,
	} {
		err := Validate([]Operation{AddKernelArguments(argument)})
		if refused != (err != nil) || err != nil && !strings.Contains(err.Error(), "does not come back within a minute by itself: write panic=10") {
			t.Errorf("Validate() with %s = %v", argument, err)
		}
	}
}

func TestKernelArgumentsHaveTheWayBack(t *testing.T) {
	got := AddKernelArguments("nohz=on").Arguments
	want := []string{"nohz=on", "panic=10", Marker([]string{"nohz=on", "panic=10"})}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(got, AddKernelArguments(got...).Arguments); diff != "" {
		t.Errorf("adding twice (-want +got):\n%s", diff)
	}
	if own := AddKernelArguments("panic=5").Arguments; own[0] != "panic=5" || len(own) != 2 {
		t.Errorf("with a panic= of its own: %q", own)
	}
	if got := MarkerOf([]string{"a", "lowlatency.boot=1", "lowlatency.boot=2"}); got != "lowlatency.boot=2" {
		t.Errorf("the marker that counts is %q", got)
	}
	if diff := cmp.Diff(want, Arguments([]Operation{SetModule("a", Loaded), AddKernelArguments("nohz=on")})); diff != "" {
		t.Errorf("arguments of operations (-want +got):\n%s", diff)
	}
}

// FuzzLinks holds that the links of whatever is valid are in folders beside the unit.
func FuzzLinks(f *testing.F) {
	f.Add("[Install]\nWantedBy=multi-user.target basic.target\nRequiredBy=kubelet.service\n")
	f.Add("[Install]\nWantedBy=../../../home/a\n")
	f.Add("RequiredBy=/a.target\n")
	f.Fuzz(func(t *testing.T, content string) {
		unit := PutUnit("lowlatency-a.service", content, Enabled)
		if Validate([]Operation{unit}) != nil {
			return
		}
		for _, link := range unit.Links() {
			folder, found := strings.CutPrefix(link, "/etc/systemd/system/")
			folder, name, _ := strings.Cut(folder, "/")
			if !found || name != unit.Name || !strings.HasSuffix(folder, ".wants") && !strings.HasSuffix(folder, ".requires") {
				t.Errorf("%q makes %s", content, link)
			}
		}
	})
}
