// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package onload_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/stackdump"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

func TestOnload(t *testing.T) {
	s := &scene{}
	t.Cleanup(func() {
		s.print()
		s.hold(t)
		if s.machine != nil {
			if err := s.machine.Stop(); err != nil {
				t.Error(err)
			}
		}
	})
	for _, step := range []struct {
		name, expected string
		do             func(t *testing.T) string
	}{
		{"machine with Onload of the kernel's own build", "the image's standard kernel", s.boot},
		{"modules load, NIC registered for AF_XDP", "no error in the kernel's log", s.load},
		{"device plugin", "the NIC is Healthy", s.plugin},
	} {
		if !s.row(t, step.name, step.expected, step.do) {
			return
		}
	}
	s.row(t, "module and library of one build", "no mismatch; UDP and TCP at user level, as user 1001 without capabilities", s.oneBuild)
	s.row(t, "cost of pool --root /", "at most 5 times that of a start that looks at nothing", s.cost)
	s.row(t, "lowlatency-traffic answers under Onload", "by UDP and TCP: the server Accelerated, the client of the peer Kernel", s.servesTraffic)
	s.row(t, "lowlatency-traffic measures under Onload", "by UDP and TCP: the client Accelerated, the server of the peer Kernel", s.measuresTraffic)
	s.row(t, "LD_PRELOAD in the container", "the tool refuses alone and under env -u; --acceleration judges all the same", s.preloaded)
	s.row(t, "one accelerated socket, one handed to the kernel", "Accelerated, and the other is said", s.handedBeside)
	s.row(t, "the only socket went to the kernel", "HandedToKernel or NoStack: not accelerated", s.handedAlone)
	s.row(t, "a probe through another interface", "Accelerated, and the probed socket is named", s.probed)
	s.row(t, "no virtual interface left, EF_NO_FAIL=1, beside a neighbour", "the neighbour Accelerated, the other NoStack", s.exhausted)
	s.row(t, "the pod's control plane dead, the host's alive", "SIGBUS explained; the NIC Unhealthy for who sees all processes", s.controlPlane)
	s.row(t, "library of another build", "Unhealthy with both builds named; its program on kernel sockets", s.otherBuild)
}

// hold keeps the machine until somebody removes the file of LAB_HOLD, which says how to look around.
func (s *scene) hold(t *testing.T) {
	file := os.Getenv("LAB_HOLD")
	if file == "" || s.machine == nil {
		return
	}
	must(t, os.WriteFile(file, []byte(s.machine.Login()+"\n"), 0o600))
	s.wait(t, file+" to be removed", func() (bool, string) {
		_, err := os.Stat(file)
		return err != nil, "it is there"
	})
}

// plugin starts the stand-in of the kubelet and the device plugin, which sees of the host what its pod would.
func (s *scene) plugin(t *testing.T) string {
	s.run(t, "mkdir -p /run/lab /host && for i in proc sys dev opt/onload var/lib/kubelet/pod-resources; do "+
		"mkdir -p /$i /host/$i; mount --bind /$i /host/$i; mount -o remount,bind,ro /host/$i; done")
	must(t, s.machine.WriteFile(t.Context(), pluginFile, poolText(t), 0o600))
	s.run(t, "systemd-run --unit kubelet /opt/lab/kubelet --resource "+resource+" --file "+kubeletFile)
	s.run(t, "systemd-run --unit plugin -p 'Environment=NODE_NAME=onload' /opt/lab/lowlatency-operator device-plugin --root /host "+
		"--pool-file "+pluginFile+" --host-ip 10.0.2.15 --interval 10s")
	return s.waitHealth(t, deviceplugin.Healthy) + " Healthy"
}

// poolText is the pool as the operator writes it for the device plugin.
func poolText(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", "pool.yaml"))
	must(t, err)
	pool := &v1alpha1.BypassNICPool{}
	must(t, yaml.UnmarshalStrict(content, pool))
	text, err := json.Marshal(bypass.Pool{Name: pool.Name, Generation: 1, Spec: pool.Spec})
	must(t, err)
	return string(text)
}

const commandLine = lab.FilesPath + "/kubectl-lowlatency"

// timed runs a command line and adds the CPU time that it took, as the kernel counts it. One that ends with an exit code above
// the bound fails the test.
func (s *scene) timed(t *testing.T, command string, bound int) (text string, seconds float64) {
	t.Helper()
	result, err := s.machine.Execute(t.Context(), "cd /tmp; bash -c 'TIMEFORMAT=\"CPU %U %S\"; time "+command+"'")
	must(t, err)
	said, times, isTimed := strings.Cut(result.Stderr, "CPU ")
	if result.ExitCode > bound || !isTimed {
		t.Fatalf("%s ended with exit code %d: %s%s", command, result.ExitCode, result.Stdout, result.Stderr)
	}
	for field := range strings.FieldsSeq(times) {
		part, err := strconv.ParseFloat(field, 64)
		must(t, err)
		seconds += part
	}
	return result.Stdout + said, seconds
}

