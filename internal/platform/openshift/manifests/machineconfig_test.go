// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coreos/ignition/v2/config"
	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
)

// ignitionOf renders and reads the Ignition configuration back with Ignition's parser.
func ignitionOf(t *testing.T, in Input) types.Config {
	t.Helper()
	machineConfig, err := MachineConfig(in)
	if err != nil {
		t.Fatalf("MachineConfig: %v", err)
	}
	parsed, report, err := v3_2.Parse(machineConfig.Spec.Config.Raw)
	if err != nil || len(report.Entries) > 0 {
		t.Fatalf("Ignition 3.2 parses with error %v and report %q", err, report.String())
	}
	if _, report, err := config.Parse(machineConfig.Spec.Config.Raw); err != nil || len(report.Entries) > 0 {
		t.Fatalf("the newest Ignition parses with error %v and report %q", err, report.String())
	}
	return parsed
}

func TestIgnitionHoldsThePlan(t *testing.T) {
	for name, in := range plannedExamples(t) {
		t.Run(name, func(t *testing.T) {
			parsed := ignitionOf(t, in)
			files := make([]plan.File, 0, len(parsed.Storage.Files))
			for _, file := range parsed.Storage.Files {
				if !ptr.Deref(file.Overwrite, false) {
					t.Errorf("%s does not replace a file of the image", file.Path)
				}
				files = append(files, plan.File{Path: file.Path, Mode: ptr.Deref(file.Mode, 0), Content: content(t, file)})
			}
			runtime, err := crioconfig.File(in.Plan)
			if err != nil {
				t.Fatal(err)
			}
			want := append(slices.Clone(in.Plan.Files), runtime)
			if !in.Plan.CPUs.Shared.IsEmpty() {
				want = append(want, plan.File{
					Path: "/etc/kubernetes/openshift-workload-mixed-cpus", Mode: 0o644, Content: `{"shared_cpus": {"containers_limit": 256}}` + "\n",
				})
			}
			slices.SortFunc(want, func(a, b plan.File) int { return strings.Compare(a.Path, b.Path) })
			if diff := cmp.Diff(want, files, cmpopts.EquateEmpty(), cmpopts.IgnoreTypes(plan.Origin{})); diff != "" {
				t.Errorf("files (-plan +Ignition):\n%s", diff)
			}
			planned := make([]string, 0, len(in.Plan.Units)+1)
			planned = append(planned, "lowlatency-tuned.service masked false")
			units := make([]string, 0, len(in.Plan.Units)+1)
			for _, unit := range in.Plan.Units {
				planned = append(planned, fmt.Sprintf("%s masked %t", unit.Name, unit.Masked))
			}
			slices.Sort(planned)
			for _, unit := range parsed.Systemd.Units {
				units = append(units, fmt.Sprintf("%s masked %t", unit.Name, ptr.Deref(unit.Mask, false)))
			}
			if diff := cmp.Diff(planned, units); diff != "" {
				t.Errorf("units (-plan +Ignition):\n%s", diff)
			}
		})
	}
}

func content(t *testing.T, file types.File) string {
	t.Helper()
	encoded, ok := strings.CutPrefix(ptr.Deref(file.Contents.Source, ""), "data:text/plain;charset=utf-8;base64,")
	if !ok {
		t.Fatalf("%s has source %v", file.Path, file.Contents.Source)
	}
	decoded, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatalf("%s: %v", file.Path, err)
	}
	return string(decoded)
}

func TestIgnitionUnit(t *testing.T) {
	cases := map[string]struct {
		unit plan.Unit
		want types.Unit
	}{
		"a unit that starts at boot": {
			unit: plan.Unit{Name: "a.service", Content: "[Unit]\n", Enabled: true},
			want: types.Unit{Name: "a.service", Contents: new("[Unit]\n"), Enabled: new(true)},
		},
		"a unit that others start": {
			unit: plan.Unit{Name: "a.service", Content: "[Unit]\n"},
			want: types.Unit{Name: "a.service", Contents: new("[Unit]\n"), Enabled: new(false)},
		},
		"a drop-in leaves the distribution's choice": {
			unit: plan.Unit{Name: "a.service", DropIns: map[string]string{"2.conf": "two", "1.conf": "one"}},
			want: types.Unit{Name: "a.service", Dropins: []types.Dropin{
				{Name: "1.conf", Contents: new("one")}, {Name: "2.conf", Contents: new("two")},
			}},
		},
		"a masked unit": {
			unit: plan.Unit{Name: "a.service", Masked: true},
			want: types.Unit{Name: "a.service", Mask: new(true)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ignitionUnit(tc.unit)); diff != "" {
				t.Errorf("unit (-want +got):\n%s", diff)
			}
		})
	}
}

