// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func TestDevicePluginRefusesBadFlags(t *testing.T) {
	good := []string{"--pool-file", "/pool.json", "--node-name", "worker-1"}
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"no pool":          {[]string{"--pool-file", ""}, "set --pool-file"},
		"no node":          {[]string{"--node-name", ""}, "set --node-name"},
		"no interval":      {[]string{"--interval", "0s"}, "--interval 0s is not positive"},
		"no address":       {[]string{"--host-ip", "192.0.2.1,worker-1"}, `"worker-1", which is no IP address`},
		"kubelet is away":  {[]string{"--kubelet-dir", "/nowhere"}, "/nowhere/device-plugins"},
		"host is writable": {[]string{"--root", "/"}, "the host is mounted writable at /"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(slices.Concat([]string{"device-plugin"}, good, tc.arguments))
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestDevicePluginFlags(t *testing.T) {
	flags := &devicePluginFlags{
		NodeFlags: process.NodeFlags{NodeName: "worker-1", Root: t.TempDir(), HostIP: "192.0.2.1, 2001:db8::1,"},
		poolFile:  filepath.Join("etc", "pool.json"), kubeletFolder: "kubelet", cdiFolder: "cdi", interval: 1,
	}
	plugin, err := flags.plugin()
	if err != nil {
		t.Fatal(err)
	}
	if plugin.PoolFile != flags.poolFile || plugin.KubeletFolder != "kubelet" || plugin.CDIFolder != "cdi" || plugin.Interval != 1 {
		t.Errorf("plugin is %+v", plugin)
	}
	if _, err := plugin.Evaluate(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that there is no pool", err)
	}
}

// TestRenderedDevicePluginHandsOutNICs runs what the operator puts into the DaemonSet of a pool: the arguments, the
// environment and the file, on a host that works. Every NIC must then be healthy.
func TestRenderedDevicePluginHandsOutNICs(t *testing.T) {
	machine := hosttree.Xeon()
	machine.Onload = hosttree.NewOnload()
	root := t.TempDir()
	if err := machine.Write(root); err != nil {
		t.Fatal(err)
	}
	container, content := renderedPlugin(t)
	setEnvironment(t, container)
	poolFile := filepath.Join(t.TempDir(), "pool.json")
	if err := os.WriteFile(poolFile, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	arguments := make([]string, 0, len(container.Args))
	for _, argument := range container.Args[1:] {
		arguments = append(arguments, os.Expand(strings.ReplaceAll(argument, "$(NODE_NAME)", "${NODE_NAME}"), os.Getenv))
	}
	flags := &devicePluginFlags{}
	set := pflag.NewFlagSet(container.Args[0], pflag.ContinueOnError)
	flags.register(set)
	if err := set.Parse(append(arguments, "--root="+root, "--pool-file="+poolFile)); err != nil {
		t.Fatal(err)
	}
	plugin, err := flags.plugin()
	if err != nil {
		t.Fatal(err)
	}
	reading, err := plugin.Evaluate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(reading.Devices) != 2 {
		t.Fatalf("found %d NICs, want 2", len(reading.Devices))
	}
	for _, device := range reading.Devices {
		if device.Health != v1alpha1.NICHealthy {
			t.Errorf("NIC %s is %s: %s", device.NIC.PCIAddress, device.Health, device.Reasons)
		}
	}
}

// renderedPlugin is the container of the device plugin, and the content of the file that it reads.
func renderedPlugin(t *testing.T) (corev1.Container, string) {
	t.Helper()
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "x2", Generation: 1}}
	pool.Spec = v1alpha1.BypassNICPoolSpec{
		NICs: []v1alpha1.NICSelector{{Vendor: "1924"}},
		Stack: v1alpha1.BypassStack{Type: v1alpha1.StackOnload, Onload: &v1alpha1.OnloadStack{
			UserSpace: v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceHostPath, HostPath: "/opt/onload"},
		}},
		ResourceName: "lowlatency.dev/x2",
	}
	objects, err := manifests.PoolObjects(manifests.PoolInput{
		Pool: pool, Config: bypass.Pool{Name: "x2", Generation: 1, Spec: pool.Spec},
		Image: "operator:v1", OperatorNamespace: "operator", AgentNamespace: "agents",
	})
	if err != nil {
		t.Fatal(err)
	}
	var daemonSet appsv1.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[2].Object, &daemonSet); err != nil {
		t.Fatal(err)
	}
	content, _, err := unstructured.NestedString(objects[1].Object, "data", v1alpha1.PoolKey)
	if err != nil {
		t.Fatal(err)
	}
	return daemonSet.Spec.Template.Spec.Containers[0], content
}

// setEnvironment gives this process the environment of the container on a node.
func setEnvironment(t *testing.T, container corev1.Container) {
	t.Helper()
	for _, variable := range container.Env {
		value := variable.Value
		if variable.ValueFrom != nil {
			value = map[string]string{"spec.nodeName": "worker-1", "status.hostIPs": "192.0.2.1"}[variable.ValueFrom.FieldRef.FieldPath]
		}
		t.Setenv(variable.Name, value)
	}
}
