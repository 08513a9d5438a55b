// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/xdpclient"
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
	return m, prepareNIC(t, m)
}

// prepareNIC gives a manager the first of two veth interfaces.
func prepareNIC(t *testing.T, m *Manager) bypass.Device {
	t.Helper()
	makeVeth(t)
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
	return device
}

func allocate(t *testing.T, m *Manager, device bypass.Device, queues ...int) string {
	t.Helper()
	shares := make([]bypass.Share, 0, len(queues))
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

// TestAddressesOfNICs: a container learns what its frames carry, which it cannot read from outside the network namespace of the NIC.
func TestAddressesOfNICs(t *testing.T) {
	m, device := prepared(t)
	found, err := net.InterfaceByName("nic0")
	if err != nil {
		t.Fatal(err)
	}
	share := []bypass.Share{{ID: testAddress + "-0", Device: device, Queues: []int{0}}}
	expect := func(when, want string) {
		t.Helper()
		edits, err := m.Allocate(share)
		if err != nil {
			t.Fatal(err)
		}
		is := edits.Environment[len(edits.Environment)-1]
		if diff := cmp.Diff(bypass.Variable{Name: "AFXDP_ADDRESSES_FAST_NICS", Value: want}, is); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	expect("without an address", "nic0="+found.HardwareAddr.String())
	ip(t, "address", "add", "192.0.2.7/24", "dev", "nic0")
	ip(t, "address", "add", "192.0.2.6/24", "dev", "nic0")
	expect("with two", "nic0="+found.HardwareAddr.String()+"/192.0.2.7")
}

const nobody = 65534

// mountedFor mounts the folder of an allocation where a container would see it, as the kubelet does, and returns the path
// of the socket there.
func mountedFor(t *testing.T, socket string) string {
	t.Helper()
	// Not below a folder of t, which only root enters.
	seen := filepath.Join(os.Getenv(folderVariable), "container"+strconv.FormatInt(time.Now().UnixNano(), 10))
	err := errors.Join(os.Mkdir(seen, 0o755), unix.Mount(filepath.Dir(socket), seen, "", unix.MS_BIND, ""),
		unix.Mount("", seen, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(unix.Unmount(seen, unix.MNT_DETACH), os.Remove(seen)); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(seen, SocketName)
}

// startClient runs a program as nobody, with some capabilities or none, until it is ready to receive.
func startClient(t *testing.T, way, socket string, queue int, capabilities ...uintptr) *bufio.Scanner {
	t.Helper()
	command := exec.Command("/proc/self/exe", way, mountedFor(t, socket), "nic0", strconv.Itoa(queue))
	command.Env = []string{stageVariable + "=" + stageClient}
	command.Stderr = os.Stderr
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

// TestOtherUsersOfTheHost: the socket of an allocation is reached from its container and by nobody else, although the
// kubelet made the folder open to everybody before the plugin ran.
func TestOtherUsersOfTheHost(t *testing.T) {
	m := testManager(t)
	if err := os.MkdirAll(m.Folder, 0o755); err != nil {
		t.Fatal(err)
	}
	device := prepareNIC(t, m)
	socket := allocate(t, m, device, 0)
	mine, other := mountedFor(t, socket), mountedFor(t, allocate(t, m, device, 1))
	cases := map[string]struct {
		path string
		want string
	}{
		"by the path on the host":            {socket, "permission denied"},
		"in the container of the allocation": {mine, ""},
		"in the container of another one":    {other, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			answer := asNobody(t, "dial", tc.path, "nic0", "0")
			if tc.want == "" && answer != "/host_ok" || !strings.Contains(answer, tc.want) {
				t.Errorf("the answer is %q, want %q", answer, tc.want)
			}
		})
	}
	if answer := asNobody(t, "list", m.Folder, "nic0", "0"); !strings.Contains(answer, "permission denied") {
		t.Errorf("another user lists the folder: %s", answer)
	}
	if answer := asNobody(t, "replace", mine, "nic0", "0"); !strings.Contains(answer, "read-only file system") {
		t.Errorf("a container replaces its socket: %s", answer)
	}
}

// asNobody runs a program as nobody, without any capability, and returns what it says.
func asNobody(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command("/proc/self/exe", arguments...)
	command.Env = []string{stageVariable + "=" + stageClient}
	command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	output, err := command.Output()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// TestRestart: frames reach a running program while no plugin runs, and a program that starts after the plugin was
// restarted finds the socket in the folder that it has.
func TestRestart(t *testing.T) {
	m, device := prepared(t)
	socket := allocate(t, m, device, 0, 1)
	running := []*bufio.Scanner{startClient(t, "socket", socket, 0), startClient(t, "socket", socket, 1)}
	m.Close()
	got := make(chan string, 2)
	for _, lines := range running {
		go func() {
			lines.Scan()
			got <- lines.Text()
		}()
	}
	sendFrame(t, "wire0", "nobody is there")
	if text := <-got; text != "frame: nobody is there" {
		t.Errorf("got %q", text)
	}
	if _, err := xdpclient.Dial(socket); err == nil {
		t.Error("the socket of a plugin that ended can be connected to")
	}
	killed := []string{filepath.Join(m.Folder, ".0123456789abcdef.json123"), filepath.Join(m.reports(), "."+testPool().Name+"123")}
	for _, file := range killed {
		err := errors.Join(makeFolder(filepath.Dir(file)), os.WriteFile(file, nil, 0o600), os.Chtimes(file, time.Unix(0, 0), time.Unix(0, 0)))
		if err != nil {
			t.Fatal(err)
		}
	}
	if problems := m.Prepare(testPool(), []bypass.Device{device}); len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, file := range killed {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was left by a process that was killed: %v", file, err)
		}
	}
	one, err := xdpclient.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	want := "/host_ok /fd_ack"
	if is := transcript(t, one, "/connect,trader-1", "/xsk_map_fd,nic0"); is != want {
		t.Errorf("the new process answers %q, want %q", is, want)
	}
}

// TestAwayAfterRestart: a NIC whose interface is in a pod cannot be attached, and the pod may ask for its map.
func TestAwayAfterRestart(t *testing.T) {
	m, device := prepared(t)
	socket := allocate(t, m, device, 0)
	m.Close()
	away := device
	away.NIC.Name = host.Absent[string]("", "no interface on this device")
	if problems := m.Prepare(testPool(), []bypass.Device{away}); len(problems) > 0 {
		t.Fatal(problems)
	}
	one, err := xdpclient.Dial(socket)
	if err != nil {
		t.Fatal(err)
	}
	if is := transcript(t, one, "/connect,a", "/xsk_map_fd,nic0"); is != "/host_ok /fd_ack" {
		t.Errorf("answers are %q", is)
	}
}

// verdictOf runs the program of the NIC on a frame of queue 0, as if it were received on the loopback interface.
func verdictOf(t *testing.T, m *Manager, frame []byte) uint32 {
	t.Helper()
	program, err := loadProgram(m.nics[testAddress].queues, m.nics[testAddress].ports)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	verdict, err := program.Run(&ebpf.RunOptions{Data: frame})
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

const verdictRedirect = 4

// boundSocket makes a socket on queue 0 of nic0, as a container would.
func boundSocket(t *testing.T) int {
	t.Helper()
	device, err := net.InterfaceByName("nic0")
	if err != nil {
		t.Fatal(err)
	}
	memory, _, err := xdpclient.NewMemory()
	if err != nil {
		t.Fatal(err)
	}
	socket, err := newSocket(memory, device.Index, geometry{0, xdpclient.ChunkBytes, xdpclient.RingEntries}, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(unix.Close(socket), unix.Close(memory)) })
	return socket
}

func (m *Manager) mapOf(t *testing.T, queue int) *ebpf.Map {
	t.Helper()
	for _, allocation := range m.allocations {
		if allocation.holds(testAddress, queue) {
			sockets, err := allocation.NICs[0].sockets.Clone()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = sockets.Close() })
			return sockets
		}
	}
	t.Fatalf("nobody holds queue %d", queue)
	return nil
}

// TestQueuesAreSeparate: a container reaches its own queues by its map, others do nothing, and a map of an earlier
// container does nothing any more.
func TestQueuesAreSeparate(t *testing.T) {
	m, device := prepared(t)
	frame := make([]byte, 64)
	socket := boundSocket(t)
	allocate(t, m, device, 0)
	first := m.mapOf(t, 0)
	allocate(t, m, device, 1)
	second := m.mapOf(t, 1)
	enter := func(sockets *ebpf.Map) {
		if err := sockets.Put(uint32(0), uint32(socket)); err != nil {
			t.Fatal(err)
		}
	}
	enter(second)
	if is := verdictOf(t, m, frame); is != xdpPass {
		t.Errorf("the holder of queue 1 takes frames of queue 0: verdict %d", is)
	}
	enter(first)
	if is := verdictOf(t, m, frame); is != verdictRedirect {
		t.Errorf("the holder of queue 0 gets no frames: verdict %d", is)
	}
	allocate(t, m, device, 0)
	if is := verdictOf(t, m, frame); is != xdpPass {
		t.Errorf("the map of an earlier container is still in force: verdict %d", is)
	}
	enter(first)
	if is := verdictOf(t, m, frame); is != xdpPass {
		t.Errorf("an earlier container takes the queue back: verdict %d", is)
	}
}

// TestAllocationLosesQueues: the container that keeps some of its queues is still served, for these alone, also after a
// restart; one that keeps none is not.
func TestAllocationLosesQueues(t *testing.T) {
	m, device := prepared(t)
	socket := allocate(t, m, device, 0, 1)
	allocate(t, m, device, 1)
	ask := func() string {
		one, err := xdpclient.Dial(socket)
		if err != nil {
			return "refused"
		}
		memory, _, err := xdpclient.NewMemory()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Close(memory) }()
		answers := []string{transcript(t, one, "/connect,a", "/xsk_map_fd,nic0")}
		for _, queue := range []string{"0", "1"} {
			answer, file, err := one.Ask("/xsk_socket,nic0,"+queue+",4096,64", memory)
			if err != nil {
				t.Fatal(err)
			}
			if file >= 0 {
				_ = unix.Close(file)
			}
			answers = append(answers, answer)
		}
		return strings.Join(answers, " ")
	}
	const want = "/host_ok /fd_ack /fd_ack /fd_nak"
	if is := ask(); is != want {
		t.Errorf("answers are %q, want %q", is, want)
	}
	m.Close()
	m.Prepare(testPool(), []bypass.Device{device})
	if is := ask(); is != want {
		t.Errorf("answers after a restart are %q, want %q", is, want)
	}
	allocate(t, m, device, 0)
	if is := ask(); is != "refused" {
		t.Errorf("answers without a queue are %q", is)
	}
	pins, err := filepath.Glob(filepath.Join(m.Pins, "*", "*"))
	if err != nil || len(pins) != 4 {
		t.Errorf("pinned are %v, want the link, the queues and two maps: %v", pins, err)
	}
}

// datagram is an Ethernet frame with a UDP datagram to a port, with tags of VLANs.
func datagram(version int, port uint16, tags ...uint16) []byte {
	frame := make([]byte, 12, 100)
	for _, tag := range tags {
		frame = append(binary.BigEndian.AppendUint16(frame, tag), 0, 7)
	}
	var header []byte
	if version == 4 {
		header = make([]byte, ipv4Header)
		header[0], header[ipv4Protocol] = ipv4Begin, protocolUDP
		frame = binary.BigEndian.AppendUint16(frame, typeIPv4)
	} else {
		header = make([]byte, ipv6Header)
		header[0], header[ipv6NextHeader] = 0x60, protocolUDP
		frame = binary.BigEndian.AppendUint16(frame, typeIPv6)
	}
	frame = append(append(frame, header...), 0xaa, 0xaa)
	frame = binary.BigEndian.AppendUint16(frame, port)
	return append(frame, 0, 8, 0, 0)
}

func changed(frame []byte, offset int, value byte) []byte {
	frame[offset] = value
	return frame
}

func TestSteering(t *testing.T) {
	m, device := prepared(t)
	pool := testPool()
	pool.Spec.Stack.AFXDP.Steering = v1alpha1.AFXDPSteeringSpec{Type: v1alpha1.SteeringUDPPorts, UDPPorts: []int32{30002, 30001}}
	if problems := m.Prepare(pool, []bypass.Device{device}); len(problems) > 0 {
		t.Fatal(problems)
	}
	allocate(t, m, device, 0)
	if err := m.mapOf(t, 0).Put(uint32(0), uint32(boundSocket(t))); err != nil {
		t.Fatal(err)
	}
	const ip, tagged = ethernetHeader, ethernetHeader + tagLength
	cases := map[string]struct {
		frame []byte
		want  uint32
	}{
		"first port, IPv4":      {datagram(4, 30001), verdictRedirect},
		"second port, IPv6":     {datagram(6, 30002), verdictRedirect},
		"in a VLAN":             {datagram(4, 30001, typeTag), verdictRedirect},
		"in a service VLAN":     {datagram(6, 30001, typeServiceTag), verdictRedirect},
		"in two VLANs":          {datagram(4, 30001, typeServiceTag, typeTag), xdpPass},
		"another port":          {datagram(4, 30003), xdpPass},
		"another port, IPv6":    {datagram(6, 53), xdpPass},
		"bytes the wrong way":   {datagram(4, 0x3175), xdpPass},
		"TCP":                   {changed(datagram(4, 30001), ip+ipv4Protocol, 6), xdpPass},
		"TCP over IPv6":         {changed(datagram(6, 30001), ip+ipv6NextHeader, 6), xdpPass},
		"with options":          {changed(datagram(4, 30001), ip, 0x46), xdpPass},
		"first fragment":        {changed(datagram(4, 30001), ip+ipv4Fragment, 0x20), xdpPass},
		"later fragment":        {changed(datagram(4, 30001), ip+ipv4Fragment+1, 1), xdpPass},
		"may not be fragmented": {changed(datagram(4, 30001), ip+ipv4Fragment, 0x40), verdictRedirect},
		"fragment in a VLAN":    {changed(datagram(4, 30001, typeTag), tagged+ipv4Fragment, 0x20), xdpPass},
		"cut off":               {datagram(4, 30001)[:40], xdpPass},
		"IPv6, cut off":         {datagram(6, 30001)[:60], xdpPass},
		"ARP":                   {changed(changed(make([]byte, 60), ethernetType, 8), ethernetType+1, 6), xdpPass},
		"nothing but Ethernet":  {make([]byte, 14), xdpPass},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if is := verdictOf(t, m, tc.frame); is != tc.want {
				t.Errorf("verdict is %d, want %d", is, tc.want)
			}
		})
	}
}

