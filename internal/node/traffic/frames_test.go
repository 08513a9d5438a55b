// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

const framesOfTest = "ens2f0:4:02:00:00:00:00:01:192.0.2.1:30001"

func TestParseFrames(t *testing.T) {
	f, err := ParseFrames(framesOfTest)
	if err != nil || f.String() != framesOfTest || f.Queue.Queue != 4 || f.Port != 30001 {
		t.Fatalf("%+v, %v", f, err)
	}
	want := []string{"frames=" + framesOfTest, "sockets=/tmp/afxdp_dp"}
	if diff := cmp.Diff(want, f.arguments()); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{
		"", "ens2f0", "ens2f0:4:02:00:00:00:00:01:192.0.2.1", "ens2f0:4:02:00:00:00:00:192.0.2.1:30001", ":4:02:00:00:00:00:01:192.0.2.1:30001",
		"ens2f0:4:02:00:00:00:00:01:2001:db8::1:30001", "ens2f0:4:02:00:00:00:00:01:192.0.2:30001", "ens2f0:4:02:00:00:00:00:01:0.0.0.0:30001",
		"ens2f0:4:02:00:00:00:00:01:192.0.2.1:0", "ens2f0:4:02:00:00:00:00:01:192.0.2.1:65536", "ens2f0:99999:02:00:00:00:00:01:192.0.2.1:1",
		"../etc:4:02:00:00:00:00:01:192.0.2.1:30001", "ens2f0:4:02:00:00:00:00:01:224.0.0.1:30001",
	} {
		if f, err := ParseFrames(text); err == nil {
			t.Errorf("%q is read as %+v", text, f)
		}
	}
}

func TestRequestOfFramesRefuses(t *testing.T) {
	frames, err := ParseFrames(framesOfTest)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		transport latency.Transport
		sizes     []int
		want      string
	}{
		"a full frame":    {latency.UDP, []int{0, 1472}, ""},
		"TCP":             {latency.TCP, []int{64}, "carry UDP alone"},
		"multicast":       {latency.Multicast, []int{64}, "carry UDP alone"},
		"more than fills": {latency.UDP, []int{1473, 64}, "size 1473"},
	} {
		r := quick(1)
		r.Frames, r.Transport, r.Sizes = frames, tc.transport, tc.sizes
		if err := r.Check(); (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, tc.want)
		}
	}
}

func TestFramesOfPool(t *testing.T) {
	const mac = "ens2f0=02:00:00:00:00:01"
	for name, tc := range map[string]struct {
		queues, addresses, address string
		ports                      []int
		// want are the frames, or a part of the error.
		want string
	}{
		"the first queue":        {"ens2f0:4", mac + "/192.0.2.1", "", []int{30002, 30001}, framesOfTest},
		"the second queue":       {"ens2f0:5", mac + "/192.0.2.1", "", []int{30002, 30001}, "ens2f0:5:02:00:00:00:00:01:192.0.2.1:30002"},
		"more queues than ports": {"ens2f0:7", mac + "/192.0.2.1", "", []int{30001}, "ens2f0:7:02:00:00:00:00:01:192.0.2.1:30001"},
		"all queues of a NIC":    {"ens2f0:4 ens2f0:5", mac + "/192.0.2.1", "", []int{30001}, framesOfTest},
		"another NIC beside it":  {"ens2f0:4", "ens2f1=02:00:00:00:00:02/192.0.2.2 " + mac + "/192.0.2.1", "", []int{30001}, framesOfTest},
		"an address of the test": {"ens2f0:4", mac, "192.0.2.1", []int{30001}, framesOfTest},
		"the NIC's own counts":   {"ens2f0:4", mac + "/192.0.2.1", "192.0.2.9", []int{30001}, framesOfTest},
		"no address":             {"ens2f0:4", mac, "", []int{30001}, "has no address of IPv4"},
		"no unit":                {"", mac, "", []int{30001}, "no variable AFXDP_QUEUES_FAST_NICS"},
		"an older plugin":        {"ens2f0:4", "", "", []int{30001}, "of an older release?"},
		"a queue of before":      {"ens2f0:3", mac + "/192.0.2.1", "", []int{30001}, "no port for queue number -1"},
		"no ports":               {"ens2f0:4", mac + "/192.0.2.1", "", nil, "no port for queue number 0"},
		"a strange queue":        {"../etc:4", mac, "", []int{30001}, "AFXDP_QUEUES_FAST_NICS"},
		"a strange address":      {"ens2f0:4", "ens2f0=nonsense", "", []int{30001}, "AFXDP_ADDRESSES_FAST_NICS"},
	} {
		t.Run(name, func(t *testing.T) {
			pool := FramesOfPool{Pool: "fast.nics", FirstQueue: 4, Ports: tc.ports, Address: tc.address}
			got, err := pool.Frames(func(variable string) string {
				return map[string]string{"AFXDP_QUEUES_FAST_NICS": tc.queues, "AFXDP_ADDRESSES_FAST_NICS": tc.addresses}[variable]
			})
			if err != nil {
				if !strings.Contains(err.Error(), tc.want) {
					t.Errorf("the error is %v, want %q", err, tc.want)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoSocketOfFrames: an end that cannot have its socket says why, and measures by no other.
func TestNoSocketOfFrames(t *testing.T) {
	port, _, _ := serving(t)
	r := quick(port)
	r.Transport = latency.UDP
	var err error
	if r.Frames, err = ParseFrames("no-such-nic:0:02:00:00:00:00:01:192.0.2.1:30001"); err != nil {
		t.Fatal(err)
	}
	r.Sizes = []int{64}
	const want = "/tmp/afxdp_dp/no-such-nic/afxdp.sock: No such file or directory"
	if got, err := measure(t, r, latency.Budget{}); err == nil || !strings.Contains(err.Error(), "NoSocket: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v, %v", got, err)
	}
	var log strings.Builder
	err = Serve(t.Context(), ServerOptions{Program: os.Getenv(sanitizedVariable), Address: "127.0.0.1", CPU: -1, Frames: r.Frames, Out: io.Discard, Log: &log})
	if err == nil || !strings.Contains(log.String(), want) {
		t.Errorf("%v: %s", err, log.String())
	}
}