func TestIgnitionRefusals(t *testing.T) {
	cases := map[string]struct {
		change func(*plan.NodePlan)
		want   string
	}{
		"a relative path": {func(p *plan.NodePlan) { p.Files[0].Path = "etc/x" }, "path"},
		"the same path twice": {
			func(p *plan.NodePlan) { p.Files = append(p.Files, p.Files[0]) }, "duplicate",
		},
		"a mode that is no mode":           {func(p *plan.NodePlan) { p.Files[0].Mode = 0o20000 }, "mode"},
		"a unit without a type":            {func(p *plan.NodePlan) { p.Units[3].Name = "hugepages" }, "extension"},
		"a unit that systemd cannot parse": {func(p *plan.NodePlan) { p.Units[3].Content = "[Unit" }, "unit"},
		"a drop-in without .conf": {
			func(p *plan.NodePlan) { p.Units[2].DropIns = map[string]string{"x": "[Service]\n"} }, "extension",
		},
		"the same unit twice": {
			func(p *plan.NodePlan) { p.Units = append(p.Units, p.Units[1]) }, "duplicate",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "trading-xeon")
			tc.change(in.Plan)
			_, err := MachineConfig(in)
			wantError(t, err, "ignition refuses")
			wantError(t, err, tc.want)
		})
	}
}

func TestKernelArguments(t *testing.T) {
	in := example(t, "trading-xeon")
	machineConfig, err := MachineConfig(in)
	if err != nil {
		t.Fatalf("MachineConfig: %v", err)
	}
	planned := make([]string, 0, len(in.Plan.KernelArguments))
	for _, argument := range in.Plan.KernelArguments {
		planned = append(planned, argument.Text)
	}
	if !slices.Equal(planned, machineConfig.Spec.KernelArguments) {
		t.Errorf("kernelArguments = %q, want %q in this order", machineConfig.Spec.KernelArguments, planned)
	}
	for _, bad := range []string{"", "a b", "a\tb", "a\nb", "a\x7f"} {
		in.Plan.KernelArguments = arguments("quiet", bad)
		_, err := MachineConfig(in)
		wantError(t, err, "kernel argument")
	}
}

func TestKernelType(t *testing.T) {
	cases := map[string]struct {
		kernel    plan.KernelPlan
		want      string
		wantError string
	}{
		"ordinary":           {kernel: plan.KernelPlan{Type: v1alpha1.KernelDefault, PageSize: v1alpha1.PageSize4Ki}, want: "default"},
		"real-time":          {kernel: plan.KernelPlan{Type: v1alpha1.KernelRealTime, PageSize: v1alpha1.PageSize4Ki}, want: "realtime"},
		"large pages":        {kernel: plan.KernelPlan{Type: v1alpha1.KernelDefault, PageSize: v1alpha1.PageSize64Ki}, want: "64k-pages"},
		"neither is planned": {want: "default"},
		"both": {
			kernel:    plan.KernelPlan{Type: v1alpha1.KernelRealTime, PageSize: v1alpha1.PageSize64Ki},
			wantError: "RealTime kernel with 64Ki pages",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "arm-64k")
			in.Plan.Kernel = tc.kernel
			machineConfig, err := MachineConfig(in)
			if tc.wantError != "" {
				wantError(t, err, tc.wantError)
				return
			}
			if err != nil || machineConfig.Spec.KernelType != tc.want {
				t.Errorf("kernelType = %+v, %v, want %q", machineConfig, err, tc.want)
			}
		})
	}
}

func TestMachineConfigLabels(t *testing.T) {
	cases := map[string]struct {
		labels map[string]string
		want   map[string]string
	}{
		"the pool's role unless stated":  {want: map[string]string{LabelMachineConfigRole: "ran"}},
		"an existing pool's own labels":  {labels: map[string]string{"tier": "fast"}, want: map[string]string{"tier": "fast", LabelMachineConfigRole: ""}},
		"several labels of one selector": {labels: map[string]string{"a": "1", "b": "2"}, want: map[string]string{"a": "1", "b": "2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := example(t, "realtime-existing")
			in.MachineConfigPool.MachineConfigLabels = tc.labels
			machineConfig, err := MachineConfig(in)
			if err != nil {
				t.Fatalf("MachineConfig: %v", err)
			}
			for key, want := range tc.want {
				if got := machineConfig.Labels[key]; got != want {
					t.Errorf("label %s = %q, want %q", key, got, want)
				}
			}
		})
	}
}
