// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/afxdp"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
)

const agentNamespace = "lowlatency-agents"

// pools are BypassNICPools of different stacks.
func pools() map[string]PoolInput {
	onload := &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: "x2", Generation: 3},
		Spec: v1alpha1.BypassNICPoolSpec{
			NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"node-role.kubernetes.io/trading": "", "rack": "r7"}},
			NICs:         []v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}},
			Stack: v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
				UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
				Options:   []v1alpha1.OnloadOption{{Name: "EF_POLL_USEC", Value: "-1"}},
			}},
			ResourceName: "lowlatency.dev/x2",
			Sharing:      v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared, MaximumSharesPerNIC: 8},
			Hugepages:    []v1alpha1.NICHugepages{{Size: "2Mi", CountPerNIC: 400}},
			NetworkAttachment: &v1alpha1.NetworkAttachmentSpec{
				Type: v1alpha1.AttachmentMACVLAN, ParentInterface: "ens1f0", Namespaces: []string{"trading", "research"},
			},
		},
	}
	dpdk := &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: "dpdk"},
		Spec: v1alpha1.BypassNICPoolSpec{
			NodeSelector:     v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"dataplane": "yes"}},
			NICs:             []v1alpha1.NICSelector{{Vendor: "8086"}},
			Stack:            v1alpha1.BypassStack{Type: v1alpha1.StackVFIO, VFIO: &v1alpha1.VFIOStack{}},
			ResourceName:     "lowlatency.dev/dpdk",
			VirtualFunctions: &v1alpha1.VirtualFunctionsSpec{CountPerNIC: 8},
			NetworkAttachment: &v1alpha1.NetworkAttachmentSpec{
				Type: v1alpha1.AttachmentSRIOV, Namespaces: []string{"dataplane"}, Addresses: v1alpha1.AddressesNone,
			},
		},
	}
	sockets := &v1alpha1.BypassNICPool{
		ObjectMeta: metav1.ObjectMeta{Name: "e810-sockets"},
		Spec: v1alpha1.BypassNICPoolSpec{
			NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"feeds": "yes"}},
			NICs:         []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"ice"}}},
			Stack: v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{
				Queues:   v1alpha1.AFXDPQueuesSpec{First: new(int32(4)), Count: 8},
				Steering: v1alpha1.AFXDPSteeringSpec{Type: v1alpha1.SteeringUDPPorts, UDPPorts: []int32{30001}},
			}},
			ResourceName: "lowlatency.dev/e810-queue",
			Sharing:      v1alpha1.SharingSpec{Mode: v1alpha1.SharingShared},
		},
	}
	dynamic := onload.DeepCopy()
	dynamic.Name, dynamic.Spec.ResourceName = "x2-dynamic", "lowlatency.dev/x2-dynamic"
	dynamic.Spec.Allocation, dynamic.Spec.NetworkAttachment = v1alpha1.AllocationDynamic, nil
	inputs := map[string]PoolInput{}
	for _, pool := range []*v1alpha1.BypassNICPool{onload, dpdk, sockets, dynamic} {
		config := bypass.Pool{Name: pool.Name, Generation: pool.Generation, Spec: pool.Spec}
		if pool == dpdk {
			config.OtherPools = []bypass.OtherPool{{
				Claimant: bypass.Claimant{Name: "other", ResourceName: "lowlatency.dev/other", NICs: []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"ice"}}}},
				Nodes:    []string{"node-1"},
			}}
		}
		inputs["pool-"+pool.Name] = PoolInput{
			Pool: pool, Config: config, Image: "registry.example/lowlatency-operator:v0.1.0",
			OperatorNamespace: operatorNamespace, AgentNamespace: agentNamespace,
		}
	}
	return inputs
}

func renderPool(t testing.TB, in PoolInput) []*unstructured.Unstructured {
	t.Helper()
	objects, err := PoolObjects(in)
	if err != nil {
		t.Fatalf("PoolObjects: %v", err)
	}
	return objects
}

// TestGoldenPools compares every byte with a file that a person has read.
func TestGoldenPools(t *testing.T) {
	for name, in := range pools() {
		t.Run(name, func(t *testing.T) {
			got, err := manifest.YAML(renderPool(t, in))
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, string(got), name+".yaml")
		})
	}
}

