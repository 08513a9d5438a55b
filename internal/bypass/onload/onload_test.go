// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	interfaceVersion = "0123456789abcdef0123456789abcdef"
	separator        = "============================================================\n"
	endOfSocket      = "------------------------------------------------------------\n"
)

// head is how the text about a stack begins.
func head(id int, name string) string {
	return separator + fmt.Sprintf("ci_netif_dump_to_logger: stack=%d name=%s\n  cplane_pid=40\n", id, name) +
		"  namespace=net:[4026532001]\n  Onload 9.1.0.15  uid=1001 pid=70 ns_flags=a0\n" +
		fmt.Sprintf("ci_netif_dump_vi: stack=%d intf=0 dev=? hw=2A1\n  txq: pio_buf_size=0 tot_pkts=9 bytes=0\n", id) +
		fmt.Sprintf("ci_netif_dump_extra_to_logger: stack=%d\n  uk_intf_ver=%s\n", id, interfaceVersion)
}

// udp is the text about a socket of UDP.
func udp(stack, id int, local string, user, kernel, percent int) string {
	return fmt.Sprintf("UDP %d:%d lcl=%s rmt=0.0.0.0:0 UDP\n  lock: 0 \n  udpflags: FILT BIND \n", stack, id, local) +
		fmt.Sprintf("  rcv: q_pkts=0 reap=0 tot_pkts=%d\n  rcv: oflow_drop=0(0%%) mem_drop=0 eagain=0 pktinfo=0 q_max_pkts=1\n", user) +
		fmt.Sprintf("  rcv: os=%d(%d%%) os_slow=0 os_error=0\n  snd: q=0+0 ul=5 os=0(0%%)\n", kernel, percent) + endOfSocket
}

// tcp is the text about a connection of stack 4 that has received a number of segments.
func tcp(id int, local, segments string) string {
	return fmt.Sprintf("TCP 4:%d lcl=%s rmt=192.0.2.9:900 ESTABLISHED\n", id, local) +
		"  TX timestamping queue: q_pkts=0 reap=0 tot_pkts=77\n  rcv: bytes=900 tot_pkts=" + segments + " rob_pkts=0 q_pkts=0+0 usr=0\n" +
		"  a_loop2_closed=0 a_no_fd=0 ack_rsts=0 os=3 rx_pkts=4\n" + endOfSocket
}

// listener is the text about a listening socket of stack 4, with connections that came through the kernel.
func listener(id int, local string, accepted int) string {
	return fmt.Sprintf("TCP 4:%d lcl=%s rmt=0.0.0.0:0 LISTEN\n  listenq: max=1024 n=0 new=0 buckets=1\n", id, local) +
		fmt.Sprintf("  acceptq: max=128 n=0 accepted=5\n  a_loop2_closed=0 a_no_fd=0 ack_rsts=0 os=%d rx_pkts=4\n", accepted) + endOfSocket
}

// counters is the text about counters of a stack.
func counters(of ...string) string {
	return "-------------------- ci_netif_stats: 4 ---------------------\nk_polls: 690\n" + strings.Join(of, "\n") + "\n"
}

