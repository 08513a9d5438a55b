// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/samples"
)

func parse(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(text), &object.Object)).To(Succeed())
	return object
}

func profileWith(spec string) *unstructured.Unstructured {
	object := parse("{apiVersion: lowlatency.dev/v1alpha1, kind: LowLatencyNodeProfile, metadata: {name: trading}}")
	content := map[string]any{}
	Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed())
	if _, given := content["nodeSelector"]; !given {
		content["nodeSelector"] = map[string]any{"matchLabels": map[string]any{"trading": ""}}
	}
	object.Object["spec"] = content
	return object
}

// largestProfile fills every list whose rules look at each item.
func largestProfile() *v1alpha1.LowLatencyNodeProfile {
	profile := newProfile()
	spec := &profile.Spec
	list := v1alpha1.CPUList(strings.Repeat("1000,", 204) + "1000")
	spec.CPUs = v1alpha1.CPUsSpec{
		Partition: v1alpha1.PartitionExplicit,
		Explicit:  &v1alpha1.ExplicitCPUs{Housekeeping: list, Isolated: list, Offline: list, Shared: list, DataPlane: list},
	}
	spec.Memory.DefaultHugepageSize = "2Mi"
	for i := range int32(64) {
		number := strconv.Itoa(int(i))
		spec.Memory.Hugepages = append(spec.Memory.Hugepages, v1alpha1.HugepageReservation{Size: "2Mi", Count: 1, NUMANode: &i})
		spec.Kernel.AdditionalArguments = append(spec.Kernel.AdditionalArguments, v1alpha1.KernelArgument(strings.Repeat("a", 250)+number))
		spec.System.StopServices = append(spec.System.StopServices, v1alpha1.UnitName(strings.Repeat("a", 240)+number+".timer"))
		spec.System.UnloadModules = append(spec.System.UnloadModules, v1alpha1.ModuleName(strings.Repeat("a", 50)+number))
		spec.System.KernelParameters = append(spec.System.KernelParameters, v1alpha1.KernelParameter{
			Name: "net." + strings.Repeat("a", 120) + number, Value: strings.Repeat("1", 128),
		})
		spec.Verification.WaivedChecks = append(spec.Verification.WaivedChecks, v1alpha1.WaivedCheck{
			Check: v1alpha1.CheckID("a." + strings.Repeat("a", 58) + number), Reason: strings.Repeat("r", 256),
		})
	}
	largest := largestSelector()
	largest.Link = v1alpha1.LinkAny
	for range 32 {
		spec.Network.NICs = append(spec.Network.NICs, largest)
	}
	for i := range 8 {
		key := strings.Repeat("a", 253) + "/" + strings.Repeat("b", 62) + strconv.Itoa(i)
		spec.NodeSelector.MatchLabels[key] = v1alpha1.LabelValue(strings.Repeat("v", 63))
	}
	delete(spec.NodeSelector.MatchLabels, "node-role.kubernetes.io/trading")
	return profile
}

