// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/hack/pictures/latencypicture"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/afxdp"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// The device plugin of a node is another process of this test binary, in the network namespace of the node.
const (
	pluginVariable = "LOWLATENCY_AFXDP_PLUGIN"
	folderVariable = "LOWLATENCY_AFXDP_FOLDER"
	// steeredPort is the one of the first queue, and otherPort that of the next.
	steeredPort, otherPort = 30001, 30002
)

// given is what the device plugin has for the container of a pod.
type given struct {
	// Problem says why there is nothing.
	Problem string
	Edits   bypass.Edits
}

// socketPool is the pool of a node. Its NIC, one of two virtual interfaces, copies frames.
func socketPool(node string) *v1alpha1.BypassNICPool {
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: node + "-sockets"}}
	pool.Spec.ResourceName = "lowlatency.dev/" + pool.Name
	pool.Spec.Stack = v1alpha1.BypassStack{Type: v1alpha1.StackAFXDP, AFXDP: &v1alpha1.AFXDPStack{
		ZeroCopy: v1alpha1.ZeroCopyPreferred, Queues: v1alpha1.AFXDPQueuesSpec{Count: 1},
		Steering: v1alpha1.AFXDPSteeringSpec{Type: v1alpha1.SteeringUDPPorts, UDPPorts: []int32{otherPort, steeredPort}},
	}}
	return pool
}

// interfaceOf is the NIC of a node.
func interfaceOf(node string) string { return map[string]string{"near": "v0", "far": "v1"}[node] }

// plugin is the device plugin of a node until its input ends. It hands out the first queue.
func plugin(node string) int {
	var out given
	edits, err := handOut(node, os.Getenv(folderVariable))
	if err != nil {
		out.Problem = err.Error()
	}
	out.Edits = edits
	if err := json.NewEncoder(os.Stdout).Encode(out); err != nil {
		return 1
	}
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return 0
}

func handOut(node, folder string) (bypass.Edits, error) {
	pins := filepath.Join(folder, "bpf")
	if err := errors.Join(os.MkdirAll(pins, 0o700), unix.Mount("bpf", pins, "bpf", 0, "mode=0700")); err != nil {
		return bypass.Edits{}, fmt.Errorf("no BPF file system: %w", err)
	}
	made := socketPool(node)
	pool := bypass.Pool{Name: made.Name, Spec: made.Spec}
	const address = "0000:3b:00.0"
	device := bypass.Device{
		NIC: host.NIC{PCIAddress: address, Name: host.Known(interfaceOf(node), "")}, Health: v1alpha1.NICHealthy, Shared: true, Units: 1, Queues: []int{0},
	}
	manager := &afxdp.Manager{Pins: filepath.Join(pins, "nics"), Folder: filepath.Join(folder, "run")}
	if problems := manager.Prepare(pool, []bypass.Device{device}); len(problems) > 0 {
		return bypass.Edits{}, errors.New(problems[address])
	}
	id := bypass.DeviceIDs(device)[0]
	return manager.Allocate([]bypass.Share{{ID: id, Device: device, Queues: bypass.QueuesOf(device, id)}})
}

// newSocketCluster is a cluster whose pods have a unit of a pool with stack AFXDP, and no capability.
func newSocketCluster(t *testing.T, change func(*v1alpha1.LatencyTestSpec)) *cluster {
	t.Helper()
	c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
		spec.Traffic.Server.BypassNICPool, spec.Traffic.Client = "far-sockets", &v1alpha1.TestEnd{BypassNICPool: "near-sockets"}
		spec.Budget.Path = v1alpha1.LatencyPathAccelerated
		change(spec)
	})
	c.world.Pools = []*v1alpha1.BypassNICPool{socketPool("near"), socketPool("far")}
	c.oneQueue()
	return c
}

// oneQueue gives both interfaces a single queue, so that no frame chooses another.
func (c *cluster) oneQueue() {
	c.t.Helper()
	near, far := c.spaces["near"], c.spaces["far"]
	const queues = " numrxqueues 1 numtxqueues 1"
	for _, command := range []string{
		"-n " + near + " link del v0", "link add v0 netns " + near + queues + " type veth peer name v1 netns " + far + queues,
		"-n " + near + " addr add " + nearAddress + "/24 dev v0", "-n " + far + " addr add " + farAddress + "/24 dev v1",
		"-n " + near + " link set v0 up", "-n " + far + " link set v1 up",
	} {
		run(c.t, "ip", strings.Fields(command)...)
	}
}