// TestPoolConfig: what the nodes read back is what the operator knows.
func TestPoolConfig(t *testing.T) {
	in := pools()["pool-dpdk"]
	for _, object := range renderPool(t, in)[:2] {
		text, _, err := unstructured.NestedString(object.Object, "data", v1alpha1.PoolKey)
		if err != nil {
			t.Fatal(err)
		}
		var got bypass.Pool
		if err := json.Unmarshal([]byte(text), &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(in.Config, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object.GetNamespace(), diff)
		}
	}
}

// TestUpdatesLeaveNoGap: a new plugin starts before the old one ends where two can run side by side.
func TestUpdatesLeaveNoGap(t *testing.T) {
	cases := map[string]struct{ unavailable, surge string }{
		"pool-x2":           {"0", "10%"},
		"pool-dpdk":         {"0", "10%"},
		"pool-x2-dynamic":   {"10%", "<nil>"},
		"pool-e810-sockets": {"10%", "<nil>"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			daemonSet := daemonSetOf(t, pools()[name]).Spec
			rolling := daemonSet.UpdateStrategy.RollingUpdate
			if diff := cmp.Diff([]string{tc.unavailable, tc.surge}, []string{rolling.MaxUnavailable.String(), rolling.MaxSurge.String()}); diff != "" {
				t.Errorf("unavailable and surge (-want +got):\n%s", diff)
			}
			if daemonSet.MinReadySeconds == 0 {
				t.Error("the old pod ends before the new one can have registered")
			}
		})
	}
}

// TestDevicePluginHasNoPrivileges: the plugin has no rights beyond root's own on two folders, the DRA driver on three
// and those of its account.
func TestDevicePluginHasNoPrivileges(t *testing.T) {
	cases := map[string]struct {
		account string
		folders []string
	}{
		"pool-x2": {PoolServiceAccount, []string{socketFolder, cdiFolder}},
		"pool-x2-dynamic": {
			DriverServiceAccount, []string{registryFolder, "/var/lib/kubelet/plugins/x2-dynamic.bypass.lowlatency.dev", cdiFolder},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := daemonSetOf(t, pools()[name]).Spec.Template.Spec
			hasToken := *pod.AutomountServiceAccountToken
			if pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.Containers) != 1 {
				t.Errorf("the pod shares the host's namespaces or has another container: %+v", pod)
			}
			if pod.ServiceAccountName != tc.account || hasToken != (tc.account == DriverServiceAccount) {
				t.Errorf("the pod has account %s, token %v", pod.ServiceAccountName, hasToken)
			}
			want := &corev1.SecurityContext{
				RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), Privileged: new(false), AllowPrivilegeEscalation: new(false),
				ReadOnlyRootFilesystem: new(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
			if diff := cmp.Diff(want, pod.Containers[0].SecurityContext); diff != "" {
				t.Errorf("security context (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.folders, writableFolders(pod.Containers[0])); diff != "" {
				t.Errorf("writable folders (-want +got):\n%s", diff)
			}
		})
	}
}

func writableFolders(container corev1.Container) []string {
	var writable []string
	for _, mount := range container.VolumeMounts {
		if !mount.ReadOnly {
			writable = append(writable, mount.MountPath)
		}
	}
	return writable
}

func daemonSetOf(t *testing.T, in PoolInput) *appsv1.DaemonSet {
	t.Helper()
	var set appsv1.DaemonSet
	object := find(t, renderPool(t, in), "DaemonSet")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		t.Fatal(err)
	}
	return &set
}

// TestDraining: the driver stays without a class, and is the same DaemonSet to Kubernetes throughout.
func TestDraining(t *testing.T) {
	in := pools()["pool-x2-dynamic"]
	serving := daemonSetOf(t, in)
	in.Pool.Spec.Allocation, in.Draining = "", true
	draining := daemonSetOf(t, in)
	if objects := renderPool(t, in); len(objects) != 3 {
		t.Errorf("%d objects, want no DeviceClass", len(objects))
	}
	in.Draining = false
	for set, want := range map[*appsv1.DaemonSet][2]bool{serving: {true, false}, draining: {true, true}, daemonSetOf(t, in): {false, false}} {
		dynamic, drains := IsDriver(set)
		if dynamic != want[0] || drains != want[1] {
			t.Errorf("%v is driver %v, draining %v", set.Spec.Template.Spec.Containers[0].Args, dynamic, drains)
		}
		if diff := cmp.Diff(serving.Spec.Selector, set.Spec.Selector); diff != "" || set.Name != serving.Name {
			t.Errorf("the DaemonSet cannot become the other:\n%s", diff)
		}
	}
}

