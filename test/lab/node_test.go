// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package lab_test

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// node is a machine of the lab with the project's programs.
type node struct {
	*lab.Machine
	t *testing.T
	// programs is the folder of the binaries on this machine.
	programs string
}

// startMachine boots a machine and puts the programs on it.
func startMachine(t *testing.T, spec lab.Spec, programs string) *node {
	t.Helper()
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	spec.Files = programs
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
	n.run("ln -s " + lab.FilesPath + "/* /usr/local/bin/")
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

// apply does what a platform does with a MachineConfig: files and units now, kernel and its arguments with a boot.
func (n *node) apply(c lab.Configuration, boot lab.Boot) {
	n.t.Helper()
	// What the plan's units are required by.
	c.Units = append(c.Units, lab.Unit{
		Name: "kubelet.service", Enabled: true,
		Content: "[Service]\nType=oneshot\nRemainAfterExit=true\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n",
	})
	n.must(n.Configure(n.t.Context(), c))
	n.must(n.Reboot(n.t.Context(), boot))
	// Services that set something have ended.
	n.run("systemctl is-system-running --wait || true; systemctl is-active kubelet.service")
}

// outcomeTable is what a test of the lab prints.
type outcomeTable struct {
	header string
	rows   []string
	since  time.Time
}

// add writes what a step showed and the time since the last row.
func (o *outcomeTable) add(columns ...string) {
	o.rows = append(o.rows, fmt.Sprintf("%s\t%.0f s", strings.Join(columns, "\t"), time.Since(o.since).Seconds()))
	o.since = time.Now()
}

func (o *outcomeTable) print() {
	writer := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(writer, "\n%s\tTIME\n%s\n\n", cmp.Or(o.header, "STEP\tOUTCOME"), strings.Join(o.rows, "\n"))
	_ = writer.Flush()
}

// TestImage builds the image where it is missing; it is what make lab-image runs.
func TestImage(t *testing.T) {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the image is in %s", image.Dir)
}
