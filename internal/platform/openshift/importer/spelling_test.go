// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// TestSpellingsOfArguments: an argument overrides a computed one, or is the same, however both are spelled, and what comes
// out of it can be planned.
func TestSpellingsOfArguments(t *testing.T) {
	cases := map[string]struct {
		arguments string
		want      []v1alpha1.KernelArgument
		remarks   int
	}{
		"the same under another name": {arguments: "iommu.passthrough=1"},
		"the same CPUs":               {arguments: "nohz-full=2,3-7,10-15 rcu_nocbs=2-7,10-15"},
		"other CPUs":                  {arguments: "nohz_full=2-7", remarks: 1},
		"a computed one under another name": {
			arguments: "iommu.passthrough=0", remarks: 1,
			want: []v1alpha1.KernelArgument{"intel_iommu=on", "iommu.passthrough=0"},
		},
		"two that override one": {
			arguments: "iommu=nopt iommu.passthrough=off", remarks: 1,
			want: []v1alpha1.KernelArgument{"intel_iommu=on", "iommu.passthrough=off"},
		},
		"a switch":         {arguments: "nohz=1"},
		"fewer processors": {arguments: "nosmp", remarks: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			document := strings.Replace(`
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: spelled}
spec:
  cpu: {reserved: "0-1,8-9", isolated: "2-7,10-15"}
  nodeSelector: {node-role.kubernetes.io/worker-cnf: ""}
  workloadHints: {realTime: false}
  additionalKernelArgs: [ARGUMENTS]
`, "ARGUMENTS", `"`+strings.Join(strings.Fields(tc.arguments), `", "`)+`"`, 1)
			profile, remarks, err := FromPerformanceProfile([]byte(document))
			if err != nil {
				t.Fatal(err)
			}
			var kept []v1alpha1.KernelArgument
			for _, argument := range profile.Spec.Kernel.AdditionalArguments {
				if !strings.Contains(string(argument), "pstate") {
					kept = append(kept, argument)
				}
			}
			if diff := cmp.Diff(tc.want, kept, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("additional arguments (-want +got):\n%s", diff)
			}
			about := 0
			for _, remark := range remarks {
				if strings.HasPrefix(remark, argumentsField) {
					about++
				}
			}
			if about != tc.remarks {
				t.Errorf("remarks %q, want %d about arguments", remarks, tc.remarks)
			}
			if planned, findings := plan.New(plan.Input{Profile: profile, Topology: machineOf("amd64", "Intel")}); planned == nil {
				t.Errorf("it cannot be planned: %+v", findings)
			}
		})
	}
}

// TestImportLeavesOutWhatIsRefused: what no plan takes does not come out of an import, and the remark says why.
func TestImportLeavesOutWhatIsRefused(t *testing.T) {
	document := `
apiVersion: performance.openshift.io/v2
kind: PerformanceProfile
metadata: {name: dangerous}
spec:
  cpu: {reserved: "0-1,8-9", isolated: "2-7,10-15"}
  nodeSelector: {node-role.kubernetes.io/worker-cnf: ""}
  additionalKernelArgs: ["audit=0 init=/bin/sh", "systemd.mask=a.service", "module-blacklist=overlay", "enforcing=0"]
`
	profile, remarks, err := FromPerformanceProfile([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	var kept []v1alpha1.KernelArgument
	for _, argument := range profile.Spec.Kernel.AdditionalArguments {
		if _, dangerous := plan.ArgumentHazard(string(argument)); dangerous {
			kept = append(kept, argument)
		}
	}
	if diff := cmp.Diff([]v1alpha1.KernelArgument{"enforcing=0"}, kept); diff != "" {
		t.Errorf("dangerous arguments (-want +got):\n%s", diff)
	}
	text := strings.Join(remarks, "\n")
	for _, sentence := range []string{
		"spec.additionalKernelArgs: init=/bin/sh was left out: it replaces the first program of the node, so that nothing else starts.",
		"spec.additionalKernelArgs: systemd.mask=a.service was left out: it keeps a unit from starting without anybody judging which.",
		"spec.additionalKernelArgs: module-blacklist=overlay was left out: it keeps module overlay from loading, which is a module that file systems of the node or of its containers need.",
		"spec.additionalKernelArgs: enforcing=0 switches off what keeps containers away from the host; nodes get no plan until spec.acceptedRisks names it.",
	} {
		if !strings.Contains(text, sentence) {
			t.Errorf("no remark %q in\n%s", sentence, text)
		}
	}
}