// TestNameless: the class serves claims before it serves the name of the resource, and is the same but for that.
func TestNameless(t *testing.T) {
	in := pools()["pool-x2-dynamic"]
	named := find(t, renderPool(t, in), "DeviceClass")
	in.Nameless = true
	nameless := find(t, renderPool(t, in), "DeviceClass")
	name, found, err := unstructured.NestedString(named.Object, "spec", "extendedResourceName")
	if err != nil || !found || name != in.Pool.Spec.ResourceName {
		t.Errorf("the class has the name %q: %v, %v", name, found, err)
	}
	unstructured.RemoveNestedField(named.Object, "spec", "extendedResourceName")
	if diff := cmp.Diff(named, nameless); diff != "" {
		t.Errorf("nameless class (-want +got):\n%s", diff)
	}
}

// pluginOf is the pod of a pool's device plugin.
func pluginOf(t *testing.T, pool string) corev1.PodSpec {
	t.Helper()
	var set appsv1.DaemonSet
	object := find(t, renderPool(t, pools()[pool]), "DaemonSet")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set); err != nil {
		t.Fatal(err)
	}
	return set.Spec.Template.Spec
}

// TestPluginOfSockets: only the plugin of stack AFXDP has the node's network and capabilities, and no privilege beyond.
func TestPluginOfSockets(t *testing.T) {
	plain, pod := pluginOf(t, "pool-x2").Containers[0], pluginOf(t, "pool-e810-sockets")
	container := pod.Containers[0]
	if !pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Errorf("network, PID and IPC of the host are %t, %t, %t", pod.HostNetwork, pod.HostPID, pod.HostIPC)
	}
	want := plain.SecurityContext.DeepCopy()
	want.Capabilities.Add = []corev1.Capability{"BPF", "IPC_LOCK", "NET_ADMIN", "NET_RAW"}
	if diff := cmp.Diff(want, container.SecurityContext); diff != "" {
		t.Errorf("security context (-want +got):\n%s", diff)
	}
	added := slices.Clone(container.VolumeMounts[len(container.VolumeMounts)-2:])
	wantAdded := []corev1.VolumeMount{{Name: "afxdp", MountPath: afxdp.DefaultFolder}, {Name: "bpf", MountPath: "/sys/fs/bpf"}}
	if diff := cmp.Diff(wantAdded, added); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(afxdp.DefaultPins, "/sys/fs/bpf/") {
		t.Errorf("pins are in %s, which is not mounted", afxdp.DefaultPins)
	}
}

// TestPathsOfSockets: what a container is given is mounted from the path that the plugin sees.
func TestPathsOfSockets(t *testing.T) {
	volumes := map[string]string{}
	pod := pluginOf(t, "pool-e810-sockets")
	for _, volume := range pod.Volumes {
		if volume.HostPath != nil {
			volumes[volume.Name] = volume.HostPath.Path
		}
	}
	for _, mount := range pod.Containers[0].VolumeMounts {
		if path, isHosts := volumes[mount.Name]; isHosts && !mount.ReadOnly && path != mount.MountPath {
			t.Errorf("%s of the host is mounted at %s", path, mount.MountPath)
		}
	}
}