// sockets starts the device plugins of nodes, and lets the pods find what they hand out where the kubelet would put it.
func (c *cluster) sockets(nodes ...string) {
	c.t.Helper()
	// The folder of all is a file system of its own, which goes with the namespace.
	script, variables := []string{"mkdir -p " + afxdp.ContainerFolder, "mount -t tmpfs none " + afxdp.ContainerFolder}, []string{"env"}
	for _, node := range nodes {
		edits := c.startPlugin(node)
		for _, mount := range edits.Mounts {
			script = append(script, "mkdir -p "+mount.ContainerPath, "mount --bind "+mount.HostPath+" "+mount.ContainerPath)
		}
		for _, variable := range edits.Environment {
			variables = append(variables, variable.Name+"="+variable.Value)
		}
	}
	c.before = slices.Concat([]string{"sh", "-c", strings.Join(append(script, `exec "$@"`), " && "), "sh"}, variables,
		[]string{"setpriv", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"})
}

// startPlugin starts the device plugin of a node. Without XDP in the kernel the test is skipped, and in CI it fails.
func (c *cluster) startPlugin(node string) bypass.Edits {
	c.t.Helper()
	folder, err := os.MkdirTemp("", "afxdp")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = os.RemoveAll(folder) })
	command := exec.Command("ip", "netns", "exec", c.spaces[node], "/proc/self/exe")
	command.Args[len(command.Args)-1], _ = os.Executable()
	command.Env = append(os.Environ(), pluginVariable+"="+node, folderVariable+"="+folder)
	command.Stderr = os.Stderr
	in, inErr := command.StdinPipe()
	out, outErr := command.StdoutPipe()
	if err := errors.Join(inErr, outErr, command.Start()); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = in.Close()
		if err := command.Wait(); err != nil {
			c.t.Errorf("the device plugin of node %s ended with %v", node, err)
		}
	})
	var got given
	if err := json.NewDecoder(out).Decode(&got); err != nil {
		c.t.Fatal(err)
	}
	if got.Problem != "" {
		reason := "this kernel gives no socket of AF_XDP: " + got.Problem
		if os.Getenv("CI") != "" {
			c.t.Fatal(reason + ", and in CI no test is skipped")
		}
		c.t.Skip(reason)
	}
	return got.Edits
}

// TestFramesFromApplyToVerdict: each kind measures over AF_XDP, by pods without any right, and the kernel's stack sees no message.
func TestFramesFromApplyToVerdict(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.LatencyTestSpec){
		"one at a time": func(spec *v1alpha1.LatencyTestSpec) { spec.PingPong.Sizes = []int32{64, 0, 1, 1472} },
		"on a schedule": sweeps(500, 2000),
		"in a search":   searches(500, 500, 1000, func(*v1alpha1.LoadSearchTest) {}),
	} {
		t.Run(name, func(t *testing.T) {
			c := newSocketCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
				path := spec.Budget.Path
				change(spec)
				spec.Budget.Path = path
			})
			c.sockets("near", "far")
			c.measures()
			r := c.result()
			if r.Measured == nil || r.Measured.Network == nil || r.Measured.Network.Path != v1alpha1.LatencyPathAccelerated {
				t.Fatalf("%s %s: %s", r.Outcome, r.Reason, r.Message)
			}
			if r.Outcome != v1alpha1.LatencyPassed && r.Reason != v1alpha1.TestGeneratorLimit {
				t.Errorf("%s %s: %s", r.Outcome, r.Reason, r.Message)
			}
			t.Log(r.Measured.Network.PathMessage)
		})
	}
}

