// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// profilePath is in the machine.
const profilePath = "/root/profile.yaml"

// node is a machine of the lab with the project's programs.
type node struct {
	*lab.Machine
	t *testing.T
	// programs is the folder of the binaries on this machine.
	programs string
}

// nodePlan is the part of "kubectl-lowlatency plan -o json" that makes a host what it is to become.
type nodePlan struct {
	KernelArguments        []string
	Housekeeping, Isolated string
	Files                  []planFile
	Units                  []planUnit
	Sysctls, Sysfs         []struct{ Name, Value string }
}

type planFile struct{ Path, Mode, Content string }

type planUnit struct {
	Name, Content   string
	Enabled, Masked bool
	DropIns         map[string]string
}

// checked is the part of "kubectl-lowlatency check -o json" that the table is about.
type checked struct {
	Passed   []string
	Findings []struct{ Check, Outcome, Message, Observed string }
	Skipped  []struct{ Check, Reason string }
}

// outcomes by check; those that do not apply are "Skipped".
func (c checked) outcomes() map[string]string {
	all := map[string]string{}
	for _, check := range c.Passed {
		all[check] = "Passed"
	}
	for _, finding := range c.Findings {
		all[finding.Check] = finding.Outcome
	}
	for _, skip := range c.Skipped {
		all[skip.Check] = "Skipped"
	}
	return all
}

// finding is the message of a check, or "".
func (c checked) finding(check string) string {
	for _, finding := range c.Findings {
		if finding.Check == check {
			return finding.Message
		}
	}
	return ""
}

func twoNodes() lab.Spec {
	return lab.Spec{
		Name:     "lab",
		Topology: lab.Topology{Packages: 2, CoresPerPackage: 4, ThreadsPerCore: 1, NUMANodes: 2, MebibytesPerNode: 1536},
		NICs: []lab.NIC{
			{ID: "nic0", Model: lab.E1000e, NUMANode: 0},
			{ID: "nic1", Model: lab.E1000e, NUMANode: 1},
			{ID: "nic2", Model: lab.Virtio, NUMANode: 1},
		},
		Boot: lab.Boot{Kernel: lab.Standard},
	}
}

// startNode boots a machine and puts the programs and a profile on it.
func startNode(t *testing.T, spec lab.Spec, profile string) *node {
	t.Helper()
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	programs := buildPrograms(t)
	machine, err := image.Start(t.Context(), spec, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := machine.Stop(); err != nil {
			t.Error(err)
		}
	})
	n := &node{Machine: machine, t: t, programs: programs}
	for _, name := range []string{"kubectl-lowlatency", "lowlatency-operator"} {
		n.must(machine.CopyTo(t.Context(), filepath.Join(programs, name), "/usr/local/bin/"+name))
	}
	n.must(machine.CopyTo(t.Context(), profile, profilePath))
	return n
}

// buildPrograms builds the binaries as they are released: static.
func buildPrograms(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/",
		"github.com/lowlatency-dev/lowlatency-operator/cmd/...")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	return dir
}

func (n *node) must(err error) {
	n.t.Helper()
	if err != nil {
		n.t.Fatal(err)
	}
}

// run runs a command in the machine that must succeed.
func (n *node) run(command string) string {
	n.t.Helper()
	out, err := n.Run(n.t.Context(), command)
	n.must(err)
	return out
}

// snapshot takes a snapshot of the machine and returns its file on this one.
func (n *node) snapshot() string {
	n.t.Helper()
	n.run("kubectl-lowlatency snapshot -o /root/node.tar.gz")
	snapshot := filepath.Join(n.t.TempDir(), "node.tar.gz")
	n.must(n.CopyFrom(n.t.Context(), "/root/node.tar.gz", snapshot))
	return snapshot
}

// plan takes a snapshot of the machine and plans it here.
func (n *node) plan(profile string) nodePlan {
	n.t.Helper()
	command := exec.CommandContext(n.t.Context(), filepath.Join(n.programs, "kubectl-lowlatency"),
		"plan", "-f", profile, "--root", n.snapshot(), "-o", "json")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		n.t.Fatalf("planning the machine: %v\n%s%s", err, out, &stderr)
	}
	var plans []nodePlan
	n.must(json.Unmarshal(out, &plans))
	if len(plans) != 1 {
		n.t.Fatalf("%d plans for one machine: %s", len(plans), out)
	}
	return plans[0]
}

// apply does what a platform does with a plan: files, units and settings now, kernel arguments with a boot.
// TuneD's part, sysctls and files below /sys, is done by systemd-sysctl and systemd-tmpfiles.
func (n *node) apply(p nodePlan, kernel lab.Kernel) {
	n.t.Helper()
	write := func(path, content string, mode os.FileMode) {
		n.must(n.WriteFile(n.t.Context(), path, content, mode))
	}
	for _, file := range p.Files {
		var mode os.FileMode
		if _, err := fmt.Sscanf(file.Mode, "%o", &mode); err != nil {
			n.t.Fatalf("mode %q of %s: %v", file.Mode, file.Path, err)
		}
		write(file.Path, file.Content, mode)
	}
	var commands []string
	for _, unit := range p.Units {
		if unit.Content != "" {
			write("/etc/systemd/system/"+unit.Name, unit.Content, 0o644)
		}
		for name, content := range unit.DropIns {
			write("/etc/systemd/system/"+unit.Name+".d/"+name, content, 0o644)
		}
		if unit.Enabled {
			commands = append(commands, "systemctl enable "+unit.Name)
		}
		if unit.Masked {
			commands = append(commands, "systemctl mask "+unit.Name)
		}
	}
	var sysctls, sysfs strings.Builder
	for _, setting := range p.Sysctls {
		fmt.Fprintf(&sysctls, "-%s = %s\n", setting.Name, setting.Value)
	}
	for _, setting := range p.Sysfs {
		fmt.Fprintf(&sysfs, "w %s - - - - %s\n", setting.Name, setting.Value)
	}
	write("/etc/sysctl.d/99-plan.conf", sysctls.String(), 0o644)
	write("/etc/tmpfiles.d/plan.conf", sysfs.String(), 0o644)
	// What the plan's units are required by.
	write("/etc/systemd/system/kubelet.service", "[Service]\nType=oneshot\nRemainAfterExit=true\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", 0o644)
	n.run(strings.Join(append(commands, "systemctl enable kubelet.service"), "\n"))
	n.must(n.Reboot(n.t.Context(), lab.Boot{Kernel: kernel, Arguments: p.KernelArguments}))
	// Services that set something have ended.
	n.run("systemctl is-system-running --wait || true; systemctl is-active kubelet.service")
}

// check compares the running machine with its plan.
func (n *node) check(flags ...string) checked {
	n.t.Helper()
	command := "kubectl-lowlatency check -f " + profilePath + " --root / -o json " + strings.Join(flags, " ")
	result, err := n.Execute(n.t.Context(), command)
	n.must(err)
	if result.ExitCode > 1 {
		n.t.Fatalf("check ended with %d: %s", result.ExitCode, result.Stderr)
	}
	var all []checked
	n.must(json.Unmarshal([]byte(result.Stdout), &all))
	if len(all) != 1 {
		n.t.Fatalf("%d reports for one machine: %s", len(all), result.Stdout)
	}
	return all[0]
}

// TestImage builds the image where it is missing; it is what make lab-image runs.
func TestImage(t *testing.T) {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the image is in %s", image.Dir)
}