// hasProgram reports whether nic0 runs an XDP program in its driver.
func hasProgram(t *testing.T) bool {
	t.Helper()
	output, err := exec.Command("ip", "link", "show", "dev", "nic0").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return strings.Contains(string(output), " xdp ")
}

// TestDetaching: the program leaves a NIC that the pool gives up, but not while a container may hold it.
func TestDetaching(t *testing.T) {
	m, device := prepared(t)
	if !hasProgram(t) {
		t.Error("the program is not attached")
	}
	allocate(t, m, device, 0)
	m.Prepare(testPool(), nil)
	if !hasProgram(t) {
		t.Error("the program was taken off a NIC that a container holds")
	}
	m.revoke(&allocation{NICs: []allocatedNIC{{Address: testAddress, Queues: []int{0}}}})
	m.Prepare(testPool(), nil)
	if hasProgram(t) {
		t.Error("the program stays on a NIC that nobody holds")
	}
	if pins, err := filepath.Glob(filepath.Join(m.Pins, "*")); err != nil || len(pins) > 0 {
		t.Errorf("pinned are still %v: %v", pins, err)
	}
	if problems := m.Prepare(testPool(), []bypass.Device{device}); len(problems) > 0 || !hasProgram(t) {
		t.Errorf("the program does not come back: %v", problems)
	}
}

