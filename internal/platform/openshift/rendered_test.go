// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func expectEqual[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(performanceProfile{})); diff != "" {
		t.Errorf("mismatch (-want +got):\n%s", diff)
	}
}

// config makes a MachineConfig.
func config(name, ignition string, arguments ...string) *mcfgv1.MachineConfig {
	c := &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.KernelArguments = arguments
	c.Spec.Config.Raw = []byte(ignition)
	return c
}

const wholeIgnition = `{"ignition":{"version":"3.5.0"},
"storage":{"files":[
 {"path":"/etc/a","mode":420,"overwrite":true,"contents":{"source":"data:,a","compression":""}},
 {"path":"/etc/kubernetes/kubelet.conf","mode":420,"contents":{"source":"data:,kubelet"}}]},
"systemd":{"units":[
 {"name":"one.service","contents":"[Unit]","enabled":true},
 {"name":"two.service","mask":true},
 {"name":"three.service","dropins":[{"name":"10.conf","contents":"x"},{"name":"20.conf","contents":"y"}]}]}}`

func TestLacks(t *testing.T) {
	file := func(content string) string {
		return `{"storage":{"files":[{"path":"/etc/a","mode":420,"contents":{"source":"data:,` + content + `"}}]}}`
	}
	unit := func(text string) string { return `{"systemd":{"units":[` + text + `]}}` }
	realTime := config("part", "")
	realTime.Spec.KernelType = "realtime"
	defaultKernel := config("part", "")
	defaultKernel.Spec.KernelType = "default"
	cases := map[string]struct {
		part *mcfgv1.MachineConfig
		want string
	}{
		"nothing":                       {part: config("part", "")},
		"arguments in their order":      {part: config("part", "", "b", "d")},
		"arguments in another order":    {part: config("part", "", "d", "b"), want: "the kernel arguments"},
		"an argument that is missing":   {part: config("part", "", "b", "x"), want: "the kernel arguments"},
		"an argument twice":             {part: config("part", "", "b", "b"), want: "the kernel arguments"},
		"another kernel":                {part: realTime, want: "the kernel type"},
		"the default kernel":            {part: defaultKernel},
		"a file":                        {part: config("part", file("a"))},
		"a file of another content":     {part: config("part", file("b")), want: "file /etc/a"},
		"a unit":                        {part: config("part", unit(`{"name":"one.service","contents":"[Unit]","enabled":true}`))},
		"a unit of another content":     {part: config("part", unit(`{"name":"one.service","contents":"[Service]"}`)), want: "unit one.service"},
		"a unit that is to be disabled": {part: config("part", unit(`{"name":"one.service","enabled":false}`)), want: "unit one.service"},
		"a unit that nothing enables":   {part: config("part", unit(`{"name":"two.service","enabled":true}`)), want: "unit two.service"},
		"a masked unit":                 {part: config("part", unit(`{"name":"two.service","mask":true}`))},
		"a unit that is not masked":     {part: config("part", unit(`{"name":"one.service","mask":true}`)), want: "unit one.service"},
		"a drop-in":                     {part: config("part", unit(`{"name":"three.service","dropins":[{"name":"20.conf","contents":"y"}]}`))},
		"a drop-in of another content":  {part: config("part", unit(`{"name":"three.service","dropins":[{"name":"20.conf","contents":"z"}]}`)), want: "unit three.service"},
		"a missing unit":                {part: config("part", unit(`{"name":"four.service"}`)), want: "unit four.service"},
		"a part that cannot be read":    {part: config("part", `{`), want: "the Ignition configuration"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := lacks(config("rendered-x-1", wholeIgnition, "a", "b", "c", "d"), tc.part); got != tc.want {
				t.Errorf("lacks() = %q, want %q", got, tc.want)
			}
		})
	}
	if got := lacks(config("rendered-x-1", `{`), config("part", "")); !strings.Contains(got, "nothing is known") {
		t.Errorf("lacks() of an unreadable configuration = %q", got)
	}
}

