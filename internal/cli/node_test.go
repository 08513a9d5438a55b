// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/hosttree"
)

// troubled is a host that was booted as planned and then went wrong: an interrupt on an isolated CPU, a NIC without link,
// fewer hugepages than planned. Two containers own CPUs.
func troubled(t *testing.T) (dir, file string) {
	t.Helper()
	machine := onloadHost("trading-1")
	dir = tree(t, machine)
	file = write(t, "wanted.yaml", profileText+"---\n"+poolText)
	var plans []view.Plan
	if err := json.Unmarshal([]byte(run(t, "", "plan", "-f", file, "--root", dir, "-o", "json").out), &plans); err != nil {
		t.Fatal(err)
	}
	line := machine.BaseCommandLine() + " " + strings.Join(plans[0].KernelArguments, " ")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(hosttree.Boot(dir, hosttree.BootOptions{CommandLine: line}))
	irq, err := hosttree.FindIRQ(dir, "ens1f0np0")
	check(err)
	check(hosttree.MoveIRQ(dir, irq, cpus.Of(6)))
	check(hosttree.SetCarrier(dir, "ens4f0np0", false))
	check(hosttree.WriteSetting(dir, "/sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages", "3"))
	check(os.WriteFile(filepath.Join(dir, "var/lib/kubelet/cpu_manager_state"), []byte(
		`{"policyName":"static","defaultCpuSet":"0-1,4-5","entries":{"0d51f1ce-7c11-4bd4":{"feed":"2"},"7e1c9a33-02aa-47f0":{"orders":"3,7"}},"checksum":1}`), 0o644))
	return dir, file
}

func TestNodeOfAHost(t *testing.T) {
	dir, file := troubled(t)
	for name, options := range map[string][]string{
		"node.txt": nil, "node.json": {"-o", "json"},
	} {
		got := run(t, "", append([]string{"node", "-f", file, "--root", dir, "--host-ip", nobody}, options...)...)
		if got.code != ExitFindings || got.err != "" {
			t.Errorf("exit code %d, standard error %q", got.code, got.err)
		}
		golden(t, name, got.out)
	}
}
