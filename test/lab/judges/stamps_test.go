// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package judges

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	// nicAddress is that of the NIC that has its turn, and peerAddress that of the NIC of the server, in a network namespace of its own.
	nicAddress, peerAddress = "192.0.2.10", "192.0.2.20"
	// Settings of stamps as hwstamp_ctl prints them.
	stampsOff, stampsOfAll = "tx_type 0\nrx_filter 0", "tx_type 1\nrx_filter 1"
)

// stampedMachine is a machine with a NIC of each model.
type stampedMachine struct {
	*lab.Machine
	t *testing.T
}

// TestStampsOfNICs measures by emulated NICs whose drivers have stamps of the NIC: make lab-stamps. It asks ethtool and hwstamp_ctl, which are others' programs, what the
// NIC can and how it is set, and holds against it what the command says. The driver of the e1000e can stamp each message, and QEMU's e1000e does not; that of the igb, an 82576,
// stamps messages of PTP alone. So no NIC here has stamps to divide a time by: that the command says so, and takes none of the kernel instead, is what is judged.
func TestStampsOfNICs(t *testing.T) {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	machine := start(t, image, lab.Spec{
		Name:     "stamps",
		Topology: lab.Topology{Packages: 1, CoresPerPackage: 2, ThreadsPerCore: 1},
		NICs:     []lab.NIC{{ID: "e1000e", Model: lab.E1000e}, {ID: "igb", Model: lab.Igb}, {ID: "virtio", Model: lab.Virtio}, {ID: "peer", Model: lab.Virtio}},
		Boot:     lab.Boot{Arguments: []string{"net.ifnames=0"}},
		Files:    stampPrograms(t),
	})
	if machine == nil {
		t.FailNow()
	}
	m := &stampedMachine{machine, t}
	t.Logf("on kernel %s", kernelOf(t, machine))
	m.serves()
	rows := []string{"NIC     STAMPS  OUTCOME"}
	for i, name := range []string{"e1000e", "igb", "virtio"} {
		m.t = t
		m.joins(i+1, name)
		for _, by := range []string{"kernel", "nic"} {
			t.Run(name+" "+by, func(t *testing.T) {
				m.t = t
				rows = append(rows, fmt.Sprintf("%-6s  %-6s  %s", name, by, m.judges(name, by)))
			})
		}
		m.t = t
		m.must("ip addr flush dev " + name + "; ip link set " + name + " down")
	}
	m.joins(1, "e1000e")
	t.Run("e1000e killed", func(t *testing.T) {
		m.t = t
		rows = append(rows, "e1000e  nic     "+m.killed("e1000e"))
	})
	table := strings.Join(rows, "\n") + "\n"
	t.Log("\n" + table)
	keep(t, table)
}

// stampPrograms is a folder with the command, the program that sends and answers, and those of others that know of stamps.
func stampPrograms(t *testing.T) string {
	t.Helper()
	folder := programs(t)
	build(t, filepath.Join(folder, "kubectl-lowlatency"), "./cmd/kubectl-lowlatency")
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	carry(t, "lab-stamps", folder, "ethtool", "hwstamp_ctl")
	return folder
}

// must runs a command that is not to fail, with the programs that were brought, and gives what it prints.
func (m *stampedMachine) must(command string) string {
	m.t.Helper()
	out, err := m.Run(m.t.Context(), "export PATH="+lab.FilesPath+":$PATH; "+command)
	if err != nil {
		m.t.Fatal(err)
	}
	return out
}

// names gives the interface of the NIC at an index, from 1, a name.
func (m *stampedMachine) names(index int, name string) string {
	return fmt.Sprintf("now=$(basename $(dirname $(grep -l 52:54:00:00:01:%02x /sys/class/net/*/address))); ip link set $now down; [ $now = %s ] || ip link set $now name %[2]s; ", index, name)
}

// serves has the server answer from the NIC of the peer.
func (m *stampedMachine) serves() {
	m.t.Helper()
	m.must("set -e; ip netns add far; " + m.names(4, "peer") + "ip link set peer netns far; ip -n far addr add " + peerAddress + "/24 dev peer; ip -n far link set peer up; " +
		"setsid ip netns exec far lowlatency-traffic server port=2048 >/run/server.log 2>&1 </dev/null &")
}

// joins gives a NIC its name and an address, and waits until the server answers by it.
func (m *stampedMachine) joins(index int, name string) {
	m.t.Helper()
	m.must("set -e; " + m.names(index, name) + "ip addr replace " + nicAddress + "/24 dev " + name + "; ip link set " + name + " up; " +
		"for i in $(seq 120); do (: </dev/tcp/" + peerAddress + "/2048) 2>/dev/null && exit 0; sleep 1; done; echo no answer by " + name + " >&2; exit 1")
}

// probes is the command that measures, with stamps.
func probes(by, longest string) string {
	return "kubectl-lowlatency probe pingpong --program " + lab.FilesPath + "/lowlatency-traffic --client " + peerAddress + " --transport udp --wait block --sizes 64 --warm-up 0 " +
		"--warm-up-messages 10 --batch 10 --minimum-time 0 --maximum-time " + longest + " --maximum-messages 200 --timeout 10s --timestamps " + by + " -o json"
}