func TestEvidence(t *testing.T) {
	own := config("50-lowlatency-x", `{"storage":{"files":[{"path":"/etc/a","mode":420,"contents":{"source":"data:,a"}}]}}`, "a")
	kubelet := config("99-x-generated-kubelet", `{"storage":{"files":[{"path":"/etc/kubernetes/kubelet.conf","mode":420,"contents":{"source":"data:,kubelet"}}]}}`)
	kubelet.OwnerReferences = []metav1.OwnerReference{{UID: "ours"}}
	other := config("99-x-generated-kubelet-1", "")
	other.OwnerReferences = []metav1.OwnerReference{{UID: "theirs"}}
	stale := config("99-x-generated-kubelet", `{"storage":{"files":[{"path":"/etc/kubernetes/kubelet.conf","mode":420,"contents":{"source":"data:,new"}}]}}`)
	stale.OwnerReferences = kubelet.OwnerReferences
	rendered := config("rendered-x-1", wholeIgnition, "a")
	sources := func(names ...string) *mcfgv1.MachineConfigPool {
		p := pool("x", nil)
		for _, name := range names {
			p.Spec.Configuration.Source = append(p.Spec.Configuration.Source, corev1.ObjectReference{Name: name})
		}
		return p
	}
	both := sources("00-worker", own.Name, kubelet.Name)
	cases := map[string]struct {
		evidence      evidence
		pool          *mcfgv1.MachineConfigPool
		want          string
		wantOverruled string
	}{
		"nothing rendered": {pool: pool("x", nil), want: "MachineConfigPool x has no rendered configuration yet"},
		"rendered without ours": {
			pool: sources("00-worker"), evidence: evidence{rendered: rendered}, want: "rendered-x-1 was rendered without MachineConfig 50-lowlatency-x",
		},
		"rendered with an older one of ours": {
			pool: both, evidence: evidence{rendered: config("rendered-x-0", wholeIgnition, "z"), kubelets: []mcfgv1.MachineConfig{*kubelet}},
			want: "rendered-x-0 does not hold the kernel arguments of MachineConfig 50-lowlatency-x yet",
		},
		"rendered without the kubelet": {
			pool: both, evidence: evidence{rendered: rendered}, want: "rendered-x-1 was rendered without our KubeletConfig",
		},
		"rendered with somebody else's kubelet": {
			pool: both, evidence: evidence{rendered: rendered, kubelets: []mcfgv1.MachineConfig{*other}}, want: "rendered-x-1 was rendered without our KubeletConfig",
		},
		"rendered with an older kubelet": {
			pool: both, evidence: evidence{rendered: rendered, kubelets: []mcfgv1.MachineConfig{*stale}},
			want: "rendered-x-1 does not hold file /etc/kubernetes/kubelet.conf of MachineConfig 99-x-generated-kubelet yet",
		},
		"rendered with both": {pool: both, evidence: evidence{rendered: rendered, kubelets: []mcfgv1.MachineConfig{*kubelet}}},
		"a second KubeletConfig after ours": {
			pool: both, evidence: evidence{rendered: rendered, kubelets: []mcfgv1.MachineConfig{*kubelet, *other}},
			wantOverruled: "99-x-generated-kubelet-1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.evidence.missing(tc.pool, own, "ours"); got != tc.want {
				t.Errorf("missing() = %q, want %q", got, tc.want)
			}
			if got := tc.evidence.overruled("ours"); got != tc.wantOverruled {
				t.Errorf("overruled() = %q, want %q", got, tc.wantOverruled)
			}
		})
	}
	if diff := cmp.Diff([]string{"99-x-generated-kubelet", "99-x-generated-kubelet-1"},
		kubeletSources(sources("99-x-generated-kubelet-1", "99-y-generated-kubelet", "99-x-generated-kubelet", "01-worker-kubelet"))); diff != "" {
		t.Errorf("kubeletSources() mismatch (-want +got):\n%s", diff)
	}
}

// TestExcess has what a machine-config operator has rendered from MachineConfigs that somebody has changed since.
func TestExcess(t *testing.T) {
	ours := `{"storage":{"files":[{"path":"/etc/a","mode":420,"contents":{"source":"data:,a"}}]},
"systemd":{"units":[{"name":"one.service","contents":"[Unit]","enabled":true}]}}`
	theirs := `{"storage":{"files":[{"path":"/etc/kubernetes/kubelet.conf","contents":{"source":"data:,kubelet"}}]},
"systemd":{"units":[{"name":"two.service","mask":true},{"name":"three.service","dropins":[{"name":"10.conf","contents":"x"}]}]}}`
	extended := func(c *mcfgv1.MachineConfig) *mcfgv1.MachineConfig {
		c.Spec.Extensions = []string{"usbguard"}
		return c
	}
	realTime := func(c *mcfgv1.MachineConfig) *mcfgv1.MachineConfig {
		c.Spec.KernelType = "realtime"
		return c
	}
	whole := func(arguments ...string) *mcfgv1.MachineConfig {
		return config("rendered-x-1", wholeIgnition, arguments...)
	}
	cases := map[string]struct {
		rendered, first *mcfgv1.MachineConfig
		want            string
	}{
		"nothing":                          {whole("b", "a"), config("50", ours, "a"), ""},
		"an argument":                      {whole("a", "b", "c"), config("50", ours, "a"), "other kernel arguments"},
		"a file":                           {whole("a", "b"), config("50", "", "a"), "file /etc/a"},
		"another content of a file":        {whole("a", "b"), config("50", strings.ReplaceAll(ours, "data:,a", "data:,b"), "a"), "file /etc/a"},
		"another content of a unit":        {whole("a", "b"), config("50", strings.ReplaceAll(ours, "[Unit]", ""), "a"), "unit one.service"},
		"an extension":                     {extended(whole("a", "b")), config("50", ours, "a"), "other extensions"},
		"an extension that a source wants": {extended(whole("a", "b")), extended(config("50", ours, "a")), ""},
		"a kernel":                         {realTime(whole("a", "b")), config("50", ours, "a"), "kernel type realtime"},
		"a kernel that a source wants":     {realTime(whole("a", "b")), realTime(config("50", ours, "a")), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := evidence{rendered: tc.rendered, sources: []mcfgv1.MachineConfig{*tc.first, *config("99", theirs, "b")}}
			if got := e.excess(); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("excess is %q, want %q", got, tc.want)
			}
		})
	}
}
