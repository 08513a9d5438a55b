// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/counted"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// scheduled is a host with the CPUs 0 and 1, whose threads have waited so long on CPU 1, and which has entered C6 so often.
func scheduled(waited, entered string) files {
	folder := "sys/devices/system/cpu/cpu1/cpuidle/"
	return files{
		"proc/version": "Linux",
		"proc/stat":    "cpu0 1 1 1 1 1 1 1 1\ncpu1 " + waited + " 1 1 1 1 1 1 1\n",
		"proc/schedstat": "version 17\ntimestamp 4295\ncpu0 0 0 0 0 0 0 7 99999 2\ndomain0 MC 3 0 0 0\n" +
			"cpu1 0 0 5 5 5 5 1000 " + waited + " 12\ndomain0 MC 3 0 0 0\n",
		folder + "state0/name": "POLL\n", folder + "state0/latency": "0\n", folder + "state0/disable": "0\n", folder + "state0/usage": "4\n",
		folder + "state1/name": "C1\n", folder + "state1/latency": "2\n", folder + "state1/disable": "0\n", folder + "state1/usage": "1" + entered + "\n",
		folder + "state2/name": "C6\n", folder + "state2/latency": "133\n", folder + "state2/disable": "0\n", folder + "state2/usage": entered + "\n",
		folder + "state3/name": "C10\n", folder + "state3/latency": "890\n", folder + "state3/disable": "1\n", folder + "state3/usage": "0\n",
	}
}

func isolationIn(t *testing.T, in files, earlier *Isolation) *Isolation {
	t.Helper()
	opened, err := Open(in.write(t))
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	found, err := opened.ReadIsolation(t.Context(), cpus.Of(1), earlier)
	must(t, err)
	return found
}

func TestIsolation(t *testing.T) {
	before := isolationIn(t, scheduled("500", "20"), nil)
	after := isolationIn(t, scheduled("1700", "25"), before)
	// The first reading took from 1 s to 2 s, the second one from 4 s to 5 s, and idle states a second longer each.
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	took := func(i *Isolation, began int64) {
		i.WaitedIn, i.idle[1] = Span{at(began), at(began + 1)}, idleReading{i.idle[1].states, Span{at(began + 1), at(began + 3)}}
	}
	took(before, 1)
	took(after, 4)
	want := counted.Isolation{CPU: 1, Nanoseconds: 4e9, IdleNanoseconds: 5e9, WaitedNanoseconds: 1200, BusyTicks: 1200, AllTicks: 1200, IdleStates: []counted.IdleEntries{
		{State: "C6", LatencyMicroseconds: 133, Count: 5}, {State: "C1", LatencyMicroseconds: 2, Count: 5},
	}}
	if diff := cmp.Diff(want, after.Since(before, 1)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(counted.Isolation{CPU: 1, Nanoseconds: 1e9, IdleNanoseconds: 2e9, BusyUnknown: "/proc/stat: it was read twice within one tick"}, before.Since(before, 1)); diff != "" {
		t.Errorf("a quiet CPU (-want +got):\n%s", diff)
	}
	// Of a CPU that nobody asked for, idle states are unknown.
	if got := after.Since(before, 0); got.IdleUnknown == "" || got.RunQueueUnknown != "" {
		t.Errorf("CPU 0: %+v", got)
	}
}

// TestIsolationKnowsWhenItWasRead: the moments lie around the readings themselves.
func TestIsolationKnowsWhenItWasRead(t *testing.T) {
	began := time.Now()
	before := isolationIn(t, scheduled("500", "20"), nil)
	after := isolationIn(t, scheduled("500", "20"), before)
	ended := time.Now()
	moments := make([]time.Time, 0, 8)
	for _, one := range []*Isolation{before, after} {
		moments = append(moments, one.WaitedIn.Began, one.WaitedIn.Ended, one.idle[1].in.Began, one.idle[1].in.Ended)
	}
	last := began
	for i, moment := range append(moments, ended) {
		if moment.Before(last) {
			t.Errorf("moment %d is %s before the one before", i, last.Sub(moment))
		}
		last = moment
	}
}

func TestIsolationUnknown(t *testing.T) {
	sound := scheduled("500", "20")
	for name, tc := range map[string]struct {
		after          files
		runQueue, idle string
	}{
		"no schedstat":         {without(sound, "proc/schedstat"), "/proc/schedstat: no such file", ""},
		"another version":      {sound.with(files{"proc/schedstat": "version 18\ncpu1 1 2 3 4 5 6 7 8 9\n"}), `/proc/schedstat: it begins with "version 18", and versions 15 to 17 are known`, ""},
		"fewer counters":       {sound.with(files{"proc/schedstat": "version 15\ncpu1 1 2 3\n"}), `/proc/schedstat: "cpu1 1 2 3\n" is no line of a CPU`, ""},
		"a counter is no one":  {sound.with(files{"proc/schedstat": "version 15\ncpu1 1 2 3 4 5 6 7 -8 9\n"}), `/proc/schedstat: "cpu1 1 2 3 4 5 6 7 -8 9\n" is no line of a CPU`, ""},
		"the CPU is offline":   {sound.with(files{"proc/schedstat": "version 15\ncpu0 1 2 3 4 5 6 7 8 9\n"}), "/proc/schedstat has no line of CPU 1", ""},
		"the counter is lower": {scheduled("499", "20"), "/proc/schedstat: the counter of CPU 1 went back", ""},
		"no idle states":       {without(sound, "sys/"), "", "/sys/devices/system/cpu/cpu1/cpuidle: no idle states are listed"},
		"an unreadable state": {sound.with(files{"sys/devices/system/cpu/cpu1/cpuidle/state2/usage": "many"}), "",
			`/sys/devices/system/cpu/cpu1/cpuidle/state2/usage: not a count: "many"`},
		"a state counts less": {scheduled("500", "19"), "", "/sys/devices/system/cpu/cpu1/cpuidle/state1/usage: the counter went back"},
	} {
		got := isolationIn(t, tc.after, nil).Since(isolationIn(t, sound, nil), 1)
		if got.RunQueueUnknown != tc.runQueue || got.IdleUnknown != tc.idle {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// without are the files but for those whose names begin so.
func without(in files, prefix string) files {
	left := files{}
	for name, text := range in {
		if !strings.HasPrefix(name, prefix) {
			left[name] = text
		}
	}
	return left
}

// FuzzSchedStat: whatever stands in the file, a count is one of a CPU that can be.
func FuzzSchedStat(f *testing.F) {
	f.Add(scheduled("500", "20")["proc/schedstat"])
	f.Add("version 15\ncpu0 1 2 3 4 5 6 7 8 9\n")
	f.Add("version 15\ncpu-1 1 2 3 4 5 6 7 8 9\ncpu 1")
	f.Fuzz(func(t *testing.T, text string) {
		found, err := parseSchedStat(text)
		if err != nil && found != nil {
			t.Fatalf("an error and %v", found)
		}
		for cpu := range found {
			if cpu < 0 || cpu > cpus.MaxCPU {
				t.Fatalf("CPU %d", cpu)
			}
		}
	})
}

// A snapshot holds of the scheduler's counters what facts are made of, and not its domains.
func TestEssentialOfSchedStat(t *testing.T) {
	const all, kept = "version 15\ntimestamp 4297\ncpu0 0 0 0 0 0 0 1 2 3\ndomain0 ff 1 2\n", "version 15\ncpu0 0 0 0 0 0 0 1 2 3\n"
	if got := essential(schedStat, all); got != kept {
		t.Errorf("of %q is kept %q, want %q", all, got, kept)
	}
}