// setting is how the stamps of a NIC are set, by hwstamp_ctl.
func (m *stampedMachine) setting(name string) string {
	m.t.Helper()
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(m.must("hwstamp_ctl -i "+name)), "current settings:"))
}

// judges measures, and holds what the command says against what is so. It gives the outcome in words.
func (m *stampedMachine) judges(name, by string) string {
	m.t.Helper()
	can := m.must("ethtool -T " + name)
	hardware := strings.Contains(can, "hardware-transmit") && strings.Contains(can, "hardware-receive") && regexp.MustCompile(`(?m)^\s*all\b`).MatchString(can)
	before := ""
	if hardware {
		before = m.setting(name)
	}
	result, err := m.Execute(m.t.Context(), "export PATH="+lab.FilesPath+":$PATH; "+probes(by, "60s"))
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Logf("%s ends with %d: %s%s", by, result.ExitCode, result.Stderr, can)
	if hardware && m.setting(name) != before {
		m.t.Errorf("the NIC was set to %s, and is to %s", before, m.setting(name))
	}
	if by == "nic" && !hardware {
		return m.refuses(name, result)
	}
	return m.measured(by, result)
}

// measured holds the stamps of a result against what the emulated NICs give.
func (m *stampedMachine) measured(by string, result lab.Result) string {
	m.t.Helper()
	var measured latency.Result
	if err := json.Unmarshal([]byte(result.Stdout), &measured); err != nil {
		m.t.Fatalf("%v: %s", err, result.Stdout)
	}
	s := measured.Sizes[0].Stamps
	counts := fmt.Sprintf("of %d messages, %d lack the stamp of sending and %d that of the answer", s.Messages, s.WithoutSent, s.WithoutReceived)
	want, wantCounts := latency.Outcome{Verdict: latency.Passed, Reason: latency.ReasonMeasured}, "of 200 messages, 0 lack the stamp of sending and 0 that of the answer"
	if by == "nic" {
		want, wantCounts = latency.Outcome{Verdict: latency.Inconclusive, Reason: latency.ReasonUnstamped}, "of 200 messages, 200 lack the stamp of sending and 200 that of the answer"
	}
	got := measured.Outcome
	got.Message = ""
	if diff := cmp.Diff(want, got) + cmp.Diff(wantCounts, counts); diff != "" || s.Messages != s.Wire.Samples+s.Missing() {
		m.t.Errorf("%s%+v", diff, measured.Outcome)
	}
	return fmt.Sprintf("%s (%s): %s", measured.Outcome.Verdict, measured.Outcome.Reason, counts)
}

// refuses wants a NIC without hardware to be refused by its name.
func (m *stampedMachine) refuses(name string, result lab.Result) string {
	m.t.Helper()
	if want := "error: stamps: interface " + name + " cannot stamp each message in hardware: it lacks "; result.ExitCode == 0 || !strings.HasPrefix(result.Stderr, want) || result.Stdout != "" {
		m.t.Errorf("it ends with %d: %s%s", result.ExitCode, result.Stdout, result.Stderr)
	}
	return "refused: it lacks " + strings.SplitN(strings.SplitN(result.Stderr, "it lacks ", 2)[1], ";", 2)[0]
}

// killed kills the command while it measures: the NIC stays as it was set, and is put back by the command that the notice names.
func (m *stampedMachine) killed(name string) string {
	m.t.Helper()
	if got := m.setting(name); got != stampsOff {
		m.t.Fatalf("the NIC is set to %s before", got)
	}
	// One size takes 200 messages; a server that is stopped lets the first wait.
	m.must("pkill -STOP -x lowlatency-traf; setsid " + probes("nic", "60s") + " >/run/killed.json 2>/run/killed.log </dev/null & sleep 0.1")
	for begin := time.Now(); m.setting(name) != stampsOfAll; time.Sleep(time.Second) {
		if time.Since(begin) > time.Minute {
			m.t.Fatalf("the NIC is set to %s while it is measured: %s", m.setting(name), m.must("cat /run/killed.log"))
		}
	}
	m.must("pkill -KILL -x kubectl-lowlate; sleep 1; ! pgrep -x kubectl-lowlate; pkill -CONT -x lowlatency-traf")
	if got := m.setting(name); got != stampsOfAll {
		m.t.Errorf("after the kill the NIC is set to %s, and not as the notice says", got)
	}
	notice := m.must("cat /run/killed.log")
	_, remedy, found := strings.Cut(strings.TrimSpace(notice), "should it be killed: ")
	if !found || !strings.HasPrefix(remedy, "hwstamp_ctl -i "+name+" ") {
		m.t.Fatalf("the notice is %q", notice)
	}
	m.must(remedy)
	if got := m.setting(name); got != stampsOff {
		m.t.Errorf("%s leaves the NIC set to %s", remedy, got)
	}
	return "killed: the setting stayed until " + remedy
}
