// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

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

// filesOf are the files that a MachineConfig puts on a host, by path.
func filesOf(t *testing.T, config *mcfgv1.MachineConfig) map[string]string {
	t.Helper()
	parsed, err := parseIgnition(config)
	if err != nil {
		t.Fatalf("%s is not valid Ignition: %v", config.Name, err)
	}
	files, err := configurationFiles(parsed)
	if err != nil {
		t.Fatalf("reading the files of %s: %v", config.Name, err)
	}
	contents := map[string]string{}
	for path, file := range files {
		contents[path] = string(file.content)
	}
	return contents
}

func renderedPool(t *testing.T, configs ...mcfgv1.MachineConfig) *mcfgv1.MachineConfig {
	t.Helper()
	rendered, err := RenderPool("fast", configs)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	return rendered
}

func TestRenderPool(t *testing.T) {
	low := machineConfig("50-a", "realtime", `{"ignition":{"version":"3.2.0"},"storage":{"files":[{"path":"/etc/x","contents":{"source":"data:,low"}}]}}`, "a=1", "b=2")
	high := machineConfig("60-b", "default", `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/x","contents":{"source":"data:,high"}},{"path":"/etc/y","contents":{"source":"data:,y"}}]}}`, "c")
	bare := machineConfig("00-worker", "", "")
	rendered := renderedPool(t, high, bare, low)
	if diff := cmp.Diff([]string{"a=1", "b=2", "c"}, rendered.Spec.KernelArguments); diff != "" {
		t.Errorf("kernel arguments (-want +got):\n%s", diff)
	}
	if rendered.Spec.KernelType != "realtime" {
		t.Errorf("kernel type %q, want realtime", rendered.Spec.KernelType)
	}
	if diff := cmp.Diff(map[string]string{"/etc/x": "high", "/etc/y": "y"}, filesOf(t, rendered)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if again := renderedPool(t, low, high, bare); again.Name != rendered.Name {
		t.Errorf("the order in which MachineConfigs are listed changed the name: %q, then %q", rendered.Name, again.Name)
	}
	high.Spec.KernelArguments = []string{"d"}
	if other := renderedPool(t, low, high, bare); other.Name == rendered.Name {
		t.Errorf("another argument did not change the name %q", other.Name)
	}
}

func TestRenderPoolRefusesBrokenIgnition(t *testing.T) {
	_, err := RenderPool("fast", []mcfgv1.MachineConfig{machineConfig("50-broken", "", `{"ignition":{"version":"99.0.0"}}`)})
	if err == nil || !strings.Contains(err.Error(), `"50-broken"`) {
		t.Errorf("error %v does not name the MachineConfig", err)
	}
}

func TestGeneratedKubelet(t *testing.T) {
	config := &mcfgv1.KubeletConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "lowlatency-fast", UID: "u"},
		Spec:       mcfgv1.KubeletConfigSpec{KubeletConfig: &runtime.RawExtension{Raw: []byte(`{"maxPods":10,"cpuManagerPolicy":"static"}`)}},
	}
	generated, err := GeneratedKubelet(config, "fast")
	if err != nil {
		t.Fatalf("generating: %v", err)
	}
	if generated.Name != "99-fast-generated-kubelet" || generated.Labels[mcfgv1.MachineConfigRoleLabelKey] != "fast" {
		t.Errorf("name %q and labels %v", generated.Name, generated.Labels)
	}
	var kubelet map[string]any
	if err := json.Unmarshal([]byte(filesOf(t, generated)[kubeletConfigPath]), &kubelet); err != nil {
		t.Fatalf("reading the kubelet configuration: %v", err)
	}
	want := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cgroupDriver": "systemd",
		"rotateCertificates": true, "maxPods": float64(10), "cpuManagerPolicy": "static",
	}
	if diff := cmp.Diff(want, kubelet); diff != "" {
		t.Errorf("the platform's settings with the KubeletConfig over them (-want +got):\n%s", diff)
	}
	config.Spec.KubeletConfig.Raw = []byte(`{`)
	if _, err := GeneratedKubelet(config, "fast"); err == nil || !strings.Contains(err.Error(), `KubeletConfig "lowlatency-fast"`) {
		t.Errorf("error %v does not name the KubeletConfig", err)
	}
}