// describeBounds shows that the schema itself is in force, by one sample of each sort of bound.
func describeBounds(admin func() client.Client) {
	DescribeTable("refuses",
		func(ctx SpecContext, spec, wantField, wantMessage string) {
			err := admin().Create(ctx, profileWith(spec), client.DryRunAll, client.FieldValidation("Strict"))
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
			Expect(err).To(MatchError(And(ContainSubstring(wantField+": "), ContainSubstring(wantMessage))))
		},
		Entry("a value outside an enum", `cpus: {tick: Sometimes}`,
			"spec.cpus.tick", `supported values: "Stopped", "Periodic"`),
		Entry("an enum value in lower case", `verification: {gate: taint}`,
			"spec.verification.gate", `supported values: "ReportOnly", "Taint"`),
		Entry("a repair that there is not", `verification: {repair: Always}`,
			"spec.verification.repair", `supported values: "ReportOnly", "Runtime"`),
		Entry("an empty enum value", `rollout: {state: ""}`,
			"spec.rollout.state", `supported values: "Active", "Paused"`),
		Entry("a way back that there is not", `rollout: {bootFallback: None}`,
			"spec.rollout.bootFallback", `supported values: "Automatic", "ByHandAccepted"`),
		Entry("zero hugepages", `memory: {defaultHugepageSize: 1Gi, hugepages: [{size: 1Gi, count: 0}]}`,
			"spec.memory.hugepages[0].count", "greater than or equal to 1"),
		Entry("more hugepages than any host has", `memory: {defaultHugepageSize: 1Gi, hugepages: [{size: 1Gi, count: 16777217}]}`,
			"spec.memory.hugepages[0].count", "less than or equal to 16777216"),
		Entry("a negative NUMA node", `memory: {defaultHugepageSize: 1Gi, hugepages: [{size: 1Gi, count: 1, numaNode: -1}]}`,
			"spec.memory.hugepages[0].numaNode", "greater than or equal to 0"),
		Entry("an empty list", `system: {stopServices: []}`,
			"spec.system.stopServices", "at least 1 items"),
		Entry("a unit named twice", `system: {stopServices: [a.timer, a.timer]}`,
			"spec.system.stopServices[1]", "Duplicate value"),
		Entry("too many arguments", "kernel: {additionalArguments: ["+strings.Repeat("a, ", 65)+"]}",
			"spec.kernel.additionalArguments", "at most 64 items"),
		Entry("a check waived twice", `verification: {waivedChecks: [{check: a.b, reason: x}, {check: a.b, reason: y}]}`,
			"spec.verification.waivedChecks[1]", "Duplicate value"),
		Entry("a waiver without a reason", `verification: {waivedChecks: [{check: a.b}]}`,
			"spec.verification.waivedChecks[0].reason", "Required value"),
		Entry("a selector without labels", `nodeSelector: {matchLabels: {}}`,
			"spec.nodeSelector.matchLabels", "at least 1 properties"),
		Entry("a test that is asked for twice", `verification: {qualification: {tests: [{namespace: a, name: b}, {namespace: a, name: b}]}}`,
			"spec.verification.qualification.tests[1]", "Duplicate value"),
		Entry("a test without a namespace", `verification: {qualification: {tests: [{name: b}]}}`,
			"spec.verification.qualification.tests[0].namespace", "Required value"),
		Entry("no test", `verification: {qualification: {tests: []}}`,
			"spec.verification.qualification.tests", "should have at least 1 items"),
		Entry("an empty budget", `verification: {budget: {}}`,
			"spec.verification.budget", "at least 1 properties"),
		Entry("a NIC selector without a field", `network: {nics: [{}]}`,
			"spec.network.nics[0]", "at least 1 properties"),
		Entry("a vendor in the notation of a PerformanceProfile", `network: {nics: [{vendor: "0x1924"}]}`,
			"spec.network.nics[0].vendor", "without 0x, as lspci -n prints them"),
	)

	describeNICPoolBounds(admin)

	It("refuses an unknown field with strict validation", func(ctx SpecContext) {
		err := admin().Create(ctx, profileWith(`cpus: {isolated: "2-3"}`), client.DryRunAll, client.FieldValidation("Strict"))
		Expect(err).To(MatchError(ContainSubstring(`unknown field "spec.cpus.isolated"`)))
	})

	It("affords its rules for a profile that is as large as the bounds allow", func(ctx SpecContext) {
		Expect(admin().Create(ctx, largestProfile(), client.DryRunAll)).To(Succeed())
	})

	It("keeps what the user wrote, word for word", func(ctx SpecContext) {
		spec := `{cpus: {partition: Explicit, explicit: {housekeeping: "1,0", isolated: "2-3,4-7"}}, nodeSelector: {matchLabels: {a: ""}}}`
		object := profileWith(spec)
		Expect(admin().Create(ctx, object, client.DryRunAll)).To(Succeed())
		Expect(object.Object["spec"]).To(Equal(profileWith(spec).Object["spec"]))
	})
}

// describeSamples applies each file of config/samples as a user would.
func describeSamples(admin func() client.Client) {
	It("apply unchanged", func(ctx SpecContext) {
		files, err := samples.Files("../../config/samples")
		Expect(err).NotTo(HaveOccurred())
		ours := 0
		for _, file := range files {
			for _, object := range wholeObjects(file) {
				if object.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
					continue
				}
				ours++
				again := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
				Expect(admin().Create(ctx, object, client.FieldValidation("Strict"))).To(Succeed(), file)
				DeferCleanup(func(ctx SpecContext) { Expect(admin().Delete(ctx, object)).To(Succeed()) })
				Expect(admin().Apply(ctx, again, client.FieldOwner("gitops"))).To(Succeed(), file)
			}
		}
		Expect(ours).To(BeNumerically(">=", 35), "samples: %v", files)
	})
}
