// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

const (
	// claimTemplate is what pods with a claim of their own ask by.
	claimTemplate = "one-nic"
	// claimFolder is where the runtime finds what a claim gives.
	claimFolder = "/var/run/cdi"
)

// claims are the scenarios of Dynamic Resource Allocation with the pool of whole NICs, on a scheduler and a kubelet that
// take it as it comes: no feature gate is set. Each goes on where the last one ended.
func (s *scene) claims(t *testing.T) {
	c := &claims{scene: s}
	s.step(t, "DRA: the driver takes the device plugin's place", c.takeOver)
	s.step(t, "DRA: a pod with a ResourceClaim gets the free NIC", c.claim)
	s.step(t, "DRA: a second claim waits, the driver restarts, the first is given back", c.secondClaim)
	s.step(t, "DRA: a pod asks by the resource's name, as with the device plugin", c.byName)
	s.step(t, "DRA: back to the device plugin", c.giveBack)
}

// claims is what the scenarios hand on.
type claims struct {
	*scene

	// byPlugin holds a NIC that it got from the device plugin. first and second hold, one after the other, the NIC at
	// address by a claim.
	byPlugin, first, second *corev1.Pod
	address                 string
}

// takeOver changes a pool while a pod holds one of its two NICs.
func (c *claims) takeOver(t *testing.T) string {
	c.byPlugin = c.held(t)
	taken := c.nicOf(t, c.byPlugin)
	c.allocate(t, v1alpha1.AllocationDynamic)
	c.runs(t, "dra-driver")
	var devices []resourcev1.Device
	c.wait(t, "slices with the NIC that is held tainted", func(ctx context.Context) (bool, string) {
		devices = c.published(ctx, t)
		return len(devices) == 2 && slices.ContainsFunc(devices, func(d resourcev1.Device) bool {
			return len(d.Taints) == 1 && d.Taints[0].Key == v1alpha1.TaintHealth && textOf(d, "resource.kubernetes.io/pciBusID") == taken
		}), fmt.Sprintf("%+v", devices)
	})
	said := make([]string, 0, len(devices))
	for _, device := range devices {
		said = append(said, c.compareDevice(t, device, taken))
	}
	c.expectCondition(t, v1alpha1.ReasonAllocationChanging, "default/held")
	if named := c.class(t).Spec.ExtendedResourceName; named != nil {
		t.Errorf("the class has the name %s while the kubelet knows the device plugin", *named)
	}
	return strings.Join(said, "; ")
}

// compareDevice compares what the driver published about a NIC with the machine's kernel.
func (c *claims) compareDevice(t *testing.T, device resourcev1.Device, taken string) string {
	t.Helper()
	address := textOf(device, "resource.kubernetes.io/pciBusID")
	folder := "/sys/bus/pci/devices/" + address
	want := map[string]string{
		"name":     strings.NewReplacer(":", "-", ".", "-").Replace(address),
		"numaNode": c.run(t, "cat "+folder+"/numa_node"),
		// /sys/devices/pci0000:20/...
		"pcieRoot": c.run(t, "readlink -f "+folder+" | cut -d/ -f4"),
		"driver":   "vfio-pci",
		"tainted":  strconv.FormatBool(address == taken),
	}
	got := map[string]string{
		"name": device.Name, "pcieRoot": textOf(device, "resource.kubernetes.io/pcieRoot"),
		"driver":  textOf(device, "lowlatency.dev/driver"),
		"tainted": strconv.FormatBool(len(device.Taints) > 0),
	}
	if numa := device.Attributes["resource.kubernetes.io/numaNode"].IntValue; numa != nil {
		got["numaNode"] = strconv.FormatInt(*numa, 10)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("device of NIC %s (-kernel +published):\n%s", address, diff)
	}
	said := fmt.Sprintf("%s numaNode %s pcieRoot %s", got["name"], got["numaNode"], got["pcieRoot"])
	if len(device.Taints) > 0 {
		said += ", tainted while " + c.byPlugin.Name + " holds it"
	}
	return said
}

func textOf(device resourcev1.Device, attribute resourcev1.QualifiedName) string {
	if value := device.Attributes[attribute].StringValue; value != nil {
		return *value
	}
	return ""
}