// TestPodWithoutSocket: what the plugin has not given is no measurement, and the reason is said.
func TestPodWithoutSocket(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes  []string
		change string
		want   string
	}{
		"no unit":            {[]string{"far"}, "", "the container has no variable AFXDP_QUEUES_NEAR_SOCKETS"},
		"another queue":      {[]string{"near", "far"}, "AFXDP_QUEUES_NEAR_SOCKETS=v0:1", "the device plugin gives no socket on queue 1 of v0"},
		"no address":         {[]string{"near", "far"}, "AFXDP_ADDRESSES_NEAR_SOCKETS=v0=02:00:00:00:00:01", "interface v0 has no address of IPv4"},
		"a plugin of before": {[]string{"near", "far"}, "AFXDP_ADDRESSES_NEAR_SOCKETS=", "is the device plugin of an older release?"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSocketCluster(t, func(*v1alpha1.LatencyTestSpec) {})
			c.sockets(tc.nodes...)
			c.step()
			c.pod()
			c.step()
			c.before = append(c.before, "env", tc.change)
			if tc.change == "" {
				c.before = c.before[:len(c.before)-2]
			}
			c.ends(c.pod())
			c.step()
			c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestMeasurementFailed)
			if message := c.result().Message; !strings.Contains(message, tc.want) {
				t.Errorf("the message is %q, want %q", message, tc.want)
			}
		})
	}
}

// withoutFrames lets the pod of an end use sockets of the C library.
const withoutFrames = "--afxdp-pool="

// TestClientWithoutFrames: a server that sends frames serves a client of sockets, too.
func TestClientWithoutFrames(t *testing.T) {
	c := newSocketCluster(t, func(spec *v1alpha1.LatencyTestSpec) { spec.Budget.Path = "" })
	c.sockets("near", "far")
	c.step()
	c.pod()
	c.step()
	c.ends(c.pod(withoutFrames))
	c.step()
	c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
	if path := c.result().Measured.Network.Path; path != v1alpha1.LatencyPathKernel {
		t.Errorf("the path is %s", path)
	}
}

// TestServerWithoutFrames: a client that sends frames is told what its server lacks.
func TestServerWithoutFrames(t *testing.T) {
	c := newSocketCluster(t, func(*v1alpha1.LatencyTestSpec) {})
	c.sockets("near", "far")
	c.step()
	c.pod(withoutFrames)
	c.step()
	c.ends(c.pod())
	c.step()
	c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestRefused)
	if message := c.result().Message; !strings.Contains(message, "both ends need one") {
		t.Error(message)
	}
}

// forgery changes the frame of an answer before it is sent.
type forgery func(frame []byte) []byte

// Offsets in a frame of Ethernet with a datagram of UDP over IPv4.
const (
	atIP, atUDP, atMessage                                 = 14, 34, 42
	atTotal, atNumber, atFragment, atChecksum, atIPAddress = atIP + 2, atIP + 4, atIP + 6, atIP + 10, atIP + 12
)

// sealed has the checksum of its header renewed.
func sealed(frame []byte) []byte {
	copy(frame[atChecksum:], []byte{0, 0})
	sum := checksum(0, frame[atIP:atUDP])
	frame[atChecksum], frame[atChecksum+1] = byte(^sum>>8), byte(^sum)
	return frame
}

