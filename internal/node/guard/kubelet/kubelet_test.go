// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
)

func TestReadUnit(t *testing.T) {
	const printed = "LoadState=loaded\nActiveState=active\nInvocationID=6f0e\nNRestarts=2\nMainPID=771\nExecMainStartTimestampMonotonic=40000000\n"
	for name, tc := range map[string]struct {
		printed string
		want    *Unit
		err     string
	}{
		"a kubelet":         {printed, &Unit{Name: "kubelet.service", Active: "active", Invocation: "6f0e", Restarts: 2, Process: 771, Running: time.Minute}, ""},
		"in another order":  {"MainPID=0\nExecMainStartTimestampMonotonic=0\nNRestarts=0\nInvocationID=\nActiveState=inactive\nLoadState=loaded", &Unit{Name: "kubelet.service", Active: "inactive"}, ""},
		"none":              {"LoadState=not-found\nActiveState=inactive\nNRestarts=0\n", nil, ""},
		"masked":            {"LoadState=masked\nActiveState=inactive\nNRestarts=0\n", nil, ""},
		"nothing":           {"", nil, "neither whether it is loaded"},
		"a count of nobody": {strings.Replace(printed, "NRestarts=2", "NRestarts=", 1), nil, `its NRestarts is ""`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ReadUnit("kubelet.service", tc.printed, 100*time.Second)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("ReadUnit() (-want +got), %v:\n%s", err, diff)
			}
		})
	}
}