// TestNetworkAttachments compares the CNI configuration for each type.
func TestNetworkAttachments(t *testing.T) {
	const none = v1alpha1.AddressesNone
	cases := map[string]struct {
		attachment v1alpha1.NetworkAttachmentSpec
		want       string
	}{
		"a device of the host": {
			v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice},
			`{"cniVersion":"1.0.0","name":"x2","type":"host-device","capabilities":{"ips":true},"ipam":{"type":"static"}}`,
		},
		"a virtual function without address": {
			v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentSRIOV, Addresses: none},
			`{"cniVersion":"1.0.0","name":"x2","type":"sriov"}`,
		},
		"a virtual function with all settings": {
			v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentSRIOV, Addresses: none, VirtualFunction: &v1alpha1.VirtualFunctionSettings{
				VLAN: 100, VLANPriority: 3, Trust: v1alpha1.On, SpoofCheck: v1alpha1.Off, LinkState: v1alpha1.LinkStateEnabled,
				MinimumTransmitMegabits: 100, MaximumTransmitMegabits: 10000,
			}},
			`{"cniVersion":"1.0.0","name":"x2","type":"sriov","vlan":100,"vlanQoS":3,"spoofchk":"off","trust":"on","link_state":"enable",` +
				`"min_tx_rate":100,"max_tx_rate":10000}`,
		},
		"a virtual function with one setting": {
			v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentSRIOV, Addresses: none, VirtualFunction: &v1alpha1.VirtualFunctionSettings{
				LinkState: v1alpha1.LinkStateAuto,
			}},
			`{"cniVersion":"1.0.0","name":"x2","type":"sriov","link_state":"auto"}`,
		},
		"macvlan": {
			v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentMACVLAN, ParentInterface: "ens1f0", Addresses: none},
			`{"cniVersion":"1.0.0","name":"x2","type":"macvlan","master":"ens1f0","mode":"bridge"}`,
		},
		"ipvlan": {
			v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentIPVLAN, ParentInterface: "ens1f0", Addresses: v1alpha1.AddressesStatic},
			`{"cniVersion":"1.0.0","name":"x2","type":"ipvlan","master":"ens1f0","mode":"l2","capabilities":{"ips":true},"ipam":{"type":"static"}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := pools()["pool-x2"]
			in.Pool.Spec.Sharing = v1alpha1.SharingSpec{}
			tc.attachment.Namespaces = []string{"trading"}
			in.Pool.Spec.NetworkAttachment = &tc.attachment
			object := find(t, renderPool(t, in), "NetworkAttachmentDefinition")
			got, _, err := unstructured.NestedString(object.Object, "spec", "config")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want +got):\n%s", diff)
			}
			if got := object.GetAnnotations()[annotationResourceName]; got != "lowlatency.dev/x2" {
				t.Errorf("resource name %q", got)
			}
		})
	}
}

// TestPoolsThatCannotBeRendered: an error names what is wrong.
func TestPoolsThatCannotBeRendered(t *testing.T) {
	attach := func(attachment v1alpha1.NetworkAttachmentSpec) func(*PoolInput) {
		return func(in *PoolInput) {
			attachment.Namespaces = []string{"trading"}
			in.Pool.Spec.NetworkAttachment = &attachment
		}
	}
	cases := map[string]struct {
		change func(*PoolInput)
		want   string
	}{
		"no pool":            {func(in *PoolInput) { in.Pool = nil }, "without a BypassNICPool"},
		"no image":           {func(in *PoolInput) { in.Image = "" }, "the image of the device plugin is not known"},
		"a name with spaces": {func(in *PoolInput) { in.Pool.Name, in.Config.Name = "a b", "a b" }, `"a b"`},
		"another pool":       {func(in *PoolInput) { in.Config.Name = "other" }, `that of pool "other"`},
		"no namespace":       {func(in *PoolInput) { in.AgentNamespace = "" }, "agents' namespace"},
		"one namespace":      {func(in *PoolInput) { in.AgentNamespace = in.OperatorNamespace }, "share the namespace"},
		"a bad resource":     {func(in *PoolInput) { in.Pool.Spec.ResourceName = "a/b/c" }, "resource name"},
		"a bad label": {func(in *PoolInput) {
			in.Pool.Spec.NodeSelector.MatchLabels = v1alpha1.Labels{"a": "b c"}
		}, "spec.nodeSelector a"},
		"an unknown attachment":   {attach(v1alpha1.NetworkAttachmentSpec{Type: "Tunnel"}), `"Tunnel" is not known`},
		"a shared NIC in one pod": {attach(v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice}), "choose MACVLAN, IPVLAN"},
		"ipvlan without address": {attach(v1alpha1.NetworkAttachmentSpec{
			Type: v1alpha1.AttachmentIPVLAN, ParentInterface: "ens1f0", Addresses: v1alpha1.AddressesNone,
		}), "needs spec.networkAttachment.addresses Static"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := pools()["pool-x2"]
			tc.change(&in)
			objects, err := PoolObjects(in)
			if err == nil || !strings.Contains(err.Error(), tc.want) || objects != nil {
				t.Errorf("%d objects, error %v, want %q", len(objects), err, tc.want)
			}
		})
	}
}