// checksum adds up 16-bit numbers as RFC 1071 has it.
func checksum(sum uint32, bytes []byte) uint16 {
	for i, b := range bytes {
		sum += uint32(b) << (8 * ((i + 1) % 2))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// set changes bytes.
func set(at int, bytes ...byte) forgery {
	return func(frame []byte) []byte {
		copy(frame[at:], bytes)
		return sealed(frame)
	}
}

// withUDPChecksum fills in the checksum of the datagram, and adds to it.
func withUDPChecksum(added uint16) forgery {
	return func(frame []byte) []byte {
		length := int(frame[atUDP+4])<<8 | int(frame[atUDP+5])
		copy(frame[atUDP+6:], []byte{0, 0})
		sum := ^checksum(uint32(checksum(unix.IPPROTO_UDP+uint32(length), frame[atIPAddress:atUDP])), frame[atUDP:atUDP+length]) + added
		frame[atUDP+6], frame[atUDP+7] = byte(sum>>8), byte(sum)
		return frame
	}
}

// TestForgedFrames: before each answer comes one that says something else. What is not from the peer, not whole or not of this session is not taken
// for the answer, and what a network may change is.
func TestForgedFrames(t *testing.T) {
	// A message that is another, in a frame that is as it should be, ends the measurement.
	lie := func(frame []byte) []byte {
		frame[atMessage+20] ^= 0xff
		return frame
	}
	for name, tc := range map[string]struct {
		forge  forgery
		reason string
	}{
		"nothing forged":               {set(0), v1alpha1.TestWrongAnswer},
		"another time to live":         {set(atIP+8, 1), v1alpha1.TestWrongAnswer},
		"a checksum of UDP":            {withUDPChecksum(0), v1alpha1.TestWrongAnswer},
		"a wrong checksum of UDP":      {withUDPChecksum(1), ""},
		"to another steered port":      {set(atUDP+2, otherPort>>8, otherPort&0xff), ""},
		"to another port":              {set(atUDP+2, 1, 2), ""},
		"from another port":            {set(atUDP, 1, 2), ""},
		"from another MAC":             {set(6, 2, 0, 0, 0, 0, 9), ""},
		"to another MAC":               {set(0, 2, 0, 0, 0, 0, 9), ""},
		"to everybody":                 {set(0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), ""},
		"from another address":         {set(atIPAddress+3, 9), ""},
		"to another address":           {set(atIPAddress+7, 9), ""},
		"of another session":           {func(f []byte) []byte { f[atNumber] ^= 1; return sealed(f) }, ""},
		"a first fragment":             {set(atFragment, 0x20, 0), ""},
		"a later fragment":             {set(atFragment, 0, 9), ""},
		"options of IP":                {set(atIP, 0x46), ""},
		"a wrong checksum of IP":       {func(f []byte) []byte { f[atChecksum] ^= 1; return f }, ""},
		"truncated":                    {func(f []byte) []byte { return f[:len(f)-1] }, ""},
		"without a message":            {func(f []byte) []byte { return f[:atMessage] }, ""},
		"longer inside than around":    {set(atUDP+4, 0xff), ""},
		"shorter inside than a header": {set(atUDP+4, 0, 7), ""},
		"TCP":                          {set(atIP+9, unix.IPPROTO_TCP), ""},
		"a tag of a VLAN": {func(f []byte) []byte {
			return slices.Concat(f[:12], []byte{0x81, 0, 0, 7}, f[12:])
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newSocketCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
				// The client asks the rings again and again; those of the other tests sleep.
				spec.Traffic.Waiting = v1alpha1.WaitingSpin
				spec.PingPong.Sizes, spec.Repetitions, spec.Budget.Path = []int32{64}, 1, ""
			})
			c.sockets("near")
			c.step()
			c.played()
			c.forges(func(answer []byte) []byte { return tc.forge(lie(answer)) })
			c.step()
			c.ends(c.pod("--warm-up=0"))
			c.step()
			if tc.reason != "" {
				c.expect(v1alpha1.LatencyInconclusive, tc.reason)
				return
			}
			c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
		})
	}
}

// TestFramesThatNobodyAnswers: the most likely reason is said, which is a NIC that sends them to another queue.
func TestFramesThatNobodyAnswers(t *testing.T) {
	c := newSocketCluster(t, func(*v1alpha1.LatencyTestSpec) {})
	c.sockets("near")
	c.expectOf(func(c *cluster) { c.forges(nil) }, v1alpha1.TestNoAnswer)
	if message := c.result().Message; !strings.Contains(message, "as those to port 30001 to queue 0 of v0 here?") {
		t.Error(message)
	}
}

// forges is a server that speaks the protocol, and answers each frame twice: first with what is forged of the answer, and then with the answer.
func (c *cluster) forges(forge forgery) {
	c.t.Helper()
	w := &wire{forge: forge, ended: make(chan struct{}), stopped: make(chan struct{})}
	c.inFar(w.open)
	go w.answers()
	c.t.Cleanup(w.close)
	c.listens(func(peer net.Conn) {
		questions := bufio.NewScanner(peer)
		for questions.Scan() {
			switch word, _, _ := strings.Cut(questions.Text(), " "); word {
			case "lowlatency-traffic":
				_, _ = fmt.Fprintf(peer, "ok %d 0 far 6.1\nintroduced\n", steeredPort)
			case "frames":
				_, _ = fmt.Fprintf(peer, "frames %s %s %d\nopen\n", w.device.HardwareAddr, farAddress, steeredPort)
			case "counts":
				_, _ = fmt.Fprintln(peer, "counts 0 0 0 0")
			case "counters":
				_, _ = fmt.Fprintln(peer, notCounted)
			default:
				_, _ = fmt.Fprintln(peer, "ready")
			}
		}
	})
}

// wire is the interface of the far node, as whoever sees every frame of it has it.
type wire struct {
	// forge is nil for a wire on which nothing comes back.
	forge          forgery
	socket         int
	device         *net.Interface
	ended, stopped chan struct{}
}