// claim lets a pod ask by a claim of its own for a NIC that an expression chooses.
func (c *claims) claim(t *testing.T) string {
	c.create(t, &resourcev1.ResourceClaimTemplate{
		ObjectMeta: objectName(claimTemplate),
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
			Requests: []resourcev1.DeviceRequest{{Name: "nic", Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: bypass.DriverName("whole"),
				Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
					Expression: `device.attributes["lowlatency.dev"].stack == "VFIO"`,
				}}},
			}}},
		}}},
	})
	c.first = c.createPod(t, claimSpec("claimer"))
	seen := c.holdsByClaim(t, c.first)
	c.address = c.nicOf(t, c.first)
	if c.address == c.nicOf(t, c.byPlugin) {
		t.Errorf("both pods have NIC %s", c.address)
	}
	return seen
}

// secondClaim lets a second pod wait for the NIC, restarts the driver meanwhile, and ends the first pod.
func (c *claims) secondClaim(t *testing.T) string {
	c.second = c.createPod(t, claimSpec("waiter"))
	refusal := ""
	c.wait(t, "the scheduler to find no NIC", func(ctx context.Context) (bool, string) {
		must(t, c.api.Get(ctx, client.ObjectKeyFromObject(c.second), c.second))
		for _, condition := range c.second.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				refusal = condition.Reason + ": " + condition.Message
			}
		}
		return refusal != "", fmt.Sprint(c.second.Status)
	})
	if !strings.Contains(refusal, "cannot allocate all claims") {
		t.Errorf("the scheduler says %q", refusal)
	}
	file := c.claimFile(t, c.first)
	before := c.run(t, "cat "+file)
	c.remove(t, c.runs(t, "dra-driver"))
	c.runs(t, "dra-driver")
	c.stillRuns(t, c.first)
	if after := c.run(t, "cat "+file); after != before {
		t.Errorf("the driver has changed what a running pod holds:\n%s", cmp.Diff(before, after))
	}
	c.remove(t, c.first)
	c.holdsByClaim(t, c.second)
	if got := c.nicOf(t, c.second); got != c.address {
		t.Errorf("the second pod has NIC %s, want %s", got, c.address)
	}
	c.wait(t, "what the first claim gave to be gone", func(context.Context) (bool, string) {
		left := c.run(t, "ls "+claimFolder)
		return !strings.Contains(left, file[strings.LastIndex(file, "/")+1:]), left
	})
	return "Unschedulable until then; claim kept over the restart; then the second has " + c.address
}

// byName ends the pod of the device plugin. A pod that asks as if there were one waits until the kubelet has forgotten it.
func (c *claims) byName(t *testing.T) string {
	taken := c.nicOf(t, c.byPlugin)
	c.remove(t, c.byPlugin)
	pod := c.createPod(t, podSpec("by-name", whole, 1, 1, 2))
	got := c.said(t, pod)
	if named := c.class(t).Spec.ExtendedResourceName; named == nil || *named != whole {
		t.Errorf("the pod runs, and the class has the name %v", named)
	}
	if status := pod.Status.ExtendedResourceClaimStatus; status == nil || len(status.RequestMappings) != 1 || status.RequestMappings[0].ResourceName != whole {
		t.Errorf("the scheduler has made no claim for the pod: %+v", status)
	}
	if address := c.nicOf(t, pod); address != taken {
		t.Errorf("the pod has NIC %s, want %s", address, taken)
	}
	group := c.compareDevices(t, got)
	c.expectUser(t, pod)
	c.remove(t, pod)
	return fmt.Sprintf("NIC %s, /dev/vfio/%s viable; the class has the name since the kubelet forgot the plugin", taken, group)
}

