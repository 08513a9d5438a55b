// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package view

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// sameJSON compares a value's JSON with a text, field by field.
func sameJSON(t *testing.T, want string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var got, wanted any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestTopologyHasNullForWhatIsUnknown(t *testing.T) {
	unknown := &topology.Topology{
		Online: cpus.Of(0, 1), Present: cpus.Of(0, 1),
		Cores:     []topology.Core{{CPUs: cpus.Of(0, 1), NUMANode: -1, Package: -1, L3: -1}},
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0, 1), HugepageSizes: []int64{2048}}},
		NICs:      []topology.NIC{{PCIAddress: "0000:00:03.0"}},
	}
	view := OfTopology("a", unknown)
	view.Signature = "s"
	sameJSON(t, `{
		"name": "a", "architecture": null, "vendor": null, "model": null, "hypervisor": null, "signature": "s",
		"kernel": {"release": null, "realTime": null, "commandLine": null},
		"cpus": {"online": "0-1", "offline": "", "present": "0-1"},
		"packages": [], "l3Domains": [],
		"numaNodes": [{"id": 0, "cpus": "0-1", "memoryBytes": null, "distances": null,
			"hugepages": [{"sizeKibibytes": 2048, "total": null, "free": null}]}],
		"cores": [{"cpus": "0-1", "numaNode": null, "package": null, "l3": null}],
		"nics": [{"name": null, "pciAddress": "0000:00:03.0", "vendor": null, "device": null, "driver": null,
			"numaNode": null, "localCPUs": null, "product": null, "physicalFunction": null}],
		"frequencyKilohertz": {"minimum": null, "maximum": null}}`, view)
}

func TestTopologyKeepsZeros(t *testing.T) {
	known := &topology.Topology{
		Architecture: "amd64", Vendor: "AMD", Model: "M", Hypervisor: "KVM", KernelRelease: "6.6", KernelRealTime: new(false), CommandLine: "quiet",
		Online: cpus.Of(0), Offline: cpus.Of(1), Present: cpus.Of(0, 1),
		Packages: []cpus.Set{cpus.Of(0, 1)}, L3Domains: []cpus.Set{cpus.Of(0)},
		Cores: []topology.Core{{CPUs: cpus.Of(0, 1)}},
		NUMANodes: []topology.NUMANode{{ID: 0, CPUs: cpus.Of(0), MemoryBytes: new(int64(0)), Distances: []int{10},
			Hugepages: []topology.HugepagePool{{SizeKibibytes: 2048}}}},
		NICs:             []topology.NIC{{PCIAddress: "p", Name: "n", Vendor: "v", Device: "d", Driver: "r", NUMANode: new(0), LocalCPUs: cpus.Of(0), PhysicalFunction: "f"}},
		MinimumFrequency: 1, MaximumFrequency: 2,
	}
	view := OfTopology("a", known)
	view.Signature = "s"
	sameJSON(t, `{
		"name": "a", "architecture": "amd64", "vendor": "AMD", "model": "M", "hypervisor": "KVM", "signature": "s",
		"kernel": {"release": "6.6", "realTime": false, "commandLine": "quiet"},
		"cpus": {"online": "0", "offline": "1", "present": "0-1"},
		"packages": [{"id": 0, "cpus": "0-1"}], "l3Domains": [{"id": 0, "cpus": "0"}],
		"numaNodes": [{"id": 0, "cpus": "0", "memoryBytes": 0, "distances": [10],
			"hugepages": [{"sizeKibibytes": 2048, "total": 0, "free": 0}]}],
		"cores": [{"cpus": "0-1", "numaNode": 0, "package": 0, "l3": 0}],
		"nics": [{"name": "n", "pciAddress": "p", "vendor": "v", "device": "d", "driver": "r",
			"numaNode": 0, "localCPUs": "0", "product": null, "physicalFunction": "f"}],
		"frequencyKilohertz": {"minimum": 1, "maximum": 2}}`, view)
}

func TestPlanWithoutPlan(t *testing.T) {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	profile.Name = "p"
	view, err := OfPlan("a", profile, nil, []plan.Finding{{Rule: "r", Severity: v1alpha1.SeverityCritical}}, "running", plan.Changes{})
	if err != nil {
		t.Fatal(err)
	}
	sameJSON(t, `{"node": "a", "profile": "p", "planHash": null, "reboot": "Unknown", "against": "running",
		"findings": [{"rule": "r", "severity": "Critical", "field": "", "message": "", "remedy": ""}]}`, view)
}

