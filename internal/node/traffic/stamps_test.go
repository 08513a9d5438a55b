// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// figures are what a test compares of stamps.
type figures struct {
	Messages, WithoutSent, WithoutReceived, Impossible, Stamped uint64
	// The least and the most of each part.
	Wire, Host [2]int64
}

func figuresOf(s *latency.Stamps) *figures {
	if s == nil {
		return nil
	}
	return &figures{
		s.Messages, s.WithoutSent, s.WithoutReceived, s.Impossible, s.Wire.Samples,
		[2]int64{s.Wire.MinimumNanoseconds, s.Wire.MaximumNanoseconds}, [2]int64{s.Host.MinimumNanoseconds, s.Host.MaximumNanoseconds},
	}
}

// TestStampsOf: reading the clock takes 20 ns, and the program measured 10 µs for each message.
func TestStampsOf(t *testing.T) {
	const took = 10_000
	cases := map[string]struct {
		stamps []Stamp
		change func(*Request)
		want   *figures
	}{
		"nobody asked": {[]Stamp{{1, 2}}, func(r *Request) { r.Stamper = "" }, nil},
		"halves":       {[]Stamp{{1000, 7000}, {5, 4005}}, func(*Request) {}, &figures{Messages: 2, Stamped: 2, Wire: [2]int64{2000, 3000}, Host: [2]int64{1990, 2990}}},
		"round trips": {[]Stamp{{1000, 7000}, {5, 4005}}, func(r *Request) { r.RoundTrip = true },
			&figures{Messages: 2, Stamped: 2, Wire: [2]int64{4000, 6000}, Host: [2]int64{3980, 5980}}},
		"none sent, none come, neither": {[]Stamp{{0, 7000}, {1000, 0}, {0, 0}, {1000, 2000}}, func(*Request) {},
			&figures{Messages: 4, WithoutSent: 2, WithoutReceived: 2, Stamped: 1, Wire: [2]int64{500, 500}, Host: [2]int64{4490, 4490}}},
		"a clock that stepped": {[]Stamp{{2000, 1999}, {1000, 12_011}, {1000, 12_010}}, func(*Request) {},
			&figures{Messages: 3, Impossible: 2, Stamped: 1, Wire: [2]int64{5505, 5505}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Request{Stamper: latency.StampedByNIC}
			tc.change(&r)
			times := &SizeTimes{Stamps: tc.stamps}
			for range tc.stamps {
				times.Times = append(times.Times, took)
			}
			got, err := stampsOf(&r, times, 20)
			if diff := cmp.Diff(tc.want, figuresOf(got)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
	// A program that was asked and says nothing has stamped nothing.
	got, err := stampsOf(&Request{Stamper: latency.StampedByNIC}, &SizeTimes{Times: []int64{took}}, 20)
	if diff := cmp.Diff(&figures{Messages: 1, WithoutSent: 1, WithoutReceived: 1}, figuresOf(got)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestStampsRefuse(t *testing.T) {
	cases := map[string]struct {
		change      func(*Request)
		environment []string
		budget      latency.Budget
		want        string
	}{
		"nobody asked":      {func(r *Request) { r.Stamper = "" }, []string{"LD_PRELOAD=libonload.so"}, latency.Budget{Accelerated: true}, ""},
		"sockets":           {func(*Request) {}, []string{"LD_PRELOAD=", "EF_POLL_USEC=1"}, latency.Budget{}, ""},
		"a preloaded stack": {func(*Request) {}, []string{"A=b", "LD_PRELOAD=libonload.so"}, latency.Budget{}, "LD_PRELOAD=libonload.so: a stack in the place of the kernel's sockets"},
		"acceleration":      {func(*Request) {}, nil, latency.Budget{Accelerated: true}, "an accelerated path passes by the sockets of the kernel"},
		"frames":            {func(r *Request) { r.Frames = &Frames{Queue: bypass.SocketQueue{Interface: "ens2f0"}} }, nil, latency.Budget{}, "frames of AF_XDP pass by the sockets of the kernel"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := Request{Stamper: latency.StampedByKernel}
			tc.change(&r)
			err := r.checkStamps(tc.environment, tc.budget)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)) {
				t.Errorf("the error is %v, want %q", err, tc.want)
			}
		})
	}
}

// TestStampsOfTheKernel: over the loopback interface every message has both stamps, as each transport counts them, and those of the wire are within the
// times of the program.
func TestStampsOfTheKernel(t *testing.T) {
	port, _, _ := serving(t)
	for _, transport := range []latency.Transport{latency.TCP, latency.UDP, latency.Multicast} {
		t.Run(string(transport), func(t *testing.T) {
			r := quick(port)
			r.Transport, r.Timeout, r.RoundTrip, r.Stamper, r.Sizes = transport, time.Minute, true, latency.StampedByKernel, []int{1, 1473, 32768}
			got, err := measure(t, r, latency.Budget{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&latency.Stamping{By: latency.StampedByKernel, Interface: "lo"}, got.Setup.Stamping); diff != "" || got.Outcome.Verdict != latency.Passed || len(got.Remarks) > 0 {
				t.Errorf("%s%+v %q", diff, got.Outcome, got.Remarks)
			}
			for i := range got.Sizes {
				judgeStamped(t, &got.Sizes[i])
			}
		})
	}
}

// judgeStamped holds the stamps of a size against the times of the program.
func judgeStamped(t *testing.T, size *latency.Size) {
	t.Helper()
	s, whole := size.Stamps, size.Distribution
	if s.Messages != 1000 || s.Wire.Samples != 1000 || s.Missing() != 0 {
		t.Errorf("%d bytes: of 1000 messages, the stamps are %+v", size.Bytes, figuresOf(s))
	}
	if s.Wire.MinimumNanoseconds <= 0 || s.Host.MinimumNanoseconds <= 0 {
		t.Errorf("%d bytes: neither part takes no time: %+v", size.Bytes, figuresOf(s))
	}
	if sum := s.Wire.MeanNanoseconds + s.Host.MeanNanoseconds; sum < whole.MeanNanoseconds*0.999 || sum > whole.MeanNanoseconds*1.001 {
		t.Errorf("%d bytes: the parts are %.0f ns together, and the whole %.0f ns", size.Bytes, sum, whole.MeanNanoseconds)
	}
}

// TestStampsOfNoNIC: where no NIC stamps messages, there are none, and none of the kernel are taken instead.
func TestStampsOfNoNIC(t *testing.T) {
	port, _, _ := serving(t)
	r := quick(port)
	r.Transport, r.Timeout, r.Stamper = latency.UDP, time.Minute, latency.StampedByNIC
	output, err := runClient(t.Context(), os.Getenv(sanitizedVariable), nil, r.arguments(), func(Progress) {})
	if err != nil {
		t.Fatal(err)
	}
	got, err := resultOf(latency.KindPingPong, &r, latency.Host{}, output, latency.Budget{})
	if err != nil {
		t.Fatal(err)
	}
	if got.Outcome.Verdict != latency.Inconclusive || got.Outcome.Reason != latency.ReasonUnstamped || !strings.HasPrefix(got.Outcome.Message, "1 bytes: 1000 of 1000 messages (100 %)") {
		t.Errorf("%+v", got.Outcome)
	}
	for _, size := range got.Sizes {
		if diff := cmp.Diff(&figures{Messages: 1000, WithoutSent: 1000, WithoutReceived: 1000}, figuresOf(size.Stamps)); diff != "" {
			t.Errorf("%d bytes: %s", size.Bytes, diff)
		}
	}
}

// TestProgramRefusesStamps: what nobody can stamp, the program does not measure as if somebody had.
func TestProgramRefusesStamps(t *testing.T) {
	for want, arguments := range map[string][]string{
		"end Usage timestamps=sundial: there are kernel and nic\n":   {"timestamps=sundial"},
		"end Usage timestamps=nic: frames of AF_XDP pass by":         {"timestamps=nic", "frames=ens2f0:4:02:00:00:00:00:01:192.0.2.1:30001"},
		"end Usage timestamps=kernel: frames of AF_XDP pass by who ": {"timestamps=kernel", "rates=1000"},
	} {
		out, err := exec.Command(os.Getenv(sanitizedVariable), append([]string{"client", "host=127.0.0.1", "sizes=1"}, arguments...)...).Output()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v, %s", arguments, err, out)
		}
	}
}

// ownAddresses are those of IPv4 that this machine has.
func ownAddresses(t *testing.T) []string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, one := range addresses {
		if ip, _, err := net.ParseCIDR(one.String()); err == nil && ip.To4() != nil {
			found = append(found, ip.String())
		}
	}
	return found
}

// TestInterfaceTo: what stays on this host takes the loopback interface, also to an address of another one.
func TestInterfaceTo(t *testing.T) {
	for _, host := range append(ownAddresses(t), "127.0.0.2") {
		if got, err := interfaceTo(host, Port); got != "lo" || err != nil {
			t.Errorf("to %s: %q, %v", host, got, err)
		}
	}
	if _, err := interfaceTo("256.0.0.1", Port); err == nil || !strings.HasPrefix(err.Error(), "looking for the way to the server: ") {
		t.Errorf("to nobody: %v", err)
	}
}

func TestAddresses(t *testing.T) {
	if got, err := InterfaceWith("192.0.2.77"); got != "" || err != nil {
		t.Errorf("with an address that nobody has: %q, %v", got, err)
	}
	if got, err := LocalAddressTo("127.0.0.2", Port); got != "127.0.0.1" || err != nil {
		t.Errorf("from %q, %v", got, err)
	}
}