func TestParseStackdump(t *testing.T) {
	number := func(n uint64) *uint64 { return &n }
	version := interfaceVersion
	plain := Stack{Namespace: number(4026532001), InterfaceVersion: &version}
	named := plain
	named.ID, named.Name, named.PIDs = 4, "feed", []int{70, 71}
	full := named
	full.Counters = Counters{
		UDPReceivedUser: number(37), UDPReceivedKernel: number(2), UDPSentUser: number(36), UDPSentKernel: number(1),
		TCPAcceptedUser: number(3), TCPAcceptedKernel: number(0), HandedToKernel: number(5),
		Handovers: []Handover{{"tcp_handover_connect", 4}, {"udp_handover_bind", 1}},
	}
	full.Sockets = []Socket{
		{Protocol: "UDP", Local: "192.0.2.1:5001", ReceivedUser: number(37), ReceivedKernel: number(2), KernelPercent: new(5)},
		{Protocol: "TCP", Local: "[2001:db8::1]:443", ReceivedUser: number(31)},
		{Protocol: "TCP", Local: "0.0.0.0:8080", IsListening: true, AcceptedKernel: number(3)},
	}
	empty := Stack{ID: 5, PIDs: []int{80}}
	many := plain
	many.PIDs = []int{101, 102, 103, 104}
	cases := map[string]struct {
		text string
		want []Stack
	}{
		"no stack":           {"", nil},
		"empty lines":        {"\n\n", nil},
		"a stack's head":     {head(0, ""), []Stack{plain}},
		"with processes":     {head(4, "feed") + "pids: 70,71\n", []Stack{named}},
		"without any":        {head(0, "") + "pids: \n", []Stack{plain}},
		"PIDs on two lines":  {head(0, "") + "pids: 101,102,\n      103,104\n  deferred count 0/32\n", []Stack{many}},
		"nothing but its ID": {"ci_netif_dump_to_logger: stack=5 name=\r\npids: 80\r\n", []Stack{empty}},
		"all there is": {
			head(4, "feed") + "pids: 70,71\n--------------------- sockets ------------------------------\n" +
				udp(4, 2047, "192.0.2.1:5001", 37, 2, 5) + tcp(2046, "[2001:db8::1]:443", "1f") + listener(2045, "0.0.0.0:8080", 3) + "PIPE 4:9\n" + endOfSocket +
				counters("ul_accepts: 3", "tcp_accept_os: 0", "tcp_handover_connect: 4", "tcp_handover_bind: 0", "udp_handover_bind: 1") +
				"udp_tot_recv_pkts_ul: 37\nudp_tot_recv_drops_ul: 0\nudp_tot_recv_pkts_os: 2\nudp_tot_send_pkts_ul: 36\nudp_tot_send_pkts_os: 1\n" +
				"--------------------- process env --------------------------\npid: 70\ncmdline: feed\n",
			[]Stack{full},
		},
		"two stacks": {head(4, "feed") + "pids: 70,71\n" + "ci_netif_dump_to_logger: stack=5 name=\npids: 80\n", []Stack{named, empty}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseStackdump(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseStackdumpRefuses(t *testing.T) {
	cases := map[string]struct {
		text, want string
	}{
		"something else":          {"welcome\n", `line 1: "welcome" is not what onload_stackdump prints`},
		"a long something":        {strings.Repeat("x", 100), `line 1: "` + strings.Repeat("x", 61) + `\u2026" is not what onload_stackdump prints`},
		"no number of a stack":    {"ci_netif_dump_to_logger: stack=x name=\n", `line 1: "x name=" names no stack`},
		"no name":                 {"ci_netif_dump_to_logger: stack=1\n", `line 1: "1" names no stack`},
		"a stack above all":       {"ci_netif_dump_to_logger: stack=10001 name=\n", `line 1: "10001 name=" names no stack`},
		"a name with a command":   {"ci_netif_dump_to_logger: stack=1 name=\x1b[2J\n", "line 1: a name or an address has characters that cannot be printed"},
		"a long name":             {"ci_netif_dump_to_logger: stack=1 name=" + strings.Repeat("n", 65), "is longer than names and addresses are"},
		"one stack twice":         {head(1, "") + head(1, ""), "stack 1 comes twice"},
		"a namespace":             {head(1, "") + "  namespace=net:[-1]\n", `"-1" is no number from 0 to 2^36`},
		"a checksum":              {head(1, "") + "  uk_intf_ver=123\n", `"123" is no checksum of an interface`},
		"a checksum of something": {head(1, "") + "  uk_intf_ver=" + strings.Repeat("g", 32) + "\n", "is no checksum of an interface"},
		"a PID":                   {head(1, "") + "pids: 1,x\n", `a process of stack 1: "x" is no number from 0 to 4194304`},
		"many PIDs":               {head(1, "") + "pids: " + strings.Repeat("1,", 4097), "stack 1 has more than 4096 processes"},
		"a counter":               {head(1, "") + "udp_tot_recv_pkts_ul: -1\n", `"-1" is no number from 0 to 2^36`},
		"a huge counter":          {head(1, "") + "udp_tot_recv_pkts_os: 18446744073709551615\n", "is no number from 0 to 2^36"},
		"a handover":              {head(1, "") + "tcp_handover_bind: many\n", `"many" is no number from 0 to 2^36`},
		"another stack's socket":  {head(1, "") + udp(2, 1, "192.0.2.1:1", 0, 0, 0), `names no socket of stack 1`},
		"no address":              {head(1, "") + "UDP 1:2 rmt=192.0.2.1:1\n", "names no local address"},
		"a hostile address":       {head(1, "") + "UDP 1:2 lcl=\x07\n", "has characters that cannot be printed"},
		"packets":                 {head(1, "") + "UDP 1:2 lcl=a\n  rcv: q_pkts=0 tot_pkts=1f\n", `"1f" is no number of packets`},
		"no percentage":           {head(1, "") + "UDP 1:2 lcl=a\n  rcv: os=5 os_slow=0\n", "is no number of datagrams with a percentage"},
		"a large percentage":      {head(1, "") + "UDP 1:2 lcl=a\n  rcv: os=5(101%)\n", "is no number of datagrams with a percentage"},
		"accepted connections":    {head(4, "") + "TCP 4:2 lcl=a rmt=b LISTEN\n  a_loop2_closed=0 os=x\n", `"x" is no number from 0 to 2^36`},
		"no number":               {head(1, "") + "UDP 1:2 lcl=a\n  rcv: os=x(1%)\n", `"x" is no number from 0 to 2^36`},
		"too many sockets":        {head(1, "") + strings.Repeat("UDP 1:2 lcl=a\n", maximumSockets+1), "stack 1 has more than 65536 sockets"},
		"too much":                {strings.Repeat("\n", MaximumBytes+1), "the output has more than 16777216 bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParseStackdump(tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) || got != nil {
				t.Errorf("got %v and %v, want %q", got, err, tc.want)
			}
		})
	}
}

func FuzzParseStackdump(f *testing.F) {
	f.Add("")
	f.Add(head(4, "feed") + "pids: 70,\n  71\n" + udp(4, 1, "192.0.2.1:1", 1, 2, 66) + tcp(2, "192.0.2.1:2", "ff") + counters("ul_accepts: 3"))
	f.Fuzz(func(t *testing.T, text string) {
		stacks, err := ParseStackdump(text)
		if err != nil && stacks != nil {
			t.Errorf("both %v and %v", stacks, err)
		}
		verdict := Judge(stacks, Container{})
		if verdict.Message == "" || strings.ContainsAny(verdict.Message, "\x1b\n") {
			t.Errorf("%q", verdict.Message)
		}
		for _, stack := range verdict.Stacks {
			if len(stack.PIDs) == 0 || stack.ID > maximumStacks || len(stack.Name) > maximumWord {
				t.Errorf("%+v", stack)
			}
		}
	})
}

type judgeCase struct {
	text    string
	in      Container
	want    State
	message string
}

func judgeCases(t *testing.T, cases map[string]judgeCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			stacks, err := ParseStackdump(tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got := Judge(stacks, tc.in)
			if got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("got %s: %s\nwant %s: %s", got.State, got.Message, tc.want, tc.message)
			}
			if certain := tc.want == NoStack || tc.want == ReceivesThroughKernel || tc.want == HandedToKernel; got.State.IsUnaccelerated() != certain {
				t.Errorf("%s is certain: %v", got.State, !certain)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	mine := func(more string) string { return head(4, "") + "pids: 70\n" + more }
	const inside, others = uint64(4026532001), uint64(4026532999)
	namespace := func(n uint64) *uint64 { return &n }
	judgeCases(t, map[string]judgeCase{
		"no stack":               {"", Container{}, NoStack, "no process of the container has a socket in a stack of Onload, so its sockets, if it has any, are those of the kernel; "},
		"somebody else's":        {head(4, ""), Container{Namespace: namespace(others)}, NoStack, "no process of the container has a socket in a stack of Onload, so its sockets, if it has any, are those of the kernel; "},
		"whoever's":              {head(4, ""), Container{}, Unknown, "whose they are is not known without the container's network namespace; add readlink and ls"},
		"the same namespace":     {head(4, ""), Container{Namespace: namespace(inside)}, Unknown, "onload_stackdump sees stack 4 in the container's network namespace and may not look into all processes"},
		"no namespace told":      {"ci_netif_dump_to_logger: stack=7 name=\n", Container{Namespace: namespace(inside)}, Unknown, "sees stack 7"},
		"received at user level": {mine(udp(4, 1, "192.0.2.1:1", 37, 0, 0)), Container{}, Accelerated, "37 datagrams, 0 segments of TCP and 0 accepted connections came at user level, and none through the kernel"},
		"one datagram":           {mine("udp_tot_recv_pkts_ul: 1\nudp_tot_recv_pkts_os: 0\n"), Container{}, Accelerated, "1 datagram, 0 segments"},
		"all through the kernel": {
			mine(udp(4, 1, "192.0.2.1:1", 0, 997, 100)), Container{}, ReceivesThroughKernel, "997 of 997 datagrams came through the kernel (997 to 192.0.2.1:1); see that",
		},
		"some of several sockets": {
			mine(udp(4, 1, "a:1", 10, 1, 9) + udp(4, 2, "b:2", 10, 30, 75) + udp(4, 3, "c:3", 0, 0, 0) + udp(4, 4, "d:4", 0, 2, 100) + udp(4, 5, "e:5", 0, 1, 100)),
			Container{}, ReceivesThroughKernel, "34 of 54 datagrams came through the kernel (30 to b:2, 2 to d:4, 1 to a:1, 1 more sockets); ",
		},
		"by the stack's counter": {mine("udp_tot_recv_pkts_ul: 5\nudp_tot_recv_pkts_os: 3\n"), Container{}, ReceivesThroughKernel, "3 of 8 datagrams came through the kernel; see"},
		"the larger sum counts":  {mine(udp(4, 1, "a:1", 5, 2, 28) + "udp_tot_recv_pkts_ul: 5\nudp_tot_recv_pkts_os: 0\n"), Container{}, ReceivesThroughKernel, "2 of 7 datagrams"},
		"the larger counter":     {mine(udp(4, 1, "a:1", 5, 2, 28) + "udp_tot_recv_pkts_ul: 9\nudp_tot_recv_pkts_os: 6\n"), Container{}, ReceivesThroughKernel, "6 of 15 datagrams"},
		"the second stack's":     {mine(udp(4, 1, "a:1", 5, 0, 0)) + head(5, "") + "pids: 70\n" + udp(5, 1, "b:1", 0, 7, 100), Container{}, ReceivesThroughKernel, "7 of 12 datagrams"},
		"a neighbour's":          {mine(udp(4, 1, "a:1", 5, 0, 0)) + head(5, "") + udp(5, 1, "b:1", 0, 7, 100), Container{}, Accelerated, "5 datagrams"},
		"TCP": {
			mine(tcp(1, "a:1", "1f") + "udp_tot_recv_pkts_ul: 0\nudp_tot_recv_pkts_os: 0\n"), Container{}, Accelerated, "0 datagrams, 31 segments of TCP",
		},
		"TCP, and an output that ends early":     {mine(tcp(1, "a:1", "1f")), Container{}, Accelerated, "31 segments of TCP"},
		"connections at user level, closed":      {mine(counters("ul_accepts: 2")), Container{}, Accelerated, "and 2 accepted connections"},
		"nothing yet":                            {mine(udp(4, 1, "a:1", 0, 0, 0)), Container{}, Idle, "nothing was received by now; ask again when traffic flows"},
		"nothing, and a socket without counters": {mine(udp(4, 1, "a:1", 0, 0, 0) + "UDP 4:2 lcl=b:1\n"), Container{}, Unknown, "does not say what a stack received"},
		"handed to the kernel": {
			mine("udp_tot_recv_pkts_ul: 0\nudp_tot_recv_pkts_os: 0\n" + counters("udp_handover_bind: 1", "tcp_handover_connect: 1")), Container{}, HandedToKernel,
			"; Onload has handed 2 sockets to the kernel (tcp_handover_connect 1, udp_handover_bind 1), as",
		},
		"a socket that waits, and one that was handed over": {
			mine(udp(4, 1, "a:1", 0, 0, 0) + counters("udp_handover_bind: 1")), Container{}, Idle,
			"ask again when traffic flows; Onload has handed 1 socket to the kernel (udp_handover_bind 1), as",
		},
		"an output that ends early": {mine(""), Container{}, Unknown, "the output of onload_stackdump lots does not say what a stack received; see that it is whole"},
	})
}

// TestJudgeKernelSockets is about sockets that the kernel serves beside those of a stack, and beside a neighbour's.
func TestJudgeKernelSockets(t *testing.T) {
	mine := func(more string) string { return head(4, "") + "pids: 70\n" + more }
	own := uint64(4026532001)
	judgeCases(t, map[string]judgeCase{
		// The kubelet asks through the pod's own interface whether the program lives.
		"a probe beside UDP": {
			mine(udp(4, 1, "192.0.2.1:1", 200, 0, 0) + listener(2, "0.0.0.0:8080", 1) + counters("tcp_accept_os: 1")), Container{}, Accelerated,
			"200 datagrams, 0 segments of TCP and 0 accepted connections came at user level; 1 connection of TCP came in through an interface " +
				"that is not accelerated (1 to 0.0.0.0:8080): see that peers",
		},
		"a probe beside TCP": {
			mine(tcp(1, "a:1", "1f") + counters("tcp_accept_os: 2")), Container{}, Accelerated,
			"came at user level; 2 connections of TCP came in through an interface that is not accelerated: see",
		},
		"nothing but connections through the kernel": {
			mine(listener(1, "0.0.0.0:9000", 50) + "udp_tot_recv_pkts_ul: 0\nudp_tot_recv_pkts_os: 0\n" + counters("ul_accepts: 0", "tcp_accept_os: 50")),
			Container{}, ReceivesThroughKernel, "nothing came at user level; 50 connections of TCP came in through an interface that is not accelerated (50 to 0.0.0.0:9000)",
		},
		"a connection that was handed over beside UDP": {
			mine(udp(4, 1, "a:1", 200, 0, 0) + counters("tcp_handover_connect: 1", "udp_handover_connect: 2")), Container{}, Accelerated,
			"200 datagrams, 0 segments of TCP and 0 accepted connections came at user level; Onload has handed 3 sockets to the kernel " +
				"(tcp_handover_connect 1, udp_handover_connect 2), as",
		},
		"the only socket was handed over": {
			mine("udp_tot_recv_pkts_ul: 0\nudp_tot_recv_pkts_os: 0\n" + counters("tcp_handover_connect: 1")), Container{}, HandedToKernel,
			"the program's stack has no socket; Onload has handed 1 socket to the kernel (tcp_handover_connect 1), as",
		},
		"the only socket was handed over, by a release without sums": {
			mine(counters("tcp_handover_connect: 1")), Container{}, HandedToKernel, "has no socket",
		},
		"a neighbour's stack in the same namespace": {
			head(4, "") + udp(4, 1, "a:1", 100, 0, 0), Container{Namespace: &own, ShowsAll: true}, NoStack,
			"are those of the kernel, although stack 4 is in its network namespace; see that LD_PRELOAD names libonload.so or that the " +
				"program is started with onload, that a virtual interface (VI) was free when it started",
		},
		"a stack that has no socket in the same namespace": {
			head(4, "") + counters("tcp_handover_connect: 1"), Container{Namespace: &own, ShowsAll: true}, NoStack,
			"stack 4 is in its network namespace, which has handed sockets to the kernel (tcp_handover_connect 1); see that the program connects " +
				"and binds to addresses that the pool's NIC reaches, that LD_PRELOAD names",
		},
		"all processes, and no namespace": {head(4, ""), Container{ShowsAll: true}, NoStack, "although stack 4"},
	})
}

// TestExhaustionBesideANeighbour: with EF_NO_FAIL=1, a program that finds no free virtual interface goes on with sockets of the
// kernel. What its neighbour's stack has received, or handed to the kernel, is not its own.
func TestExhaustionBesideANeighbour(t *testing.T) {
	const options = "  EF_NO_FAIL=1\n"
	own, others := uint64(4026532001), uint64(4026532999)
	neighbour := head(4, "feed") + options + udp(4, 1, "192.0.2.1:12345", 200, 3, 1) + tcp(2, "192.0.2.1:900", "1f") + listener(3, "0.0.0.0:9000", 2) +
		"udp_tot_recv_pkts_ul: 200\nudp_tot_recv_pkts_os: 3\n" + counters("ul_accepts: 4", "tcp_accept_os: 2", "tcp_handover_connect: 1")
	const free = "that a virtual interface (VI) was free when it started, and set EF_NO_FAIL to 0"
	judgeCases(t, map[string]judgeCase{
		"every process was looked into": {
			neighbour, Container{Namespace: &own, ShowsAll: true}, NoStack,
			"are those of the kernel, although stack 4 is in its network namespace, which has handed sockets to the kernel (tcp_handover_connect 1); see",
		},
		"the way out is named":                     {neighbour, Container{Namespace: &own, ShowsAll: true}, NoStack, free},
		"the neighbour is in another pod":          {neighbour, Container{Namespace: &others}, NoStack, "are those of the kernel; see"},
		"not every process could be looked into":   {neighbour, Container{Namespace: &own}, Unknown, "may not look into all processes"},
		"the neighbour is the program of this one": {strings.Replace(neighbour, options, options+"pids: 70\n", 1), Container{Namespace: &own, ShowsAll: true}, ReceivesThroughKernel, "3 of 203 datagrams"},
	})
}

func TestNeedsContainer(t *testing.T) {
	for text, want := range map[string]bool{"": false, head(1, ""): true, head(1, "") + "pids: 7\n": false, head(1, "") + head(2, "") + "pids: 7\n": false} {
		stacks, err := ParseStackdump(text)
		if got := NeedsContainer(stacks); got != want || err != nil {
			t.Errorf("got %v and %v for %q", got, err, text)
		}
	}
}

func TestFailure(t *testing.T) {
	cases := map[string]struct {
		failure Failure
		missing bool
		want    string
	}{
		"another build": {
			Failure{ExitCode: 255, Text: "noise\nCould not open /dev/onload (rc=-79) - check Onload driver version matches that of library\n"}, false,
			"is of another build than the kernel module (Could not open /dev/onload (rc=-79) - check",
		},
		"an old module":  {Failure{ExitCode: 255, Text: "Could not open /dev/onload (rc=-22) - check"}, false, "is of another build"},
		"not loaded":     {Failure{ExitCode: 255, Text: "Could not open /dev/onload (rc=-2) - check Onload drivers are loaded"}, false, "load the module onload on the node, and see that"},
		"no such device": {Failure{ExitCode: 255, Text: "Could not open /dev/onload (rc=-6) - check"}, false, "load the module"},
		"preloaded all the same": {
			Failure{ExitCode: 255, Text: "onload_stackdump should not itself be run under onload acceleration.", Emptied: true}, false,
			"although it was started with an empty LD_PRELOAD; see that the image has no /etc/ld.so.preload",
		},
		"not executable":        {Failure{ExitCode: 126, Text: "env: 'onload_stackdump': Permission denied"}, false, "has onload_stackdump and may not execute it (env: 'onload_stackdump': Permission denied)"},
		"a bus error":           {Failure{ExitCode: 135}, false, "was ended by SIGBUS, an access to memory that is not there (exit code 135), as it is when the control plane of the container's network namespace is dead"},
		"out of memory":         {Failure{ExitCode: 137}, false, "was ended by SIGKILL (exit code 137); see whether the container reached its limit of memory"},
		"a forbidden call":      {Failure{ExitCode: 159, Text: "Bad system call"}, false, "(exit code 159; Bad system call); see the container's seccomp profile"},
		"a fault":               {Failure{ExitCode: 139}, false, "was ended by SIGSEGV, an access to memory that is not its own (exit code 139); run it"},
		"an abort for itself":   {Failure{ExitCode: 134, Text: "Aborted"}, false, "was ended by SIGABRT, an abort by itself (exit code 134; Aborted); run it"},
		"a signal without name": {Failure{ExitCode: 192}, false, "was ended by signal 64 (exit code 192)"},
		"preloaded":             {Failure{ExitCode: 255, Text: "onload_stackdump should not itself be run under onload acceleration."}, false, "the container runtime found no command env that would empty it; add env"},
		"a missing library":     {Failure{ExitCode: 127, Text: "onload_stackdump: error while loading shared libraries: libpcap.so.0.8: cannot open shared object file: No such file or directory"}, false, "does not start (onload_stackdump: error"},
		"env finds none":        {Failure{ExitCode: 127, Text: "env: 'onload_stackdump': No such file or directory"}, true, "the container has no onload_stackdump; add it to the image"},
		"runc finds none":       {Failure{ExitCode: 0, Text: `OCI runtime exec failed: exec: "env": executable file not found in $PATH: unknown`}, true, "has no onload_stackdump"},
		"runc finds no file":    {Failure{ExitCode: 0, Text: `exec: "/opt/x": stat /opt/x: no such file or directory: unknown`}, true, "has no onload_stackdump"},
		"crun finds none":       {Failure{ExitCode: 255, Text: "executable file `env` not found in $PATH: No such file or directory"}, true, "has no onload_stackdump"},
		"a shell finds none":    {Failure{ExitCode: 126, Text: "onload_stackdump: not found"}, true, "has no onload_stackdump"},
		"may not open it":       {Failure{ExitCode: 134, Text: "*** UNEXPECTED ERROR ***\n  errno: 13\n  strerror: Permission denied\n"}, false, "was aborted, as it is when it may not open /dev/onload (strerror: Permission denied)"},
		"something else":        {Failure{ExitCode: 3, Text: "\n\x1b[2Jbad\x00 things\nmore"}, false, "ended with exit code 3 ([2Jbad things); run it"},
		"nothing":               {Failure{ExitCode: 3, Text: ""}, false, "ended with exit code 3 (without a word about it)"},
		"very much":             {Failure{ExitCode: 3, Text: strings.Repeat("y", 1000)}, false, "(" + strings.Repeat("y", maximumLine-len("…")) + "…)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.failure.IsMissing(); got != tc.missing {
				t.Errorf("missing: %v", got)
			}
			if got := tc.failure.Reason(); !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for text, want := range map[string]bool{"env: 'x': No such file or directory\n": true, "exec: \"env\": not found": false, "": false, "\nenv: can't execute": true} {
		if got := (Failure{Text: text}).HasEnv(); got != want {
			t.Errorf("%q comes from env: %v", text, got)
		}
	}
	if got := Unread("why"); got.State != Unknown || got.Message != "why" || got.State.IsUnaccelerated() {
		t.Errorf("got %+v", got)
	}
}