// pool is what the command line says of the NIC on this machine, and the CPU time that it took.
func (s *scene) pool(t *testing.T) (text string, seconds float64) {
	t.Helper()
	return s.timed(t, commandLine+" pool -f "+poolFile+" --root / --host-ip 10.0.2.15", 1)
}

// cost compares what the command line takes to look at the machine with what it takes to start and look at nothing: on an emulated
// processor that others use, too, seconds alone say little.
func (s *scene) cost(t *testing.T) string {
	const most = 5
	s.pool(t)
	_, start := s.timed(t, commandLine+" version", 0)
	_, whole := s.pool(t)
	if whole > most*start {
		t.Errorf("pool --root / took %.1f s of CPU time, and to start takes %.1f s", whole, start)
	}
	return fmt.Sprintf("%.1f CPU s, and %.1f to start the program", whole, start)
}

// judged asks a container, wants a state and words, and keeps what the tool printed when LAB_RECORD names a folder.
func (s *scene) judged(t *testing.T, c container, want onload.State, words ...string) string {
	t.Helper()
	s.record(t, c)
	verdict := stackdump.Ask(t.Context(), s.inside(c), limit)
	if verdict.State != want {
		t.Errorf("%s is %s (%s), want %s", c.name, verdict.State, verdict.Message, want)
	}
	for _, word := range words {
		if !strings.Contains(verdict.Message, word) {
			t.Errorf("%s: %q does not say %q", c.name, verdict.Message, word)
		}
	}
	return string(verdict.State) + ": " + verdict.Message
}

func (s *scene) record(t *testing.T, c container) {
	t.Helper()
	folder := os.Getenv("LAB_RECORD")
	if folder == "" {
		return
	}
	ended, err := s.inside(c)(t.Context(), []string{"env", "LD_PRELOAD=", "/opt/onload/usr/bin/onload_stackdump", "lots"})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, strings.ReplaceAll(t.Name(), "/", "-")+"-"+c.name+".txt"), []byte(ended.Output+ended.Complaint), 0o600))
}

// echo is a container that answers UDP and TCP on the accelerated address.
func echo(name string) container {
	return container{name: name, tasks: []string{"udp:" + fastAddress + ":5001", "tcp:" + fastAddress + ":5002"}}
}

func (s *scene) started(t *testing.T, c container, ready int) container {
	t.Helper()
	s.start(t, c, s.allocated(t))
	s.waitReady(t, c, "ready", ready)
	return c
}

func (s *scene) oneBuild(t *testing.T) string {
	text, _ := s.pool(t)
	if !regexp.MustCompile(`(?m)Healthy`).MatchString(text) || strings.Contains(text, "Unhealthy") {
		t.Errorf("pool says:\n%s", text)
	}
	c := s.started(t, echo("echo"), 2)
	before := s.kernelCounts(t)
	answers := s.ask(t, peer, "ask-udp:"+fastAddress+":5001:50", "ask-tcp:"+fastAddress+":5002:50")
	if after := s.kernelCounts(t); after != before {
		t.Errorf("the kernel received %s before and %s after", before, after)
	}
	for _, want := range []string{"UDP 50 of 50", "TCP 50 of 50"} {
		if !strings.Contains(answers, want) {
			t.Errorf("the peer says %s", answers)
		}
	}
	return "Healthy; " + answers + "; " + s.judged(t, c, onload.Accelerated, "50 datagrams", "none through the kernel")
}

func (s *scene) preloaded(t *testing.T) string {
	c := s.started(t, echo("preloaded"), 2)
	s.ask(t, peer, "ask-udp:"+fastAddress+":5001:5")
	const tool = "/opt/onload/usr/bin/onload_stackdump"
	codes := make([]string, 0, 2)
	for _, command := range [][]string{{tool, "lots"}, {"env", "-u", "LD_PRELOAD", tool, "lots"}} {
		ended, err := s.inside(c)(t.Context(), command)
		must(t, err)
		if ended.ExitCode == 0 {
			t.Errorf("%v ran", command)
		}
		codes = append(codes, strconv.Itoa(ended.ExitCode))
	}
	return "exit codes " + strings.Join(codes, " and ") + "; " + s.judged(t, c, onload.Accelerated, "5 datagrams")
}