func TestAddress(t *testing.T) {
	for name, tc := range map[string]struct{ line, configuration, want string }{
		"by default":                     {"/usr/bin/kubelet\x00--config=/a\x00", `{}`, "127.0.0.1:10248"},
		"by its file":                    {"/usr/bin/kubelet\x00", `{"healthzPort":10300,"healthzBindAddress":"10.0.0.1"}`, "10.0.0.1:10300"},
		"on all addresses":               {"/usr/bin/kubelet\x00", `{"healthzBindAddress":"0.0.0.0"}`, "127.0.0.1:10248"},
		"of the sixth version":           {"/usr/bin/kubelet\x00", `{"healthzBindAddress":"fd00::1"}`, "[fd00::1]:10248"},
		"by a flag":                      {"/usr/bin/kubelet\x00--healthz-port\x0010400\x00", `{"healthzPort":10300}`, "127.0.0.1:10400"},
		"not at all":                     {"/usr/bin/kubelet\x00", `{"healthzPort":0}`, ""},
		"a file that nobody can read":    {"/usr/bin/kubelet\x00", `}`, "127.0.0.1:10248"},
		"a process that is more than it": {"/usr/local/bin/k3s\x00server\x00", ``, "127.0.0.1:10248"},
	} {
		if got := ReadFlags(tc.line).Address(tc.configuration); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	flags := ReadFlags("kubelet\x00--config-dir\x00/b\x00--config=/a/config.yaml\x00")
	if flags.File != "/a/config.yaml" || flags.Folder != "/b" || ReadFlags("k3s").File != "/var/lib/kubelet/config.yaml" {
		t.Errorf("flags %+v", flags)
	}
}

// errRed is what a kubelet that is not healthy says.
var errRed = errors.New("connection refused")

func up(invocation string, restarts int) Sight {
	return Sight{Unit: Unit{Name: "kubelet.service", Active: "active", Invocation: invocation, Restarts: restarts, Process: 1}}
}

func red(s Sight) Sight {
	s.Health = errRed
	return s
}

func resting(restarts int) Sight {
	return Sight{Unit: Unit{Name: "kubelet.service", Active: "activating", Invocation: "x", Restarts: restarts}, Health: errRed}
}

func TestBefore(t *testing.T) {
	old := up("a", 3)
	old.Unit.Running = Proof
	for name, tc := range map[string]struct {
		sight  Sight
		want   string
		isOpen bool
	}{
		"healthy":                       {up("a", 0), "", false},
		"healthy for long":              {old, "", false},
		"green between two crashes":     {up("a", 3), "kubelet.service was started again 3 times, the last time less than a minute ago", true},
		"red":                           {red(up("a", 0)), "the kubelet of kubelet.service does not say that it is healthy: connection refused", false},
		"between two crashes":           {resting(7), "kubelet.service is activating and was started again 7 times", false},
		"stopped by somebody":           {Sight{Unit: Unit{Name: "k3s.service", Active: "inactive"}}, "k3s.service is inactive", false},
		"failed, and never again begun": {Sight{Unit: Unit{Name: "kubelet.service", Active: "failed"}, Health: errRed}, "kubelet.service is failed", false},
	} {
		if problem, isOpen := tc.sight.Before(); problem != tc.want || isOpen != tc.isOpen {
			t.Errorf("%s: %q, %v", name, problem, isOpen)
		}
	}
}

// seen is what is seen from a second on.
type seen struct {
	from  int
	sight Sight
}

func TestWatch(t *testing.T) {
	for name, tc := range map[string]struct {
		sights []seen
		every  int
		isOurs bool
		want   Verdict
		at     int
		says   string
	}{
		"healthy at once":              {[]seen{{0, up("a", 0)}}, 1, true, Healthy, 60, ""},
		"healthy after a slow start":   {[]seen{{0, red(up("a", 0))}, {100, up("a", 0)}}, 1, true, Healthy, 160, ""},
		"one crash, then healthy":      {[]seen{{0, up("a", 0)}, {5, resting(0)}, {15, up("b", 1)}}, 1, true, Healthy, 75, ""},
		"a crash that no look has met": {[]seen{{0, up("a", 0)}, {55, up("b", 1)}}, 1, true, Healthy, 115, ""},
		"red for a moment":             {[]seen{{0, up("a", 0)}, {50, red(up("a", 0))}, {51, up("a", 0)}}, 1, true, Healthy, 111, ""},
		"green for 5 seconds, again and again": {
			[]seen{{0, up("a", 0)}, {5, resting(0)}, {15, up("b", 1)}, {20, resting(1)}, {30, up("c", 2)}, {35, resting(2)}, {45, up("d", 3)}}, 1, true, Broken, 45,
			"its process has ended 3 times since it was started; kubelet.service is activating and was started again 2 times",
		},
		"refuses its configuration":                  {[]seen{{0, resting(0)}, {10, resting(1)}, {20, resting(2)}, {30, resting(3)}}, 1, true, Broken, 30, "its process has ended 3 times"},
		"never healthy":                              {[]seen{{0, red(up("a", 0))}}, 1, true, Broken, 120, "it was not healthy for a minute in time; the kubelet of kubelet.service does not say that it is healthy: connection refused"},
		"healthy and red by turns":                   {[]seen{{0, up("a", 0)}, {50, red(up("a", 0))}, {51, up("a", 0)}, {110, red(up("a", 0))}, {111, up("a", 0)}, {170, red(up("a", 0))}}, 1, true, Broken, 170, "in time"},
		"systemd has given up":                       {[]seen{{0, Sight{Unit: Unit{Name: "kubelet.service", Active: "failed"}}}}, 1, true, Broken, 0, "kubelet.service is failed"},
		"somebody starts it anew":                    {[]seen{{0, up("a", 4)}, {30, up("b", 0)}}, 1, true, Healthy, 90, ""},
		"after a boot, slow":                         {[]seen{{0, red(up("a", 0))}, {500, up("a", 0)}}, 10, false, Healthy, 560, ""},
		"after a boot, the runtime comes late":       {[]seen{{0, resting(5)}, {10, up("a", 6)}}, 10, false, Healthy, 70, ""},
		"after a boot, crashes between two looks":    {[]seen{{0, up("a", 1)}, {10, up("c", 3)}, {20, up("e", 5)}}, 10, false, Broken, 20, "its process has ended 4 times"},
		"after a boot, what was before is not count": {[]seen{{0, up("a", 9)}}, 10, false, Healthy, 60, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := Watch{IsStarted: tc.isOurs}
			start := time.Unix(1000, 0)
			for second := 0; second <= 600; second += tc.every {
				sight := tc.sights[0].sight
				for _, s := range tc.sights {
					if second >= s.from {
						sight = s.sight
					}
				}
				verdict, says := w.Look(start.Add(time.Duration(second)*time.Second), sight)
				if verdict == Open && says == "" {
					t.Fatalf("after %d s nothing is said of why it is open", second)
				}
				if verdict != Open {
					if verdict != tc.want || second != tc.at || !strings.Contains(says, tc.says) {
						t.Errorf("%s after %d s: %q", verdict, second, says)
					}
					return
				}
			}
			t.Error("it is open after 10 minutes")
		})
	}
}
