// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build testpmd

package testpmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// prompt is what testpmd prints when it has done a command.
const prompt = "testpmd> "

// longestWait is how long a command of testpmd may take, on a busy machine.
const longestWait = 30 * time.Second

// stage is two network namespaces with two pairs of virtual interfaces between them: v0 and w0 are near, v1 and w1 are their far ends.
type stage struct {
	t         *testing.T
	near, far string
	// begin is what the kernel had counted when the measurement began.
	begin map[string]counts
}

// counts are what the kernel counted at an interface.
type counts struct{ received, sent uint64 }

func interfaces() []string { return []string{"v0", "w0", "v1", "w1"} }

func newStage(t *testing.T) *stage {
	t.Helper()
	prefix := fmt.Sprintf("llp%d", os.Getpid())
	s := &stage{t: t, near: prefix + "n", far: prefix + "f"}
	for _, space := range []string{s.near, s.far} {
		s.run("ip", "netns", "add", space)
		t.Cleanup(func() { s.run("ip", "netns", "del", space) })
		// The kernel would send messages of its own.
		s.run("ip", "netns", "exec", space, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv6.conf.default.disable_ipv6=1")
	}
	// testpmd sends to addresses of its own, from 02:00:00:00:00:00 on, which a bridge is not to take for those of its ports.
	for i, pair := range []string{"v", "w"} {
		s.run("ip", "link", "add", pair+"0", "netns", s.near, "address", fmt.Sprintf("06:00:00:00:0%d:00", i), "type", "veth",
			"peer", "name", pair+"1", "netns", s.far, "address", fmt.Sprintf("06:00:00:00:0%d:01", i))
	}
	for _, name := range interfaces() {
		s.run("ip", "-n", s.space(name), "link", "set", name, "up")
	}
	return s
}

// space is where an interface is.
func (s *stage) space(name string) string {
	if strings.HasSuffix(name, "0") {
		return s.near
	}
	return s.far
}

func (s *stage) run(program string, arguments ...string) string {
	s.t.Helper()
	out, err := exec.Command(program, arguments...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("%s %s: %v\n%s", program, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// bridge has the kernel pass on messages between the far ends, through a token bucket that lets few pass at the second one.
func (s *stage) bridge() {
	s.t.Helper()
	s.run("ip", "-n", s.far, "link", "add", "br0", "type", "bridge")
	for _, name := range []string{"v1", "w1"} {
		s.run("ip", "-n", s.far, "link", "set", name, "master", "br0")
	}
	s.run("ip", "-n", s.far, "link", "set", "br0", "up")
	s.run("tc", "-n", s.far, "qdisc", "add", "dev", "w1", "root", "tbf", "rate", "400kbit", "burst", "2k", "limit", "4k")
}

// dropped is how many messages the token bucket has dropped.
func (s *stage) dropped() uint64 {
	s.t.Helper()
	var found []struct{ Drops uint64 }
	if err := json.Unmarshal([]byte(s.run("tc", "-n", s.far, "-s", "-j", "qdisc", "show", "dev", "w1")), &found); err != nil || len(found) != 1 {
		s.t.Fatalf("the token bucket: %v %v", found, err)
	}
	return found[0].Drops
}

// now is what the kernel has counted.
func (s *stage) now(name string) counts {
	s.t.Helper()
	var found []struct {
		Stats64 struct{ RX, TX struct{ Packets uint64 } }
	}
	if err := json.Unmarshal([]byte(s.run("ip", "-n", s.space(name), "-s", "-j", "link", "show", "dev", name)), &found); err != nil || len(found) != 1 {
		s.t.Fatalf("the counters of %s: %v", name, err)
	}
	return counts{received: found[0].Stats64.RX.Packets, sent: found[0].Stats64.TX.Packets}
}

// quiet waits until the kernel counts nothing more.
func (s *stage) quiet() {
	s.t.Helper()
	all := func() string {
		var b strings.Builder
		for _, name := range interfaces() {
			fmt.Fprint(&b, s.now(name))
		}
		return b.String()
	}
	for before, until := "", time.Now().Add(longestWait); ; {
		now := all()
		if now == before {
			return
		}
		if before = now; time.Now().After(until) {
			s.t.Fatal("messages do not stop")
		}
		time.Sleep(700 * time.Millisecond)
	}
}

// start begins the measurement.
func (s *stage) start() {
	s.t.Helper()
	s.quiet()
	s.begin = map[string]counts{}
	for _, name := range interfaces() {
		s.begin[name] = s.now(name)
	}
}

// counted is what the kernel has counted at interfaces since the measurement began.
func (s *stage) counted(names ...string) (sum counts) {
	s.t.Helper()
	for _, name := range names {
		now, then := s.now(name), s.begin[name]
		sum.received += now.received - then.received
		sum.sent += now.sent - then.sent
	}
	return sum
}

// program is a testpmd that runs.
type program struct {
	t       *testing.T
	command *exec.Cmd
	input   io.WriteCloser
	ended   chan error
	mutex   sync.Mutex
	printed bytes.Buffer
}

// Write takes what it prints: both of its outputs, as in a file.
func (p *program) Write(text []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.printed.Write(text)
}

func (p *program) text() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.printed.String()
}

// queue is a port of testpmd at an interface, with so many messages in the queue of each direction.
func queue(name string, frames int) string {
	return fmt.Sprintf("net_af_packet_%s,iface=%s,framecnt=%d", name, name, frames)
}

// wide is a queue that nothing here fills.
const wide = 4096

// testpmd starts it where the interfaces are, behind words that come before its own name; it has done so when its first prompt is there.
func (s *stage) testpmd(space string, before, ports []string, arguments ...string) *program {
	s.t.Helper()
	words := append(append([]string{"netns", "exec", space}, before...), "dpdk-testpmd", "-v", "--no-huge", "-m", "96", "--no-pci", "--no-shconf", "--no-telemetry",
		"--file-prefix", space, "--lcores", fmt.Sprintf("(0,1)@(0-%d)", runtime.NumCPU()-1))
	for _, port := range ports {
		words = append(words, "--vdev", port)
	}
	p := &program{t: s.t, command: exec.Command("ip", append(append(words, "--", "--total-num-mbufs=4096"), arguments...)...), ended: make(chan error, 1)}
	p.command.Stdout, p.command.Stderr = p, p
	var err error
	if p.input, err = p.command.StdinPipe(); err != nil {
		s.t.Fatal(err)
	}
	if err := p.command.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() { p.ended <- p.command.Wait() }()
	s.t.Cleanup(func() { _ = p.command.Process.Kill() })
	return p
}

// interactive starts it with a prompt.
func (s *stage) interactive(space, mode string, ports ...string) *program {
	s.t.Helper()
	p := s.testpmd(space, nil, ports, "-i", "--forward-mode="+mode)
	p.wait(prompt, 1)
	return p
}

// wait waits until it has printed a text so many times.
func (p *program) wait(text string, times int) {
	p.t.Helper()
	for until := time.Now().Add(longestWait); strings.Count(p.text(), text) < times; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			p.t.Fatalf("testpmd does not say %q:\n%s", text, p.text())
		}
	}
}

// say has it do commands, one after the other.
func (p *program) say(commands ...string) {
	p.t.Helper()
	for _, command := range commands {
		done := strings.Count(p.text(), prompt)
		if _, err := io.WriteString(p.input, command+"\n"); err != nil {
			p.t.Fatalf("%s: %v\n%s", command, err, p.text())
		}
		p.wait(prompt, done+1)
	}
}

// signal reaches testpmd itself, since ip becomes it.
func (p *program) signal(signal syscall.Signal) {
	p.t.Helper()
	if err := p.command.Process.Signal(signal); err != nil {
		p.t.Fatal(err)
	}
}

// quit ends it, and returns what it has printed.
func (p *program) quit() string {
	p.t.Helper()
	if _, err := io.WriteString(p.input, "quit\n"); err != nil {
		p.t.Fatal(err)
	}
	return p.end()
}

// end waits for its end.
func (p *program) end() string {
	p.t.Helper()
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Fatalf("testpmd: %v\n%s", err, p.text())
		}
	case <-time.After(longestWait):
		p.t.Fatalf("testpmd does not end:\n%s", p.text())
	}
	return p.text()
}
