// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const testAddress = "0000:3b:00.0"

// testPool copies, because veth has no zero copy.
func testPool() bypass.Pool {
	return bypass.Pool{Name: "fast.nics", Spec: v1alpha1.BypassNICPoolSpec{
		ResourceName: "lowlatency.dev/fast",
		Stack: v1alpha1.BypassStack{
			Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{ZeroCopy: v1alpha1.ZeroCopyPreferred},
		},
	}}
}

func testDevice(name string, queues ...int) bypass.Device {
	return bypass.Device{
		NIC:    host.NIC{PCIAddress: testAddress, Name: host.Known(name, "")},
		Health: v1alpha1.NICHealthy, Shared: true, Units: len(queues), Queues: queues,
	}
}

func testManager(t *testing.T) *Manager {
	t.Helper()
	folder := kernelFolder(t)
	m := &Manager{Pins: filepath.Join(folder, "bpf", "nics"), Folder: filepath.Join(folder, "run")}
	t.Cleanup(m.Close)
	return m
}

// prepared is a manager with the first of two veth interfaces.
func prepared(t *testing.T) (*Manager, bypass.Device) {
	t.Helper()
	m := testManager(t)
	makeVeth(t, "nic0", "wire0")
	device := testDevice("nic0", 0, 1)
	if problems := m.Prepare(testPool(), []bypass.Device{device}); len(problems) > 0 {
		t.Fatal(problems)
	}
	t.Cleanup(func() { _ = os.RemoveAll(m.Folder) })
	t.Cleanup(func() {
		if err := m.nics[testAddress].detach(); err != nil {
			t.Error(err)
		}
	})
	return m, device
}

func allocate(t *testing.T, m *Manager, device bypass.Device, queues ...int) string {
	t.Helper()
	var shares []bypass.Share
	for _, queue := range queues {
		id := testAddress + "-" + strconv.Itoa(queue)
		shares = append(shares, bypass.Share{ID: id, Device: device, Queues: bypass.QueuesOf(device, id)})
	}
	edits, err := m.Allocate(shares)
	if err != nil {
		t.Fatal(err)
	}
	if len(edits.Mounts) != 1 || edits.Mounts[0].ContainerPath != "/tmp/afxdp_dp/nic0" {
		t.Fatalf("mounts are %+v", edits.Mounts)
	}
	return filepath.Join(edits.Mounts[0].HostPath, SocketName)
}

// startClient runs a program as nobody, with some capabilities or none, until it is ready to receive.
func startClient(t *testing.T, way, socket string, queue int, capabilities ...uintptr) *bufio.Scanner {
	t.Helper()
	// The container has the folder of the allocation alone; here the way to it must be open.
	for folder := filepath.Dir(filepath.Dir(socket)); len(folder) > len(os.Getenv(folderVariable)); folder = filepath.Dir(folder) {
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("/proc/self/exe", way, socket, "nic0", strconv.Itoa(queue))
	command.Env = []string{stageVariable + "=" + stageClient}
	command.Stderr = os.Stderr
	const nobody = 65534
	command.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: nobody, Gid: nobody}, AmbientCaps: capabilities,
	}
	if way == "socket" {
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	lines := bufio.NewScanner(output)
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("the client says %q", lines.Text())
	}
	return lines
}

// sendFrame sends an Ethernet frame with a text from an interface, by the queue of one number.
func sendFrame(t *testing.T, from, text string) {
	t.Helper()
	device, err := net.InterfaceByName(from)
	if err != nil {
		t.Fatal(err)
	}
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(socket) }()
	frame := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 0x88, 0xb5}, text...)
	frame = append(frame, make([]byte, max(0, 60-len(frame)))...)
	if err := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: device.Index, Halen: 6}); err != nil {
		t.Fatal(err)
	}
}

// TestUnprivilegedContainers receives frames in programs that run as nobody: one without any capability and outside
// the network namespace of the NIC, one with CAP_NET_RAW as DPDK needs it.
func TestUnprivilegedContainers(t *testing.T) {
	cases := map[string]struct {
		way          string
		capabilities []uintptr
	}{
		"bound socket, no capability": {"socket", nil},
		"map of sockets, CAP_NET_RAW": {"map", []uintptr{unix.CAP_NET_RAW}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m, device := prepared(t)
			socket := allocate(t, m, device, 0, 1)
			first := startClient(t, tc.way, socket, 0, tc.capabilities...)
			second := startClient(t, tc.way, socket, 1, tc.capabilities...)
			got := make(chan string, 2)
			for _, lines := range []*bufio.Scanner{first, second} {
				go func() {
					lines.Scan()
					got <- lines.Text()
				}()
			}
			// Which queue a frame takes is the kernel's choice; one of the two programs gets it.
			sendFrame(t, "wire0", "hello from the wire")
			if text := <-got; text != "frame: hello from the wire" {
				t.Errorf("got %q", text)
			}
		})
	}
}

func TestEmptyMachineStages(t *testing.T) {
	if !slices.Contains([]string{"", stageNamespace}, os.Getenv(stageVariable)) {
		t.Errorf("stage is %q", strings.TrimSpace(os.Getenv(stageVariable)))
	}
}