func TestPlanHasTheDocumentedFields(t *testing.T) {
	field := plan.Origin{Source: plan.FromField, Detail: "spec.x"}
	p := &plan.NodePlan{
		Profile: "p", Architecture: "arm64",
		CPUs:             plan.CPUPlan{Housekeeping: cpus.Of(0), Isolated: cpus.Of(1), SMT: "Kept", Isolation: "Static", Tick: "Stopped", Origin: field},
		Kernel:           plan.KernelPlan{Type: "Default", PageSize: "4Ki"},
		KernelArguments:  []plan.Argument{{Text: "nohz=on", Origin: field}},
		Hugepages:        []plan.HugepagePlan{{Size: "2Mi", SizeKibibytes: 2048, Count: 3, Method: plan.ByKernelArgument, Origin: field}},
		Kubelet:          plan.KubeletPlan{CPUManagerPolicy: "static", Additional: map[string]any{"maxPods": 7}, Origin: field},
		ContainerRuntime: plan.ContainerRuntimePlan{InfrastructureCPUs: cpus.Of(0), ExecPlacement: "FirstCPU", PodRequests: []plan.PodRequest{"CPUQuota"}},
		Files:            []plan.File{{Path: "/a", Mode: 0o755, Content: "c", Origin: field}},
		Units:            []plan.Unit{{Name: "u", DropIns: map[string]string{"d": "e"}, Origin: field}},
		Sysctls:          []plan.Setting{{Name: "s", Value: "1", Origin: field}},
		UnloadModules:    []plan.Setting{{Name: "m", Origin: field}},
	}
	profile := &v1alpha1.LowLatencyNodeProfile{}
	profile.Name = "p"
	changes := plan.Changes{Items: []plan.Change{{What: "w", From: "f", To: "t", Reboot: v1alpha1.RebootRequired, Why: "y"}}}
	view, err := OfPlan("a", profile, p, nil, "b.yaml", changes)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]plan.Origin{
		"isolated": field, "kernelArguments[0]": field, "hugepages[0]": field, "sysctls[0]": field, "unloadModules[0]": field,
		"files[0]": field, "units[0]": field, "kubelet.reservedSystemCPUs": field,
		"kubelet.maxPods": {Source: plan.FromField, Detail: "spec.kubelet.additionalConfiguration"},
		"cpuModes.tick":   {Source: plan.FromDefault, Detail: "spec.cpus.tick"},
	} {
		if got := view.Origins[path]; got != want {
			t.Errorf("origin of %s: %+v, want %+v", path, got, want)
		}
	}
	view.PlanHash, view.Origins = new("h"), nil
	sameJSON(t, `{"node": "a", "profile": "p", "planHash": "h", "architecture": "arm64", "vendor": null,
		"kernelType": "Default", "kernelPageSize": "4Ki", "kernelArguments": ["nohz=on"],
		"housekeeping": "0", "isolated": "1", "offline": "", "shared": "", "dataPlane": "",
		"cpuModes": {"simultaneousMultithreading": "Kept", "isolation": "Static", "tick": "Stopped"},
		"hugepages": [{"size": "2Mi", "count": 3, "numaNode": null, "method": "KernelArgument"}],
		"interrupts": {"placement": "", "defaultAffinity": "", "balancer": "", "banned": ""},
		"power": {"idleStates": "", "frequencyDriver": "", "governor": "", "turbo": "",
			"isolatedMaximumFrequencyKilohertz": null, "housekeepingMaximumFrequencyKilohertz": null},
		"sysctls": [{"name": "s", "value": "1"}], "sysfs": [],
		"network": {"queues": null, "nics": [], "receivePacketSteering": ""},
		"kubelet": {"cpuManagerPolicy": "static", "maxPods": 7},
		"containerRuntime": {"infrastructureCPUs": "0", "execPlacement": "FirstCPU", "podRequests": ["CPUQuota"]},
		"files": [{"path": "/a", "mode": "0755", "content": "c"}],
		"units": [{"name": "u", "enabled": false, "masked": false, "dropIns": {"d": "e"}}],
		"stopServices": [], "unloadModules": ["m"], "bypassNICs": [],
		"verification": {"gate": "", "failOn": "Impact", "waived": []}, "origins": null,
		"reboot": "Required", "against": "b.yaml",
		"changes": [{"what": "w", "from": "f", "to": "t", "reboot": "Required", "why": "y"}], "findings": []}`, view)
}