// TestReplacedNIC: a NIC that was unplugged and plugged in again is attached again, and its containers keep their maps.
func TestReplacedNIC(t *testing.T) {
	m, device := prepared(t)
	allocate(t, m, device, 0)
	ip(t, "link", "delete", "nic0")
	if problems := m.Prepare(testPool(), []bypass.Device{device}); !strings.Contains(problems[testAddress], "interface nic0 is not there") {
		t.Errorf("problems are %v", problems)
	}
	ip(t, "link", "add", "nic0", "type", "veth", "peer", "name", "wire0")
	if problems := m.Prepare(testPool(), []bypass.Device{device}); len(problems) > 0 || !hasProgram(t) {
		t.Errorf("problems are %v", problems)
	}
	if err := m.mapOf(t, 0).Put(uint32(0), uint32(boundSocket(t))); err != nil {
		t.Fatal(err)
	}
	if is := verdictOf(t, m, make([]byte, 64)); is != verdictRedirect {
		t.Errorf("the container gets no frames of the new NIC: verdict %d", is)
	}
}

func TestNICsThatCannotBeAttached(t *testing.T) {
	m := testManager(t)
	makeVeth(t)
	index, err := net.InterfaceByName("nic0")
	if err != nil {
		t.Fatal(err)
	}
	other, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "MIT", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, xdpPass), asm.Return()},
	})
	if err != nil {
		t.Fatal(err)
	}
	attached, err := link.AttachXDP(link.XDPOptions{Program: other, Interface: index.Index})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct{ name, want string }{
		"another program": {"nic0", "another XDP program is on its interface"},
		"no native XDP":   {"lo", "its driver has no native XDP"},
		"no interface":    {"nic7", "interface nic7 is not there"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			problems := m.Prepare(testPool(), []bypass.Device{testDevice(tc.name, 0)})
			if !strings.Contains(problems[testAddress], tc.want) || !strings.HasSuffix(problems[testAddress], ".") {
				t.Errorf("problems are %v, want %q", problems, tc.want)
			}
			if _, err := m.Allocate([]bypass.Share{{ID: "a", Device: testDevice(tc.name, 0), Queues: []int{0}}}); err == nil {
				t.Error("a NIC without the program was handed out")
			}
		})
	}
	if err := errors.Join(attached.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if problems := m.Prepare(testPool(), []bypass.Device{testDevice("nic0", 0)}); len(problems) > 0 {
		t.Errorf("problems of a NIC that is free again are %v", problems)
	}
	if err := m.nics[testAddress].detach(); err != nil {
		t.Error(err)
	}
}