// slowListener is a program of the host that a pod reaches by its other interface alone.
func (s *scene) slowListener(t *testing.T) string {
	t.Helper()
	s.run(t, "systemd-run --unit slow python3 "+programPath+" tcp:"+hostAddress+":7000")
	t.Cleanup(func() { _, _ = s.machine.Run(t.Context(), "systemctl stop slow") })
	return "connect:" + hostAddress + ":7000"
}

func (s *scene) handedBeside(t *testing.T) string {
	c := container{name: "beside", tasks: []string{"udp:" + fastAddress + ":5001", s.slowListener(t)}}
	s.started(t, c, 2)
	s.ask(t, peer, "ask-udp:"+fastAddress+":5001:5")
	return s.judged(t, c, onload.Accelerated, "5 datagrams", "1 socket to the kernel", "tcp_handover_connect 1")
}

func (s *scene) handedAlone(t *testing.T) string {
	c := container{name: "alone", tasks: []string{s.slowListener(t)}}
	s.started(t, c, 1)
	s.record(t, c)
	verdict := stackdump.Ask(t.Context(), s.inside(c), limit)
	if !verdict.State.IsUnaccelerated() || verdict.State == onload.ReceivesThroughKernel {
		t.Errorf("got %s: %s", verdict.State, verdict.Message)
	}
	return string(verdict.State) + ": " + verdict.Message
}

func (s *scene) probed(t *testing.T) string {
	c := container{name: "probed", tasks: []string{"udp:" + fastAddress + ":5001", "tcp:0.0.0.0:9000"}}
	s.started(t, c, 2)
	answers := s.ask(t, peer, "ask-udp:"+fastAddress+":5001:20")
	probe := s.ask(t, "", "ask-tcp:"+slowAddress+":9000:1")
	if !strings.Contains(probe, "TCP 1 of 1") {
		t.Errorf("the probe says %s", probe)
	}
	return answers + ", probe " + probe + "; " + s.judged(t, c, onload.Accelerated, "20 datagrams", "1 connection", "0.0.0.0:9000")
}

func (s *scene) exhausted(t *testing.T) string {
	first := s.started(t, echo("neighbour"), 2)
	answers := s.ask(t, peer, "ask-udp:"+fastAddress+":5001:5")
	second := container{name: "late", environment: []string{"EF_NO_FAIL=1"}, tasks: []string{"udp:" + fastAddress + ":5003"}}
	s.started(t, second, 1)
	answers += "; late " + s.ask(t, peer, "ask-udp:"+fastAddress+":5003:5")
	neighbour := s.judged(t, first, onload.Accelerated, "5 datagrams")
	return answers + "; neighbour " + neighbour + "; late " + s.judged(t, second, onload.NoStack, "virtual interface")
}

// controlPlane ends the control plane of the pods' network namespace alone.
func (s *scene) controlPlane(t *testing.T) string {
	c := s.started(t, echo("deserted"), 2)
	s.ask(t, peer, "ask-udp:"+fastAddress+":5001:5")
	s.run(t, fmt.Sprintf("pod=$(stat -Lc %%i /run/netns/%s); for i in $(pidof onload_cp_server); do [ $(stat -Lc %%i /proc/$i/ns/net) != $pod ] || kill -9 $i; done; sleep 1", pods))
	if left := s.run(t, "pidof onload_cp_server | wc -w"); left != "1" {
		t.Errorf("%s control planes are left, want the host's alone", left)
	}
	verdict := s.judged(t, c, onload.Unknown, "SIGBUS", "onload_cp_server")
	text, _ := s.pool(t)
	if !strings.Contains(text, "Unhealthy") || !strings.Contains(text, "runs without a control plane") {
		t.Errorf("pool says:\n%s", text)
	}
	return verdict + "; pool: Unhealthy, stack without a control plane"
}

// otherBuild puts the library of another build over that of the module's.
func (s *scene) otherBuild(t *testing.T) string {
	c := echo("other")
	a := s.allocated(t)
	s.run(t, "cp --remove-destination /opt/lab/other/libonload.so /opt/onload/usr/lib64/libonload.so")
	text, _ := s.pool(t)
	if !strings.Contains(text, "Unhealthy") {
		t.Errorf("pool says:\n%s", text)
	}
	c.environment = []string{"EF_NO_FAIL=1"}
	s.start(t, c, a)
	s.waitReady(t, c, "ready", 2)
	answers := s.ask(t, peer, "ask-udp:"+fastAddress+":5001:5")
	verdict := s.judged(t, c, onload.NoStack)
	s.waitHealth(t, deviceplugin.Unhealthy)
	return "Unhealthy; " + answers + "; " + verdict
}