func TestReport(t *testing.T) {
	result := func(id string, severity v1alpha1.Severity, outcome v1alpha1.Outcome) verify.Result {
		check := verify.Check{ID: v1alpha1.CheckID(id), Severity: severity, Conditions: []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned}}
		return verify.Result{Check: check, Outcome: outcome, Decides: check.Decides(outcome, "")}
	}
	p := &plan.NodePlan{
		Profile: "p",
		CPUs:    plan.CPUPlan{Housekeeping: cpus.Of(0, 2), Isolated: cpus.Of(1, 3)},
		Hugepages: []plan.HugepagePlan{
			{SizeKibibytes: 2048, Count: 5, NUMANode: new(1)}, {SizeKibibytes: 2048, Count: 6, NUMANode: new(1)},
			{SizeKibibytes: 1 << 20, Count: 7},
		},
	}
	node := func(id int, ids ...int) topology.NUMANode {
		return topology.NUMANode{ID: id, CPUs: cpus.Of(ids...), Hugepages: []topology.HugepagePool{
			{SizeKibibytes: 64}, {SizeKibibytes: 2048, Total: int64(id), Free: int64(id)}, {SizeKibibytes: 1 << 20, Total: 4, Free: 3},
		}}
	}
	host := &topology.Topology{
		NUMANodes: []topology.NUMANode{node(0, 0, 1), node(1, 2, 3)},
		NICs: []topology.NIC{
			{PCIAddress: "a", Name: "eth0", NUMANode: new(1)}, {PCIAddress: "b", NUMANode: new(1)},
			{PCIAddress: "c", NUMANode: new(1), PhysicalFunction: "a"}, {PCIAddress: "d"},
		},
	}
	report := verify.Report{
		Results: []verify.Result{
			result("a.passed", v1alpha1.SeverityCritical, v1alpha1.OutcomePassed),
			result("b.unknown", v1alpha1.SeverityCritical, v1alpha1.OutcomeUnknown),
			result("c.failed", v1alpha1.SeverityHigh, v1alpha1.OutcomeFailed),
		},
		Skipped: []verify.Skip{{Check: "d.skipped", Reason: "once"}},
	}
	view := OfReport("n", p, host, report, []plan.Finding{{Rule: "r"}})
	if view.Status() != metav1.ConditionUnknown {
		t.Errorf("status %s: no check that decides failed, a critical one is unknown", view.Status())
	}
	if view.Counts != (v1alpha1.CheckCounts{Passed: 1, Failed: 1, Unknown: 1}) || len(view.Findings) != 2 || len(view.Conditions) == 0 ||
		cmp.Diff([]v1alpha1.CheckID{"a.passed"}, view.Passed) != "" || view.Skipped[0].Reason != "once" || len(view.PlanFindings) != 1 {
		t.Errorf("view: %+v", view)
	}
	sameJSON(t, `[
		{"id": 0, "housekeeping": "0", "isolated": "1", "nics": [], "hugepages": [
			{"sizeKibibytes": 1048576, "promised": null, "total": 4, "free": 3}]},
		{"id": 1, "housekeeping": "2", "isolated": "3", "nics": ["eth0", "b"], "hugepages": [
			{"sizeKibibytes": 2048, "promised": 11, "total": 1, "free": 1},
			{"sizeKibibytes": 1048576, "promised": null, "total": 4, "free": 3}]}]`, view.NUMANodes)

	report.Results = append(report.Results, result("e.failed", v1alpha1.SeverityCritical, v1alpha1.OutcomeFailed))
	if status := OfReport("n", p, host, report, nil).Status(); status != metav1.ConditionFalse {
		t.Errorf("status %s: a critical check failed", status)
	}
}

func TestStatusOfAHost(t *testing.T) {
	with := func(statuses ...metav1.ConditionStatus) Check {
		check := Check{PlanHash: new("h")}
		for _, status := range statuses {
			check.Conditions = append(check.Conditions, Condition{Status: status})
		}
		return check
	}
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	cases := map[string]struct {
		check Check
		want  metav1.ConditionStatus
	}{
		"all are True":              {with(yes, yes), yes},
		"one is False":              {with(yes, unknown, no), no},
		"one is Unknown":            {with(yes, unknown), unknown},
		"nothing was verified":      {with(), unknown},
		"the profile does not fit":  {Unplanned("n", "p", nil), no},
		"a status that is not told": {with(yes, ""), unknown},
	}
	for name, tc := range cases {
		if got := tc.check.Status(); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}
