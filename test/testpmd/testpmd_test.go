// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build testpmd

package testpmd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency/recorded"
)

// recordVariable is a folder for what testpmd printed, from which the texts of internal/latency/recorded/testdata come.
const recordVariable = "TESTPMD_RECORD"

// expect wants what is read of a text to be what the kernel counted.
func expect(t *testing.T, generator recorded.Generator, text string, want latency.Stream) {
	t.Helper()
	if folder := os.Getenv(recordVariable); folder != "" {
		name := strings.ReplaceAll(strings.TrimPrefix(t.Name(), "TestCounts/"), "_", "-") + "-" + string(generator) + ".txt"
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run, err := recorded.Parse(generator, []byte(text), 1000, time.Second)
	if err != nil {
		t.Errorf("%s: %v\n%s", generator, err, text)
		return
	}
	t.Logf("%s: %d sent, %d lost", generator, run.Rate.Load.Sent, run.Rate.Load.Lost)
	if diff := cmp.Diff(want, run.Rate.Load); diff != "" {
		t.Errorf("%s, the kernel and testpmd (-want +got):\n%s\n%s", generator, diff, text)
	}
	if !strings.HasPrefix(run.Version, "DPDK ") {
		t.Errorf("%s: version %q", generator, run.Version)
	}
}

// sender is what of messages that left came back, as the kernel counted at the near ends.
func (s *stage) sender() latency.Stream {
	c := s.counted("v0", "w0")
	return latency.Stream{Sent: c.sent, Lost: c.sent - c.received}
}

// forwarder is what of messages that came left again, as the kernel counted at the far ends.
func (s *stage) forwarder() latency.Stream {
	c := s.counted("v1", "w1")
	return latency.Stream{Sent: c.received, Lost: c.received - c.sent}
}

// lost wants some of the messages to be lost, or none, so that a comparison says something.
func lost(t *testing.T, stream latency.Stream, some bool) latency.Stream {
	t.Helper()
	if stream.Sent == 0 || (stream.Lost > 0) != some || stream.Lost > stream.Sent {
		t.Fatalf("the kernel counted %+v, and some are to be lost: %t", stream, some)
	}
	return stream
}

func TestCounts(t *testing.T) {
	for name, try := range map[string]func(*testing.T, *stage){
		"no_loss":                  func(t *testing.T, s *stage) { passOn(t, s, "io") },
		"no_loss_macswap":          func(t *testing.T, s *stage) { passOn(t, s, "macswap") },
		"token_bucket":             tokenBucket,
		"full_queue_of_a_NIC":      fullQueueOfNIC,
		"full_queue_behind":        fullQueueBehind,
		"full_queue_of_the_sender": fullQueueOfSender,
		"late":                     late,
		"statistics_each_second":   eachSecond,
		"cleared":                  cleared,
		"fewer_ports":              fewerPorts,
		"prompts":                  prompts,
	} {
		t.Run(name, func(t *testing.T) { try(t, newStage(t)) })
	}
}

// passOn: what a testpmd sends, another one passes on.
func passOn(t *testing.T, s *stage, mode string) {
	near, far := s.interactive(s.near, "rxonly", queue("v0", wide), queue("w0", wide)), s.interactive(s.far, mode, queue("v1", wide), queue("w1", wide))
	s.start()
	far.say("start")
	near.say("start tx_first 20")
	s.quiet()
	near.say("stop")
	far.say("show fwd stats all", "stop")
	expect(t, recorded.Testpmd, near.quit(), lost(t, s.sender(), false))
	expect(t, recorded.TestpmdForwarder, far.quit(), lost(t, s.forwarder(), false))
}

// tokenBucket: what it drops between two NICs is lost, and it says how many that were.
func tokenBucket(t *testing.T, s *stage) {
	s.bridge()
	near := s.interactive(s.near, "rxonly", queue("v0", wide), queue("w0", wide))
	s.start()
	near.say("start tx_first 20")
	s.quiet()
	near.say("stop")
	want := lost(t, s.sender(), true)
	if dropped := s.dropped(); dropped != want.Lost {
		t.Errorf("the token bucket dropped %d messages, and %d did not come back", dropped, want.Lost)
	}
	expect(t, recorded.Testpmd, near.quit(), want)
}

// fullQueueOfNIC: while the forwarder stands still, the queue before it fills.
func fullQueueOfNIC(t *testing.T, s *stage) {
	near, far := s.interactive(s.near, "txonly", queue("v0", wide)), s.interactive(s.far, "io", "net_pcap0,rx_iface_in=v1", "net_pcap1,tx_iface=w1")
	s.start()
	far.say("start")
	far.signal(syscall.SIGSTOP)
	near.say("start")
	time.Sleep(300 * time.Millisecond)
	near.say("stop")
	far.signal(syscall.SIGCONT)
	s.quiet()
	far.say("stop")
	expect(t, recorded.TestpmdForwarder, far.quit(), lost(t, s.forwarder(), true))
	text := near.quit()
	if _, err := recorded.Parse(recorded.Testpmd, []byte(text), 1000, time.Second); err == nil || !strings.Contains(err.Error(), "never reads what comes back") {
		t.Errorf("a sender that does not receive: %v", err)
	}
}

// fullQueueBehind: the forwarder has a queue to its second NIC that is shorter than what it passes on at once.
func fullQueueBehind(t *testing.T, s *stage) {
	near, far := s.interactive(s.near, "rxonly", queue("v0", wide)), s.interactive(s.far, "io", queue("v1", wide), queue("w1", 16))
	s.start()
	far.say("start")
	near.say("start tx_first 40")
	s.quiet()
	near.say("stop")
	far.say("stop")
	text := far.quit()
	if !regexp.MustCompile(`TX-dropped: [1-9]`).MatchString(text) {
		t.Errorf("nothing was dropped:\n%s", text)
	}
	expect(t, recorded.TestpmdForwarder, text, lost(t, s.forwarder(), true))
}

// fullQueueOfSender: what does not leave the sender is not sent. The far side passes on in one direction only.
func fullQueueOfSender(t *testing.T, s *stage) {
	near, far := s.interactive(s.near, "rxonly", queue("v0", 16), queue("w0", wide)), s.interactive(s.far, "io", queue("v1", wide), "net_pcap1,tx_iface=w1")
	s.start()
	far.say("start")
	near.say("start tx_first 40")
	s.quiet()
	near.say("stop")
	text := near.quit()
	if !regexp.MustCompile(`TX-dropped: [1-9]`).MatchString(text) {
		t.Errorf("nothing was dropped:\n%s", text)
	}
	expect(t, recorded.Testpmd, text, lost(t, s.sender(), true))
	far.quit()
}

// late: the sender stops while its messages are on their way, and takes them in afterwards, between two printings of the counters of its NICs.
func late(t *testing.T, s *stage) {
	near, far := s.interactive(s.near, "rxonly", queue("v0", wide), queue("w0", wide)), s.interactive(s.far, "io", queue("v1", wide), queue("w1", wide))
	far.say("start")
	near.say("start tx_first 2")
	s.quiet()
	near.say("stop", "show port stats all")
	s.start()
	far.signal(syscall.SIGSTOP)
	near.say("start tx_first 20", "stop")
	far.signal(syscall.SIGCONT)
	s.quiet()
	near.say("start")
	time.Sleep(300 * time.Millisecond)
	near.say("stop", "show port stats all")
	expect(t, recorded.Testpmd, near.quit(), lost(t, s.sender(), false))
	far.quit()
}

// eachSecond: without a prompt, it shows the counters of its NICs each second, and all when it is interrupted.
func eachSecond(t *testing.T, s *stage) {
	far := s.interactive(s.far, "io", queue("v1", wide), queue("w1", wide))
	far.say("start")
	s.start()
	near := s.testpmd(s.near, nil, []string{queue("v0", wide), queue("w0", wide)}, "--forward-mode=rxonly", "--tx-first", "--stats-period=1")
	near.wait("NIC statistics for port 1", 3)
	s.quiet()
	near.signal(syscall.SIGINT)
	expect(t, recorded.Testpmd, near.end(), lost(t, s.sender(), false))
	far.quit()
}

// cleared: the counters of the NICs were shown, cleared, and shown again after more messages than before, while it still ran.
func cleared(t *testing.T, s *stage) {
	near := s.interactive(s.near, "rxonly", queue("v0", wide), queue("w0", wide))
	// Without a buffer, what was printed until now is there.
	far := s.testpmd(s.far, []string{"stdbuf", "-o0"}, []string{queue("v1", wide), queue("w1", wide)}, "-i", "--forward-mode=io")
	far.wait(prompt, 1)
	far.say("start")
	near.say("start tx_first 3", "stop")
	s.quiet()
	// While it forwards, testpmd may overwrite what was cleared with what it counted before.
	far.say("stop", "show port stats all", "clear port stats all", "start")
	s.start()
	near.say("start tx_first 20")
	s.quiet()
	far.say("show port stats all")
	text := far.text()
	expect(t, recorded.TestpmdForwarder, text, lost(t, s.forwarder(), false))
	near.quit()
	far.quit()
}

// fewerPorts: a run with one port comes after one with two.
func fewerPorts(t *testing.T, s *stage) {
	near, far := s.interactive(s.near, "rxonly", queue("v0", wide), queue("w0", wide)), s.interactive(s.far, "macswap", queue("v1", wide), queue("w1", wide))
	far.say("start")
	near.say("start tx_first 4")
	s.quiet()
	near.say("stop", "set portlist 0")
	far.say("stop", "set portlist 0", "start")
	s.start()
	near.say("start tx_first 20")
	s.quiet()
	near.say("stop")
	far.say("stop")
	expect(t, recorded.Testpmd, near.quit(), lost(t, s.sender(), false))
	expect(t, recorded.TestpmdForwarder, far.quit(), lost(t, s.forwarder(), false))
}

// prompts: what it prints goes through a buffer, and its prompts do not, so that they stand within lines and numbers.
func prompts(t *testing.T, s *stage) {
	near, far := s.interactive(s.near, "rxonly", queue("v0", wide), queue("w0", wide)), s.interactive(s.far, "io", queue("v1", wide), queue("w1", wide))
	s.start()
	far.say("start")
	near.say("start tx_first 20")
	s.quiet()
	near.say("stop")
	near.say(slices.Repeat([]string{"show fwd stats all"}, 24)...)
	text := near.quit()
	if !regexp.MustCompile(`[0-9a-zA-Z:-] *` + prompt).MatchString(text) {
		t.Error("no prompt stands within a line")
	}
	expect(t, recorded.Testpmd, text, lost(t, s.sender(), false))
	far.quit()
}
