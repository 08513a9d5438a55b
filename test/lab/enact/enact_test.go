// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// settleLimit bounds how long a machine takes to verify itself or to be back, with its reboots.
const settleLimit = 20 * time.Minute

// guardProgram is where the test puts the program before it installs itself.
const guardProgram = "/root/lowlatency-guard"

// host is the machine with what the test knows of it.
type host struct {
	t       *testing.T
	machine *lab.Machine
	rows    [][]string
	// began is when the next row began, failed whether the test had failed then.
	began  time.Time
	failed bool
	// uptimes are those of the states that were kept, by their names.
	uptimes map[string]time.Duration
}

// row says what was done, what came of it, and more about it.
func (h *host) row(what, outcome, detail string) {
	h.t.Logf("%s | %s | %s", what, outcome, detail)
	h.rows = append(h.rows, []string{what, outcome, detail})
	if h.t.Failed() && !h.failed {
		outcome = "FAILED: " + outcome
	}
	record(h.t, what, outcome, time.Since(h.began))
	h.began, h.failed = time.Now(), h.t.Failed()
}

// ctx is the test's.
func (h *host) ctx() context.Context { return h.t.Context() }

func (h *host) run(command string) string {
	h.t.Helper()
	out, err := h.machine.Run(h.ctx(), command)
	if err != nil {
		h.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// runUntilReboot runs a command that restarts the machine: the session may end with it before the status of the command has come.
func (h *host) runUntilReboot(command string) string {
	h.t.Helper()
	result, err := h.machine.Execute(h.ctx(), command)
	if _, isCut := errors.AsType[*ssh.ExitMissingError](err); !isCut && (err != nil || result.ExitCode != 0) {
		h.t.Fatalf("%s: %+v, %v", command, result, err)
	}
	return strings.TrimSpace(result.Stdout)
}

// start boots a small machine and puts the guard on it.
func start(t *testing.T) *host {
	t.Helper()
	return startMachine(t, lab.Spec{
		Name: "enact", Boot: lab.Boot{Kernel: lab.Installed}, Files: t.TempDir(),
		Topology: lab.Topology{Packages: 1, CoresPerPackage: 2, ThreadsPerCore: 1, MebibytesPerNode: 768},
	}, "cmd/lowlatency-guard")
}

// startMachine boots a machine and puts programs into the home of root.
func startMachine(t *testing.T, spec lab.Spec, packages ...string) *host {
	t.Helper()
	image, err := lab.OpenBootableImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if err := lab.BuildPrograms(t.Context(), spec.Files, packages...); err != nil {
		t.Fatal(err)
	}
	machine, err := image.Start(t.Context(), spec, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := machine.Stop(); err != nil {
			t.Error(err)
		}
	})
	h := &host{t: t, machine: machine, began: time.Now(), uptimes: map[string]time.Duration{}}
	for _, program := range packages {
		h.run("cp " + lab.FilesPath + "/" + path.Base(program) + " /root/")
	}
	h.run("umount " + lab.FilesPath)
	return h
}

// write puts operations into a file of the machine.
func (h *host) write(name string, operations []operation.Operation) string {
	h.t.Helper()
	text, err := json.Marshal(map[string]any{"operations": operations})
	if err != nil {
		h.t.Fatal(err)
	}
	file := "/root/" + name + ".json"
	if err := h.machine.WriteFile(h.ctx(), file, string(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	return file
}

func (h *host) status() guard.Status {
	h.t.Helper()
	result, err := h.machine.Execute(h.ctx(), guardProgram+" status -o json")
	if err != nil {
		h.t.Fatal(err)
	}
	var status guard.Status
	if err := json.Unmarshal([]byte(result.Stdout), &status); err != nil {
		h.t.Fatalf("status: %v: %s%s", err, result.Stdout, result.Stderr)
	}
	return status
}

// settled waits until nothing is being changed, and the machine does not reboot for it.
func (h *host) settled() guard.Status {
	h.t.Helper()
	for end := time.Now().Add(settleLimit); time.Now().Before(end); time.Sleep(5 * time.Second) {
		before, err := h.machine.BootID(h.ctx())
		if err != nil {
			if err := h.machine.WaitReboot(h.ctx(), "none"); err != nil {
				h.t.Fatal(err)
			}
			continue
		}
		status, quiet := h.quiet()
		if again, err := h.machine.BootID(h.ctx()); quiet && err == nil && again == before {
			return status
		}
	}
	h.t.Fatalf("the machine does not settle: %+v\n%s", h.status(), h.machine.Console(20))
	return guard.Status{}
}

// quiet tells that nothing is being changed on a machine that has started and is not about to stop.
func (h *host) quiet() (guard.Status, bool) {
	var status guard.Status
	result, err := h.machine.Execute(h.ctx(), guardProgram+" status -o json; systemctl is-system-running")
	if err != nil || json.NewDecoder(strings.NewReader(result.Stdout)).Decode(&status) != nil {
		return status, false
	}
	state := result.Stdout[strings.LastIndex(strings.TrimSpace(result.Stdout), "\n")+1:]
	if strings.Contains(state, "ing") && !strings.Contains(state, "running") {
		return status, false
	}
	return status, (status.Changing == "" || status.Stage == journal.Reverted) && h.wellStarted(status)
}

// wellStarted tells that the running kernel is the one that the status speaks of.
func (h *host) wellStarted(status guard.Status) bool {
	// It may reboot by itself between two looks.
	result, err := h.machine.Execute(h.ctx(), "cat /proc/cmdline")
	if err != nil {
		return false
	}
	line := strings.Fields(result.Stdout)
	return operation.MarkerOf(line) == operation.MarkerOf(status.Arguments)
}

func tuned(value string) []operation.Operation {
	return []operation.Operation{
		operation.PutFile("/etc/sysctl.d/99-lowlatency-lab.conf", 0o644, "vm.stat_interval = "+value+"\n"),
		operation.PutFile("/etc/lowlatency/lab.env", 0o600, "VALUE="+value+"\n"),
		operation.PutUnit("lowlatency-lab.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n", operation.Enabled),
		operation.SetSysctl("vm.stat_interval", value),
		operation.AddKernelArguments("nohz_full=1", "rcu_nocbs=1", "panic=5"),
	}
}

// apply changes the machine, and waits until it has settled.
func (h *host) apply(file string) guard.Status {
	h.t.Helper()
	before, err := h.machine.BootID(h.ctx())
	if err != nil {
		h.t.Fatal(err)
	}
	out := h.runUntilReboot(guardProgram + " apply --yes " + file)
	h.t.Log(out)
	if strings.Contains(out, "reboots") {
		h.rebooted(before)
	}
	return h.settled()
}

func TestEnact(t *testing.T) {
	h := start(t)
	defer h.table()
	first := h.write("first", tuned("10"))

	t.Log(h.run("cat /proc/cmdline"))
	status := h.apply(first)
	line := h.run("cat /proc/cmdline")
	h.expect("arguments, files, unit, sysctl", status, operation.Hash(tuned("10")), "tried, verified, kept: "+line)
	if isolated := h.run("cat /sys/devices/system/cpu/nohz_full"); isolated != "1" {
		t.Errorf("nohz_full is %q", isolated)
	}
	if value := h.run("cat /proc/sys/vm/stat_interval"); value != "10" {
		t.Errorf("vm.stat_interval is %q", value)
	}

	boot, _ := h.machine.BootID(h.ctx())
	const interrupts = "/proc/irq/default_smp_affinity"
	live := append(tuned("20"), operation.SetSysfs(interrupts, "1"))
	status = h.apply(h.write("live", live))
	again, _ := h.machine.BootID(h.ctx())
	h.expect("a sysctl, its file, and where new interrupts go", status, operation.Hash(live), "no reboot: "+strconv.FormatBool(boot == again))
	if boot != again || h.run("cat /proc/sys/vm/stat_interval") != "20" || h.run("cat "+interrupts) != "1" {
		t.Error("a change of a sysctl and of interrupts rebooted the machine, or is not in force")
	}
}

// expect adds a row and asserts what is in force.
func (h *host) expect(what string, status guard.Status, hash, note string) {
	h.t.Helper()
	if status.InForce != hash {
		h.t.Errorf("%s: %+v, want %s in force; the console ends with\n%s", what, status, hash, h.machine.Console(10))
	}
	h.row(what, "in force: "+status.InForce, note)
}

// table prints what happened.
func (h *host) table() {
	printTable(append([][]string{{"WHAT WAS DONE", "OUTCOME", "DETAIL"}}, h.rows...))
}

func printTable(rows [][]string) {
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()
}
