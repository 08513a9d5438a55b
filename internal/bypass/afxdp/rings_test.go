// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/xdpclient"
)

// takeLoopback keeps the loopback interface from others, as another process that just asks the kernel does.
func takeLoopback(t *testing.T) {
	t.Helper()
	kept := -1
	keep := func(socket int) (err error) {
		kept, err = unix.Dup(socket)
		return err
	}
	if err := tryWhenFree(keep); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(kept) })
}

// tryWhenFree tries again while the loopback interface still has the socket of an earlier try, which the kernel gives up
// some time after its last file was closed.
func tryWhenFree(mapRings func(int) error) (err error) {
	for range 1000 {
		if err = tryBoundRings(mapRings); !errors.Is(err, unix.EBUSY) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// TestRingsOfThisKernel tries the real kernel, which the other tests of bound sockets need new enough, too.
func TestRingsOfThisKernel(t *testing.T) {
	kernelFolder(t)
	if err := tryWhenFree(mapBoundRings); err != nil {
		t.Errorf("the answer is %v", err)
	}
	tried := 0
	err := tryWhenFree(func(socket int) error {
		tried = socket
		return errBoundRings
	})
	if !errors.Is(err, errBoundRings) || tried == 0 {
		t.Errorf("a kernel that is too old gives %v", err)
	}
	if err := unix.Close(tried); err == nil {
		t.Error("the socket was left open")
	}
}

// TestMapBoundRings: a socket whose interface is gone is refused by every kernel with the answer that old ones give
// to all bound sockets.
func TestMapBoundRings(t *testing.T) {
	kernelFolder(t)
	makeVeth(t)
	socket := boundSocket(t)
	if err := mapBoundRings(socket); err != nil {
		t.Errorf("a bound socket gives %v", err)
	}
	ip(t, "link", "delete", "nic0")
	ip(t, "link", "add", "nic0", "type", "veth", "peer", "name", "wire0")
	if err := mapBoundRings(socket); !errors.Is(err, errBoundRings) {
		t.Errorf("EBUSY gives %v", err)
	}
	other, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(other) }()
	if err := mapBoundRings(other); err == nil || errors.Is(err, errBoundRings) {
		t.Errorf("another socket gives %v", err)
	}
}

// journal keeps what is logged.
type journal struct {
	mutex sync.Mutex
	lines []string
}

func (j *journal) add(_, line string) {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	j.lines = append(j.lines, line)
}

// count tells how many lines have all of some texts.
func (j *journal) count(texts ...string) int {
	j.mutex.Lock()
	defer j.mutex.Unlock()
	found := 0
	for _, line := range j.lines {
		hasAll := true
		for _, text := range texts {
			hasAll = hasAll && strings.Contains(line, text)
		}
		if hasAll {
			found++
		}
	}
	return found
}

// prepareUntilKnown prepares a NIC until the kernel has answered, and once more.
func prepareUntilKnown(m *Manager, device bypass.Device) {
	for range 1000 {
		m.Prepare(testPool(), []bypass.Device{device})
		if m.ringsKnown {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.Prepare(testPool(), []bypass.Device{device})
}

// askForSocket asks for a bound socket on queue 0 of nic0, and gives it up.
func askForSocket(t *testing.T, client *xdpclient.Client) error {
	t.Helper()
	memory, _, err := xdpclient.NewMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(memory) }()
	socket, err := client.Socket("nic0", 0, memory)
	if err == nil {
		_ = unix.Close(socket)
	}
	return err
}

// TestKernelWithoutBoundRings: bound sockets are refused with the way out, at the start and for each request, and take
// no frames from the kernel. The map of sockets is handed over.
func TestKernelWithoutBoundRings(t *testing.T) {
	m, said := testManager(t), &journal{}
	m.Log = funcr.New(said.add, funcr.Options{})
	m.mapRings = func(int) error { return errBoundRings }
	device := prepareNIC(t, m)
	prepareUntilKnown(m, device)
	if is := said.count("No container gets a bound socket", "boot a newer kernel", "/xsk_map_fd"); is != 1 {
		t.Errorf("the plugin tells %d times that the kernel is too old: %v", is, said.lines)
	}
	if is := reported(t, m); len(is) != 1 || !strings.Contains(is[""], "Containers get no bound socket: this kernel lets no program map the rings") {
		t.Errorf("reported is %v", is)
	}
	client, err := xdpclient.Dial(allocate(t, m, device, 0))
	if err != nil {
		t.Fatal(err)
	}
	if is := transcript(t, client, "/connect,a", "/xsk_map_fd,nic0"); is != "/host_ok /fd_ack" {
		t.Errorf("answers are %q", is)
	}
	if err := askForSocket(t, client); err == nil {
		t.Error("a bound socket was handed over")
	}
	if is := said.count("No socket for the container", "boot a newer kernel, or let the program ask for the map of sockets with /xsk_map_fd"); is != 1 {
		t.Errorf("the refusal is told %d times: %v", is, said.lines)
	}
	if is := verdictOf(t, m, make([]byte, 64)); is != xdpPass {
		t.Errorf("a socket that nobody got takes frames: verdict %d", is)
	}
}

// TestKernelThatCannotBeAsked: what is not known is told once, is asked again, and refuses nothing.
func TestKernelThatCannotBeAsked(t *testing.T) {
	m, said := testManager(t), &journal{}
	takeLoopback(t)
	m.Log = funcr.New(said.add, funcr.Options{})
	device := prepareNIC(t, m)
	m.Prepare(testPool(), []bypass.Device{device})
	if said.count("is not known yet", "device or resource busy") != 1 || said.count("No container gets") != 0 || m.ringsKnown {
		t.Errorf("the log is %v", said.lines)
	}
	client, err := xdpclient.Dial(allocate(t, m, device, 0))
	if err != nil {
		t.Fatal(err)
	}
	if is := transcript(t, client, "/connect,a"); is != "/host_ok" {
		t.Fatalf("the answer is %q", is)
	}
	if err := askForSocket(t, client); err != nil {
		t.Errorf("no socket: %v", err)
	}
}
