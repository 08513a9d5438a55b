// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package confinement

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/test/confinement/attempts"
)

// pluginOf is the pod that hands out the NICs of a pool with Onload from a folder of the node.
func pluginOf(t *testing.T, allocation v1alpha1.AllocationType) corev1.PodSpec {
	t.Helper()
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2"}, Spec: v1alpha1.BypassNICPoolSpec{
		NICs: []v1alpha1.NICSelector{{Vendor: "1924"}}, ResourceName: "lowlatency.dev/x2", Allocation: allocation,
		Stack: v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
			UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"}}},
	}}
	objects, err := manifests.PoolObjects(manifests.PoolInput{
		Pool: pool, Config: bypass.Pool{Name: pool.Name, Spec: pool.Spec}, Image: "operator:v1", OperatorNamespace: "system", AgentNamespace: "agents",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "DaemonSet" {
			continue
		}
		var daemonSet appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &daemonSet); err != nil {
			t.Fatal(err)
		}
		return daemonSet.Spec.Template.Spec
	}
	t.Fatal("there is no DaemonSet")
	return corev1.PodSpec{}
}

// inPlugin tries everything where the host stands for the container, and what is mounted under its own path there.
func inPlugin(t *testing.T, root string, pod corev1.PodSpec, all []attempts.Trial) []string {
	t.Helper()
	container := contain(t, root, pod)
	said := outcomes(t, container, all)
	for i, one := range all {
		isBelow := func(mount corev1.VolumeMount) bool { return strings.HasPrefix(one.Path, mount.MountPath+"/") }
		if said[i] != "" && slices.ContainsFunc(pod.Containers[0].VolumeMounts, isBelow) {
			said[i] = runAs[string](t, identity{}, "attempt", container, one.Way, one.Path)
		}
	}
	return said
}

// TestAttemptsOfPlugins: what device plugins and DRA drivers could do with all of the host mounted, they cannot with the folders
// that they need. What is left is what they are for: to register with the kubelet.
func TestAttemptsOfPlugins(t *testing.T) {
	root := realHost(t)
	all := attempts.Files()
	needed := map[v1alpha1.AllocationType]string{
		v1alpha1.AllocationDevicePlugin: "/var/lib/kubelet/device-plugins/kubelet.sock",
		v1alpha1.AllocationDynamic:      "/var/lib/kubelet/plugins_registry/csi.sock",
	}
	before := inPlugin(t, root, wholeHost(), all)
	columns := map[v1alpha1.AllocationType][]string{}
	for mode, socket := range needed {
		columns[mode] = inPlugin(t, root, pluginOf(t, mode), all)
		for i, one := range all {
			if isNeeded := one.Path == socket; (columns[mode][i] == "") != isNeeded {
				t.Errorf("allocation %s: %s %s: %s", mode, one.Way, one.Path, outcome(columns[mode][i]))
			}
		}
	}
	table := make([][]string, 0, 1+len(all))
	table = append(table, []string{"ATTEMPTED BY WHO HANDS OUT NICS", "ALL OF / READ-ONLY", "DEVICE PLUGIN", "DRA DRIVER"})
	for i, one := range all {
		table = append(table, []string{
			one.String(), outcome(before[i]), outcome(columns[v1alpha1.AllocationDevicePlugin][i]), outcome(columns[v1alpha1.AllocationDynamic][i]),
		})
	}
	show(t, table)
	if !slices.Contains(before, "") {
		t.Error("nothing was possible before either, so nothing is shown")
	}
}

// TestPluginsSeeTheirNICs: what is read of NICs and their stack is the same with the folders as with all of the host.
func TestPluginsSeeTheirNICs(t *testing.T) {
	machine := hosttree.Xeon()
	machine.Onload = hosttree.NewOnload()
	root := folderFor(t, "simulated")
	if err := machine.Write(root); err != nil {
		t.Fatal(err)
	}
	furnish(t, root)
	put(t, filepath.Join(root, "dev/null"), "")
	whole := filepath.Join(contain(t, root, wholeHost()), "host")
	for _, mode := range []v1alpha1.AllocationType{v1alpha1.AllocationDevicePlugin, v1alpha1.AllocationDynamic} {
		container := contain(t, root, pluginOf(t, mode))
		if diff := runAs[string](t, identity{}, "nics", whole, filepath.Join(container, "host")); diff != "" {
			t.Errorf("allocation %s (-all of / +its folders):\n%s", mode, diff)
		}
		if said := runAs[string](t, identity{}, "attempt", filepath.Join(container, "host"), "connect", podResources); said != "" {
			t.Errorf("allocation %s: PodResources cannot be asked: %s", mode, said)
		}
		for _, mount := range pluginOf(t, mode).Containers[0].VolumeMounts {
			if strings.HasPrefix(mount.MountPath, "/host") && !mount.ReadOnly {
				t.Errorf("allocation %s: %s is writable", mode, mount.MountPath)
			}
		}
	}
}