// reported is what a manager tells the agent.
func reported(t *testing.T, m *Manager) host.SocketReport {
	t.Helper()
	// The folder of the manager stands for the one on a host.
	root := t.TempDir()
	copied := filepath.Join(root, host.SocketReports)
	for _, folder := range []string{filepath.Dir(copied), filepath.Join(root, "proc"), filepath.Join(root, "sys")} {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(m.Folder, "reports"))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	opened, err := host.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	facts, err := opened.ReadNICs(t.Context(), host.Request{})
	if err != nil {
		t.Fatal(err)
	}
	return facts.Bypass.SocketReports.Value[m.pool.Name]
}

// TestReports: the agent learns of a NIC that cannot be attached, until it can or the pool has another stack.
func TestReports(t *testing.T) {
	m, device := prepared(t)
	if is := reported(t, m); len(is) > 0 {
		t.Errorf("a NIC that is attached is reported: %v", is)
	}
	lost := testDevice("nic7", 0)
	lost.NIC.PCIAddress = "0000:3b:00.1"
	problems := m.Prepare(testPool(), []bypass.Device{device, lost})
	want := host.SocketReport{"0000:3b:00.1": problems["0000:3b:00.1"]}
	if is := reported(t, m); want["0000:3b:00.1"] == "" || !maps.Equal(is, want) {
		t.Errorf("reported is %v, want %v", is, want)
	}
	m.Prepare(testPool(), []bypass.Device{device})
	if is := reported(t, m); len(is) > 0 {
		t.Errorf("a NIC that left the pool is reported: %v", is)
	}
	m.Prepare(testPool(), []bypass.Device{device, lost})
	other := testPool()
	other.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO}
	m.Prepare(other, []bypass.Device{device, lost})
	if is := reported(t, m); len(is) > 0 {
		t.Errorf("a pool of another stack reports %v", is)
	}
	m.Prepare(testPool(), []bypass.Device{device})
}