func (w *wire) open() error {
	var err error
	if w.device, err = net.InterfaceByName(interfaceOf("far")); err != nil {
		return err
	}
	const everything = unix.ETH_P_ALL>>8 | unix.ETH_P_ALL<<8&0xff00
	if w.socket, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, everything); err != nil {
		return err
	}
	return errors.Join(unix.Bind(w.socket, &unix.SockaddrLinklayer{Protocol: everything, Ifindex: w.device.Index}),
		unix.SetsockoptTimeval(w.socket, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Usec: 100_000}))
}

// close waits for the last answer.
func (w *wire) close() {
	close(w.ended)
	<-w.stopped
	_ = unix.Close(w.socket)
}

// answers sends back what comes until the end.
func (w *wire) answers() {
	defer close(w.stopped)
	frame := make([]byte, 2048)
	for {
		select {
		case <-w.ended:
			return
		default:
		}
		n, from, err := unix.Recvfrom(w.socket, frame, 0)
		if link, isLink := from.(*unix.SockaddrLinklayer); err != nil || !isLink || link.Pkttype == unix.PACKET_OUTGOING || !isMessage(frame[:n]) {
			continue
		}
		if w.forge == nil {
			continue
		}
		answer := turned(frame[:n])
		for _, one := range [][]byte{w.forge(slices.Clone(answer)), answer} {
			_ = unix.Sendto(w.socket, one, 0, &unix.SockaddrLinklayer{Ifindex: w.device.Index, Halen: 6})
		}
	}
}

// isMessage reports whether a frame is a message of the client.
func isMessage(frame []byte) bool {
	return len(frame) > atMessage && frame[atIP] == 0x45 && frame[atIP+9] == unix.IPPROTO_UDP && int(frame[atUDP+2])<<8|int(frame[atUDP+3]) == steeredPort
}

// turned is a frame that goes back.
func turned(frame []byte) []byte {
	back := slices.Clone(frame)
	for _, swap := range []struct{ one, other, bytes int }{{0, 6, 6}, {atIPAddress, atIPAddress + 4, 4}, {atUDP, atUDP + 2, 2}} {
		copy(back[swap.one:], frame[swap.other:swap.other+swap.bytes])
		copy(back[swap.other:], frame[swap.one:swap.one+swap.bytes])
	}
	return back
}

// newSocketsAndFrames is a cluster whose tests may have pods in the network of the nodes, where the NICs of the sockets are.
func newSocketsAndFrames(t *testing.T, change func(*v1alpha1.LatencyTestSpec)) *cluster {
	t.Helper()
	c := newSocketCluster(t, change)
	c.world.HostNamespace = c.world.Test.Namespace
	c.sockets("near", "far")
	return c
}

// TestFramesBesideTheKernel: the sample compares, on one NIC at each end, the kernel's sockets with frames, in turns. The pods of the kernel's side are in the network
// of the node, where the NIC is; here those of both are. Each side is found on its path, and the ratio has its interval: which is faster says this machine.
func TestFramesBesideTheKernel(t *testing.T) {
	sample, err := latencypicture.ReadSample("../..", "frames-beside-kernel")
	if err != nil {
		t.Fatal(err)
	}
	c := newSocketsAndFrames(t, func(spec *v1alpha1.LatencyTestSpec) {
		*spec = latencypicture.Scaled(sample)
		spec.Repetitions = 5
		spec.Budget.Ratios[0].MaximumPartsPerThousand = 5000
	})
	c.inTurns(everyJob)
	m := c.result().Measured
	if m == nil {
		t.Fatalf("%+v", c.result())
	}
	c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
	for _, side := range m.Network.Comparison.Sides {
		t.Logf("%s: %s: %s", side.Side, side.Path, side.PathMessage)
		if side.Path != side.WantedPath || len(side.RepetitionMediansNanoseconds) != 5 || len(side.Sizes) != 2 || side.Sizes[0].Samples < 1000 {
			t.Errorf("%+v", side)
		}
	}
	if ratio := qualification.RatioOf(&m.Network.Comparison.Sides[1], 64, v1alpha1.P50); ratio == nil || ratio.HighPartsPerThousand <= ratio.LowPartsPerThousand {
		t.Errorf("%+v", ratio)
	}
}
