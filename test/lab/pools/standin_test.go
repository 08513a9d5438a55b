// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/manifests"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	onloadStandin = "lowlatency.dev/onload-standin"
	// standinHost is the folder of the machine with the stand-ins.
	standinHost = "/var/lib/lab/standin-host"
	// otherVersion are modules that the user files do not belong to.
	otherVersion = "9.2.0.11"
)

// versions shows the version gate on stand-ins. No machine of the lab has a Solarflare NIC, so the device plugin of this
// pool looks at a folder with what the kernel shows of one, as recorded from a host with Onload; the device files
// are those of /dev/null. The plugin, the kubelet and the container are real.
func (s *scene) versions(t *testing.T) string {
	tree := t.TempDir()
	machine := hosttree.Xeon()
	machine.NICs = []hosttree.NIC{hosttree.SolarflareX2("ens1f0", "0000:3b:00.0", 0)}
	machine.Onload = hosttree.NewOnload()
	must(t, machine.Write(tree))
	must(t, hosttree.Boot(tree, hosttree.BootOptions{CommandLine: machine.BaseCommandLine()}))
	s.send(t, tree, ".")
	s.run(t, "cp -rT "+standinHost+"/opt/onload /opt/onload; for i in onload onload_epoll sfc_char; do mknod -m 666 /dev/$i c 1 3; done")
	s.deployStandin(t)
	s.waitAllocatable(t, onloadStandin, 1)
	pod := podSpec("standin", onloadStandin, 1, 1, 1)
	pod.Spec.Containers[0].Args = []string{"-devices=/dev/onload*,/opt/onload/usr/lib64/libonload.so"}
	got := s.said(t, s.createPod(t, pod))
	if preload := got.variable("LD_PRELOAD"); !strings.Contains(preload, "libonload.so") || got.Devices["/dev/onload"] != "open" {
		t.Errorf("the container has LD_PRELOAD %q and devices %v", preload, got.Devices)
	}
	s.remove(t, pod)
	must(t, hosttree.SetOnloadVersion(tree, otherVersion, strings.Repeat("0", 32)))
	s.send(t, tree, "proc/driver", "sys/module/onload")
	s.waitAllocatable(t, onloadStandin, 0)
	reason := s.unhealthy(t)
	must(t, hosttree.SetOnload(tree, hosttree.NewOnload()))
	s.send(t, tree, "proc/driver", "sys/module/onload")
	s.waitAllocatable(t, onloadStandin, 1)
	return "module " + otherVersion + ", user files " + hosttree.OnloadVersion + ": allocatable 0 (" + reason + "); same again: 1"
}

// unhealthy is what the device plugin says of the NIC.
func (s *scene) unhealthy(t *testing.T) string {
	t.Helper()
	plugin := s.plugin(t, "onload-standin")
	said := ""
	s.wait(t, "the plugin to name both versions", func(context.Context) (bool, string) {
		log := s.run(t, fmt.Sprintf("cat /var/log/pods/%s_%s_%s/device-plugin/*.log", plugin.Namespace, plugin.Name, plugin.UID))
		for line := range strings.Lines(log) {
			if strings.Contains(line, otherVersion) && strings.Contains(line, hosttree.OnloadVersion) {
				said = "both versions named"
				return true, ""
			}
		}
		return false, log
	})
	return said
}

// send copies folders of a host tree into the machine's.
func (s *scene) send(t *testing.T, tree string, folders ...string) {
	t.Helper()
	packed := filepath.Join(t.TempDir(), "tree.tar.gz")
	out, err := exec.CommandContext(t.Context(), "tar", append([]string{"-C", tree, "-czf", packed}, folders...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("packing the stand-ins: %v: %s", err, out)
	}
	must(t, s.machine.CopyTo(t.Context(), packed, "/root/tree.tar.gz"))
	s.run(t, "mkdir -p "+standinHost+" && tar -C "+standinHost+" -xzf /root/tree.tar.gz")
}

// deployStandin deploys the device plugin as the operator does, with another folder for its host.
func (s *scene) deployStandin(t *testing.T) {
	t.Helper()
	pool := &v1alpha1.BypassNICPool{}
	must(t, yaml.UnmarshalStrict(readFile(t, "onload-standin.yaml"), pool))
	objects, err := manifests.PoolObjects(manifests.PoolInput{
		Pool: pool, Config: bypass.Pool{Name: pool.Name, Generation: 1, Spec: pool.Spec}, Image: lab.OperatorImage,
		OperatorNamespace: operatorNamespace, AgentNamespace: agentNamespace,
	})
	must(t, err)
	for _, object := range objects {
		if object.GetKind() == "DaemonSet" {
			standinVolume(t, object)
		}
		s.create(t, object)
	}
}

// standinVolume leads what the plugin reads of the host, but for PodResources, to the stand-ins.
func standinVolume(t *testing.T, daemonSet *unstructured.Unstructured) {
	t.Helper()
	path := []string{"spec", "template", "spec", "volumes"}
	volumes, _, err := unstructured.NestedSlice(daemonSet.Object, path...)
	must(t, err)
	for i := range volumes {
		volume, ok := volumes[i].(map[string]any)
		if folder, isFolder := volume["hostPath"].(map[string]any); ok && isFolder && slices.Contains([]any{"proc", "sys", "dev", "user-space"}, volume["name"]) {
			volume["hostPath"] = map[string]any{"path": standinHost + folder["path"].(string), "type": string(corev1.HostPathDirectoryOrCreate)}
		}
	}
	must(t, unstructured.SetNestedSlice(daemonSet.Object, volumes, path...))
}