// TestStackChanges: the program leaves the NICs of a pool that gets another stack.
func TestStackChanges(t *testing.T) {
	m, device := prepared(t)
	pool := testPool()
	pool.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackVFIO}
	if problems := m.Prepare(pool, []bypass.Device{device}); len(problems) > 0 || hasProgram(t) {
		t.Errorf("the program stays: %v", problems)
	}
	edits, err := m.Allocate([]bypass.Share{{ID: testAddress, Device: device}})
	if err != nil || len(edits.Mounts) > 0 {
		t.Errorf("a container gets %+v, %v", edits, err)
	}
	if problems := m.Prepare(testPool(), []bypass.Device{device}); len(problems) > 0 || !hasProgram(t) {
		t.Errorf("the program does not come back: %v", problems)
	}
}

func TestOtherStacks(t *testing.T) {
	m := &Manager{Pins: "/nowhere", Folder: "/nowhere"}
	pool := bypass.Pool{Name: "x2", Spec: v1alpha1.BypassNICPoolSpec{Stack: v1alpha1.BypassStack{Type: v1alpha1.StackVFIO}}}
	if problems := m.Prepare(pool, []bypass.Device{testDevice("nic0", 0)}); len(problems) > 0 {
		t.Errorf("problems are %v", problems)
	}
	edits, err := m.Allocate([]bypass.Share{{ID: "a"}})
	if err != nil || len(edits.Mounts)+len(edits.Environment) > 0 {
		t.Errorf("a container gets %+v, %v", edits, err)
	}
	m.Close()
}
