// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package ordinaryhost_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
)

// TestAffinityIsForgotten: a kernel before 6.2 forgets systemd.cpu_affinity= as soon as the kubelet divides CPUs, and what the control groups
// have stays.
func TestAffinityIsForgotten(t *testing.T) {
	static := operation.PutKubeletDropIn("/var/lib/kubelet/kubelet.conf.d/90-lowlatency.conf", `{"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "cpuManagerPolicy": "static", "reservedSystemCPUs": "0-1"}`)
	folder := operation.PutDropIn("kubelet.service", "90-lowlatency.conf", "[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml --config-dir=/var/lib/kubelet/kubelet.conf.d\"\n")
	unit := operation.PutUnit("lowlatency-cpu-affinity.service", "[Service]\nExecStart=/usr/bin/systemctl set-property --runtime system.slice AllowedCPUs=0-1\n", operation.Enabled)
	arguments := operation.AddKernelArguments("systemd.cpu_affinity=0-1")
	newer := hosttree.Xeon()
	newer.KernelRelease = "6.12.95-amd64"
	cases := map[string]struct {
		machine    hosttree.Machine
		operations []operation.Operation
		isKept     bool
	}{
		"a kubelet that divides none": {hosttree.Xeon(), []operation.Operation{arguments}, true},
		"static CPU manager":          {hosttree.Xeon(), []operation.Operation{arguments, static, folder}, false},
		"control groups with CPUs":    {hosttree.Xeon(), []operation.Operation{arguments, static, folder, unit}, true},
		"Linux 6.12":                  {newer, []operation.Operation{arguments, static, folder}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h, err := ordinaryhost.Install(dir, tc.machine, ordinaryhost.Debian(), "", "")
			if err = errors.Join(err, h.BootWith(t.Context(), tc.operations)); err != nil {
				t.Fatal(err)
			}
			status, err := os.ReadFile(filepath.Join(dir, "proc/1/status"))
			if err != nil {
				t.Fatal(err)
			}
			if isKept := strings.Contains(string(status), "Cpus_allowed_list:\t0-1\n"); isKept != tc.isKept {
				t.Errorf("kept: %t, want %t\n%s", isKept, tc.isKept, status)
			}
		})
	}
}
