// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLatencyLimit(t *testing.T) {
	cases := map[string]struct{ content, want string }{
		"none asked for":         {"\x00\x94\x35\x77", "2000000000"},
		"two microseconds":       {"\x02\x00\x00\x00", "2"},
		"polling":                {"\x00\x00\x00\x00", "0"},
		"a byte that is a digit": {"1\x00\x00\x00", "49"},
		"text":                   {"2000000000\n", "2000000000"},
		"text of four bytes":     {"100\n", "100"},
		"too short":              {"\x02\x00", "absent: neither a number of 32 bits nor a text"},
		"nothing":                {"", "absent: neither a number of 32 bits nor a text"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			facts := readAll(t, files{"proc/1/comm": "systemd", "dev/cpu_dma_latency": tc.content})
			expect(t, "the limit", facts.Setting(latencyDevice), tc.want)
		})
	}
	expect(t, "without the device", readAll(t, files{"proc/1/comm": "systemd"}).Setting(latencyDevice), "absent: no such file")
}

// TestLatencyDevice reads the device of the running kernel, whose value is a number of 32 bits.
func TestLatencyDevice(t *testing.T) {
	device, err := os.Open(latencyDevice)
	if err != nil {
		facts, err := open(t, "/").Read(t.Context())
		must(t, err)
		if fact := facts.Setting(latencyDevice); fact.Known || fact.Reason == "" {
			t.Errorf("this machine keeps its device to itself, and yet: %+v", fact)
		}
		return
	}
	must(t, device.Close())
	facts, err := open(t, "/").Read(t.Context())
	must(t, err)
	limit, err := parseNumber(facts.Setting(latencyDevice).Value)
	if err != nil || limit < 0 || limit > 2000000000 {
		t.Errorf("the limit is %+v", facts.Setting(latencyDevice))
	}
}

// A device is read once, and as many bytes as it is asked for.
func TestReadDevice(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mknod(dir+"/zero", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5))); err != nil {
		t.Logf("this user makes no devices (%v): /dev stands in", err)
		dir = "/dev"
	}
	tree, err := openDirectory(dir)
	must(t, err)
	view := tree.view()
	defer view.release()
	content, err := view.(deviceReader).readDevice("zero", 4)
	must(t, err)
	if content != "\x00\x00\x00\x00" {
		t.Errorf("read %q", content)
	}
	if _, err := view.(deviceReader).readDevice("no-such-device", 4); err == nil {
		t.Error("what does not exist was read")
	}
}

func TestLatencyHolders(t *testing.T) {
	process := func(pid int, name string, links files) files {
		tree := files{fmt.Sprintf("proc/%d/comm", pid): name}
		for fd, target := range links {
			tree[fmt.Sprintf("proc/%d/fd/%s", pid, fd)] = "-> " + target
		}
		return tree
	}
	cases := map[string]struct {
		tree files
		want string
	}{
		"nobody":            {process(400, "tuned", files{"0": "/dev/null", "1": "socket:[17]"}), "[]"},
		"tuned":             {process(400, "tuned", files{"0": "/dev/null", "7": "/dev/cpu_dma_latency"}), "[{400 tuned map[]}]"},
		"in a container":    {process(400, "tuned", files{"7": "/host/dev/cpu_dma_latency"}), "[{400 tuned map[]}]"},
		"nothing is shown":  {files{"proc/400/comm": "tuned"}, "absent: no process shows its open files"},
		"the limit is told": {process(400, "tuned", files{"7": "/dev/cpu_dma_latency"}).with(files{"dev/cpu_dma_latency": "2"}), "absent: not looked for: the limit itself is known"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, "holders", readAll(t, tc.tree).LatencyHolders, tc.want) })
	}
}

// A running host is asked for holders only by those who want to know, and keeps them to itself where it may.
func TestLatencyHoldersOfALiveHost(t *testing.T) {
	live := open(t, "/")
	facts, err := live.Read(t.Context())
	must(t, err)
	if facts.LatencyHolders.Known || facts.LatencyHolders.Reason != "" {
		t.Errorf("nobody asked: %+v", facts.LatencyHolders)
	}
	facts, err = live.ReadWith(t.Context(), Request{LatencyHolders: true})
	must(t, err)
	if !facts.LatencyHolders.Known && facts.LatencyHolders.Reason == "" {
		t.Errorf("no answer: %+v", facts.LatencyHolders)
	}
}