// giveBack changes the pool back while a pod holds a claim.
func (c *claims) giveBack(t *testing.T) string {
	c.allocate(t, v1alpha1.AllocationDevicePlugin)
	c.runs(t, "--drain")
	c.wait(t, "the driver to offer nothing", func(ctx context.Context) (bool, string) {
		devices := c.published(ctx, t)
		return len(devices) == 0, fmt.Sprintf("%+v", devices)
	})
	c.expectCondition(t, v1alpha1.ReasonAllocationChanging, "default/"+c.second.Name)
	c.remove(t, c.second)
	c.runs(t, "device-plugin")
	c.waitAllocatable(t, whole, 2)
	c.wait(t, "slices and class to be gone", func(ctx context.Context) (bool, string) {
		left, classes := &resourcev1.ResourceSliceList{}, &resourcev1.DeviceClassList{}
		must(t, c.api.List(ctx, left))
		must(t, c.api.List(ctx, classes))
		return len(left.Items)+len(classes.Items) == 0, fmt.Sprint(left.Items, classes.Items)
	})
	return "drained until " + c.second.Name + " ended; allocatable 2, no slice and no class left"
}

// claimSpec is a Guaranteed pod that asks for a NIC by a claim of its own.
func claimSpec(name string) *corev1.Pod {
	pod := podSpec(name, whole, 1, 1, 2)
	container := &pod.Spec.Containers[0]
	// Limits are the same list.
	delete(container.Resources.Requests, whole)
	container.Resources.Claims = []corev1.ResourceClaim{{Name: "nic"}}
	pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "nic", ResourceClaimTemplateName: new(claimTemplate)}}
	return pod
}

