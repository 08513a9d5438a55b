// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func machineConfig(name, kernelType, ignition string, arguments ...string) mcfgv1.MachineConfig {
	return mcfgv1.MachineConfig{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: mcfgv1.MachineConfigSpec{
			KernelType: kernelType, KernelArguments: arguments, Config: runtime.RawExtension{Raw: []byte(ignition)},
		},
	}
}

func TestRenderPool(t *testing.T) {
	low := machineConfig("50-a", "realtime", `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/x","contents":{"source":"data:,low"}}]}}`, "a=1", "b=2")
	high := machineConfig("60-b", "default", `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/x","contents":{"source":"data:,high"}},{"path":"/etc/y","contents":{"source":"data:,y"}}]}}`, "c")
	bare := machineConfig("00-worker", "", "")
	rendered, err := renderPool("fast", []mcfgv1.MachineConfig{high, bare, low})
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	if diff := cmp.Diff([]string{"a=1", "b=2", "c"}, rendered.Spec.KernelArguments); diff != "" {
		t.Errorf("kernel arguments (-want +got):\n%s", diff)
	}
	if rendered.Spec.KernelType != "realtime" {
		t.Errorf("kernel type %q, want realtime", rendered.Spec.KernelType)
	}
	parsed, err := parseIgnition(rendered)
	if err != nil {
		t.Fatalf("the rendering is not valid Ignition: %v", err)
	}
	files, err := configurationFiles(parsed)
	if err != nil {
		t.Fatalf("reading the rendered files: %v", err)
	}
	got := map[string]string{}
	for path, file := range files {
		got[path] = string(file.content)
	}
	if diff := cmp.Diff(map[string]string{"/etc/x": "high", "/etc/y": "y"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	again, err := renderPool("fast", []mcfgv1.MachineConfig{low, high, bare})
	if err != nil || again.Name != rendered.Name {
		t.Errorf("the order in which MachineConfigs are listed changed the name: %q, then %q (%v)", rendered.Name, again.Name, err)
	}
	high.Spec.KernelArguments = []string{"d"}
	other, err := renderPool("fast", []mcfgv1.MachineConfig{low, high, bare})
	if err != nil || other.Name == rendered.Name {
		t.Errorf("another argument did not change the name %q (%v)", other.Name, err)
	}
}

func TestRenderPoolRefusesBrokenIgnition(t *testing.T) {
	_, err := renderPool("fast", []mcfgv1.MachineConfig{machineConfig("50-broken", "", `{"ignition":{"version":"99.0.0"}}`)})
	if err == nil || !strings.Contains(err.Error(), `"50-broken"`) {
		t.Errorf("error %v does not name the MachineConfig", err)
	}
}

func TestGeneratedKubelet(t *testing.T) {
	config := &mcfgv1.KubeletConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "lowlatency-fast", UID: "u"},
		Spec:       mcfgv1.KubeletConfigSpec{KubeletConfig: &runtime.RawExtension{Raw: []byte(`{"maxPods":10,"cpuManagerPolicy":"static"}`)}},
	}
	generated, err := generatedKubelet(config, "fast")
	if err != nil {
		t.Fatalf("generating: %v", err)
	}
	if generated.Name != "99-fast-generated-kubelet" || generated.Labels[mcfgv1.MachineConfigRoleLabelKey] != "fast" {
		t.Errorf("name %q and labels %v", generated.Name, generated.Labels)
	}
	parsed, err := parseIgnition(generated)
	if err != nil {
		t.Fatalf("reading what was generated: %v", err)
	}
	files, err := configurationFiles(parsed)
	if err != nil {
		t.Fatalf("reading the files: %v", err)
	}
	var kubelet map[string]any
	if err := json.Unmarshal(files[kubeletConfigPath].content, &kubelet); err != nil {
		t.Fatalf("reading the kubelet configuration: %v", err)
	}
	if kubelet["maxPods"] != float64(10) || kubelet["cpuManagerPolicy"] != "static" || kubelet["cgroupDriver"] != "systemd" {
		t.Errorf("kubelet configuration %v does not lay the KubeletConfig over the platform's own settings", kubelet)
	}
	config.Spec.KubeletConfig.Raw = []byte(`{`)
	if _, err := generatedKubelet(config, "fast"); err == nil || !strings.Contains(err.Error(), `KubeletConfig "lowlatency-fast"`) {
		t.Errorf("error %v does not name the KubeletConfig", err)
	}
}