// allocate changes how the pool of whole NICs hands them out.
func (c *claims) allocate(t *testing.T, way v1alpha1.AllocationType) {
	t.Helper()
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "whole"}}
	must(t, c.api.Patch(t.Context(), pool, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"allocation":"`+string(way)+`"}}`))))
}

// runs waits for the ready pod of the pool with a command or flag.
func (c *claims) runs(t *testing.T, argument string) *corev1.Pod {
	t.Helper()
	var running *corev1.Pod
	c.wait(t, "a pod with "+argument, func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := c.api.List(ctx, pods, client.InNamespace(agentNamespace), client.MatchingLabels{v1alpha1.LabelBypassPool: "whole"})
		i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool {
			return isReady(&p) && p.DeletionTimestamp == nil && slices.Contains(p.Spec.Containers[0].Args, argument)
		})
		if i < 0 {
			return false, fmt.Sprintf("%d pods, none is it: %v", len(pods.Items), err)
		}
		running = &pods.Items[i]
		return true, ""
	})
	return running
}

// published are the devices in the slices of the pool's driver.
func (c *claims) published(ctx context.Context, t *testing.T) []resourcev1.Device {
	t.Helper()
	list := &resourcev1.ResourceSliceList{}
	must(t, c.api.List(ctx, list))
	var devices []resourcev1.Device
	for _, slice := range list.Items {
		if slice.Spec.Driver == bypass.DriverName("whole") {
			devices = append(devices, slice.Spec.Devices...)
		}
	}
	return devices
}

func (c *claims) class(t *testing.T) *resourcev1.DeviceClass {
	t.Helper()
	class := &resourcev1.DeviceClass{}
	must(t, c.api.Get(t.Context(), client.ObjectKey{Name: bypass.DriverName("whole")}, class))
	return class
}

// expectCondition waits until the pool says that something is under way, and what.
func (c *claims) expectCondition(t *testing.T, reason, message string) {
	t.Helper()
	c.wait(t, "the pool to say "+reason+" "+message, func(ctx context.Context) (bool, string) {
		pool := &v1alpha1.BypassNICPool{}
		must(t, c.api.Get(ctx, client.ObjectKey{Name: "whole"}, pool))
		condition := meta.FindStatusCondition(pool.Status.Conditions, v1alpha1.ConditionProgressing)
		said := slices.ContainsFunc(pool.Status.Findings, func(f v1alpha1.PoolFinding) bool { return strings.Contains(f.Message, message) })
		return said && condition != nil && condition.Reason == reason, fmt.Sprintf("%+v %+v", condition, pool.Status.Findings)
	})
}

// nicOf is the NIC that the program of a pod was told.
func (c *claims) nicOf(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	return c.said(t, pod).variable("PCIDEVICE_LOWLATENCY_DEV_WHOLE")
}

// compareDevices compares the device files of a container with the NIC that its program was told, and returns the
// group of VFIO.
func (c *claims) compareDevices(t *testing.T, got words) string {
	t.Helper()
	address := got.variable("PCIDEVICE_LOWLATENCY_DEV_WHOLE")
	group := c.run(t, "basename $(readlink /sys/bus/pci/devices/"+address+"/iommu_group)")
	want := map[string]string{"/dev/vfio/" + group: "open, viable", "/dev/vfio/vfio": "open"}
	if diff := cmp.Diff(want, got.Devices); diff != "" {
		t.Errorf("device files of the container (-want +got):\n%s", diff)
	}
	return group
}

// holdsByClaim waits for a pod with a claim, and compares what the scheduler allocated, what the driver prepared, what
// the program sees and what the agent reports.
func (c *claims) holdsByClaim(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	got := c.said(t, pod)
	address, group := got.variable("PCIDEVICE_LOWLATENCY_DEV_WHOLE"), c.compareDevices(t, got)
	allocated := c.claimOf(t, pod).Status.Allocation
	if allocated == nil || len(allocated.Devices.Results) != 1 || allocated.Devices.Results[0].Device != bypass.ResourceDeviceName(address) {
		t.Errorf("the program has NIC %s, and the scheduler allocated %+v", address, allocated)
	}
	if prepared := c.run(t, "cat "+c.claimFile(t, pod)); !strings.Contains(prepared, "/dev/vfio/"+group) {
		t.Errorf("the CDI specification of the claim has no group %s:\n%s", group, prepared)
	}
	alignment := c.expectUser(t, pod)
	numa := c.run(t, "cat /sys/bus/pci/devices/"+address+"/numa_node")
	want := v1alpha1.AlignmentSplit
	if got.MemoryNodes == numa {
		want = v1alpha1.AlignmentAligned
	}
	if alignment != string(want) {
		t.Errorf("the agent says %s; the NIC is on NUMA node %s and the memory on %s", alignment, numa, got.MemoryNodes)
	}
	return fmt.Sprintf("NIC %s on NUMA node %s, /dev/vfio/%s viable by CDI; CPUs %s, memory of node %s; agent: %s, by claim",
		address, numa, group, got.CPUs, got.MemoryNodes, alignment)
}

// expectUser waits until the agent and the command line name a pod as the one that holds a NIC by a claim, and returns
// what they say of its alignment.
func (c *claims) expectUser(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	c.wait(t, "the agent to report the claim of "+pod.Name, func(ctx context.Context) (bool, string) {
		report := &v1alpha1.LowLatencyNode{}
		must(t, c.api.Get(ctx, client.ObjectKey{Name: nodeName}, report))
		return slices.ContainsFunc(report.Status.BypassNICs, func(nic v1alpha1.NodeBypassNIC) bool {
			return slices.ContainsFunc(nic.Users, func(user v1alpha1.NICUser) bool {
				return user.Pod == pod.Name && user.Allocation == v1alpha1.AllocationDynamic
			})
		}), fmt.Sprintf("%+v", report.Status.BypassNICs)
	})
	view := c.view(t, "whole", "kubectl lowlatency pool to name "+pod.Name, func(v poolView) bool { return v.alignment(pod.Name) != "" })
	return view.alignment(pod.Name)
}

// claimOf is the claim that was made of the template for a pod.
func (c *claims) claimOf(t *testing.T, pod *corev1.Pod) *resourcev1.ResourceClaim {
	t.Helper()
	if made := pod.Status.ResourceClaimStatuses; len(made) != 1 || made[0].ResourceClaimName == nil {
		t.Fatalf("pod %s has the claims %+v, want one", pod.Name, made)
	}
	claim := &resourcev1.ResourceClaim{}
	must(t, c.api.Get(t.Context(), client.ObjectKey{Namespace: pod.Namespace, Name: *pod.Status.ResourceClaimStatuses[0].ResourceClaimName}, claim))
	return claim
}

// claimFile is the CDI specification that the driver writes for the claim of a pod.
func (c *claims) claimFile(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	return fmt.Sprintf("%s/%s-%s.json", claimFolder, bypass.DriverName("whole"), c.claimOf(t, pod).UID)
}
