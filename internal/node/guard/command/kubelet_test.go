// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package command

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/kubeletservice"
)

const (
	kubeletService = "kubelet.service"
	kubeletDropIn  = "/var/lib/kubelet/kubelet.conf.d/90-lowlatency.conf"
	kubeletOnly    = `
operations:
- {kind: KubeletDropIn, path: ` + kubeletDropIn + `, mode: 420, content: "cpuManagerPolicy: static"}
- {kind: StateFile, path: /var/lib/kubelet/cpu_manager_state}
`
	reboot = "systemctl --no-block reboot"
)

// withKubelet gives the host a kubelet that is healthy, and fares otherwise with our file.
func (h *tree) withKubelet(planned kubeletservice.Life) *tree {
	h.write("var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\n")
	h.kubelet = kubeletservice.New(kubeletService, func() kubeletservice.Life {
		if _, err := os.Stat(filepath.Join(h.root, kubeletDropIn)); err == nil {
			return planned
		}
		return kubeletservice.Healthy()
	})
	return h
}

func TestAKubeletIsProven(t *testing.T) {
	h := newHost(t).withKubelet(kubeletservice.Healthy())
	before, start := h.files(), h.kubelet.Now()
	h.says("", "start  kubelet.service again, and keep the change when the kubelet is healthy for a minute", "apply", "--yes", h.file(kubeletOnly))
	if took := h.kubelet.Now().Sub(start); took < time.Minute || took > 62*time.Second {
		t.Errorf("it was proven for %v", took)
	}
	h.says("", "In force:  operations ", "status")
	h.says("", "The host is as it was before", "revert", "--yes")
	if diff := cmp.Diff(before, h.files(), ignoreGuardFolder()); diff != "" || slices.Contains(h.tools, reboot) {
		t.Errorf("programs %q, the host before and after (-before +after):\n%s", h.tools, diff)
	}
}

// ignoreGuardFolder: the agent of a cluster looks into it, and it stays.
func ignoreGuardFolder() cmp.Option {
	return cmpopts.IgnoreSliceElements(func(name string) bool { return name == "/var/lib/lowlatency" })
}

// TestAKubeletThatFails is back within two minutes, and the host has not rebooted.
func TestAKubeletThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		planned kubeletservice.Life
		within  time.Duration
		says    string
	}{
		"it refuses its configuration":             {kubeletservice.Refuses(), time.Minute, "its process has ended 3 times since it was started"},
		"it is healthy for 5 seconds, and crashes": {kubeletservice.Life{Ends: 5 * time.Second, Green: true}, time.Minute, "its process has ended 3 times since it was started"},
		"it is never healthy":                      {kubeletservice.Hangs(), 121 * time.Second, "does not say that it is healthy: no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t).withKubelet(tc.planned)
			before, start := h.files(), h.kubelet.Now()
			out, err := h.run("", "apply", "--yes", h.file(kubeletOnly))
			if err == nil || !strings.Contains(err.Error(), "the kubelet is not healthy with it: ") || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%q, %v", out, err)
			}
			// The minute in which the kubelet is proven again comes on top.
			if took := h.kubelet.Now().Sub(start); took > tc.within+kubelet.Proof+2*time.Second {
				t.Errorf("it was taken back after %v", took)
			}
			if !strings.Contains(out, "the kubelet is healthy again") {
				t.Errorf("nothing is said of the kubelet as it was before: %q", out)
			}
			if slices.Contains(h.tools, reboot) || h.kubelet.Health() != nil {
				t.Errorf("programs %q, the kubelet %v", h.tools, h.kubelet.Health())
			}
			h.denies("Reason:    the kubelet is not healthy with it: ")
			h.says("", "", "revert", "--yes")
			if diff := cmp.Diff(before, h.files(), ignoreGuardFolder()); diff != "" {
				t.Errorf("the host before and after (-before +after):\n%s", diff)
			}
		})
	}
}

// TestAKubeletThatStaysBroken with what was there before is said to be so, where people and programs look.
func TestAKubeletThatStaysBroken(t *testing.T) {
	for unit, dropIn := range map[string]string{
		kubeletService:       kubeletDropIn,
		"k3s.service":        "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/90-lowlatency.conf",
		"rke2-agent.service": "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d/90-lowlatency.conf",
	} {
		t.Run(unit, func(t *testing.T) {
			h := newHost(t)
			life := kubeletservice.Healthy()
			h.kubelet = kubeletservice.New(unit, func() kubeletservice.Life { return life })
			life = kubeletservice.Refuses()
			out, err := h.run("", "apply", "--yes", h.file(strings.ReplaceAll(kubeletOnly, kubeletDropIn, dropIn)))
			const says = "the kubelet is not healthy any more either: its process has ended 3 times"
			if err == nil || !strings.Contains(err.Error(), "the kubelet is not healthy with it: ") || !strings.Contains(err.Error(), says) {
				t.Fatalf("%q, %v", out, err)
			}
			if _, err := os.Stat(filepath.Join(h.root, dropIn)); err == nil || slices.Contains(h.tools, reboot) {
				t.Errorf("the file is there (%v), programs %q", err, h.tools)
			}
			h.denies(says)
			report, err := guard.ReadReport(h.root)
			if err != nil || !strings.Contains(report.Message, says) {
				t.Errorf("reported is %+v, %v", report, err)
			}
			// It is judged once.
			starts := h.kubelet.Now()
			h.says("", "", "take")
			if passed := h.kubelet.Now().Sub(starts); passed > 0 {
				t.Errorf("it was looked at for %v once more", passed)
			}
		})
	}
}

// TestAKubeletThatFailsAfterAReboot ends the trial long before its deadline.
func TestAKubeletThatFailsAfterAReboot(t *testing.T) {
	h := newHost(t).withKubelet(kubeletservice.Refuses())
	unit := kubeletOnly + `- {kind: Unit, name: lowlatency-a.service, path: /etc/systemd/system/lowlatency-a.service, mode: 420, content: x, state: Present}`
	h.says("", "reboot once", "apply", "--yes", h.file(unit))
	h.write("proc/sys/kernel/random/boot_id", "two\n")
	h.kubelet.Boot()
	h.says("", "", "boot")
	h.says("", "The host starts with its old arguments: the kubelet is not healthy with it", "trial")
	if last := h.tools[len(h.tools)-1]; last != reboot {
		t.Errorf("the last program is %q", last)
	}
	h.denies(`"stage": "Reverted"`, "-o", "json")
}

// TestAnInstructionForABrokenKubelet is refused, and says why; one for a kubelet that is too young to be judged waits.
func TestAnInstructionForABrokenKubelet(t *testing.T) {
	h := newHost(t).withKubelet(kubeletservice.Healthy())
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	g := h.instructed(key)
	i := instruction.Instruction{
		Node: "worker-1", NodeUID: "uid-1", PlanHash: "17304b9f96e3aaaa", Number: 1, Action: instruction.Enact, Reboot: instruction.RebootAllowed,
		Attempt: instruction.FirstAttempt, DeadlineSeconds: 60,
		Operations: []operation.Operation{operation.PutKubeletDropIn(kubeletDropIn, "cpuManagerPolicy: static\n")},
	}
	life := h.kubelet.Life
	h.kubelet.Life = func() kubeletservice.Life { return kubeletservice.Life{Ends: 5 * time.Second, Green: true} }
	h.kubelet.Boot()
	h.kubelet.Pass(17 * time.Second)
	h.give(g, key, i)
	if out, err := h.run("", "take"); err == nil || !strings.Contains(err.Error(), "the kubelet is not healthy, and was not touched") {
		t.Errorf("take: %q, %v", out, err)
	}
	if report, err := g.Report(); err != nil || report.Phase != instruction.Received {
		t.Errorf("Report() = %+v, %v", report, err)
	}
	h.kubelet.Pass(10 * time.Second)
	h.says("", "The instruction is refused: ", "take")
	if report, err := g.Report(); err != nil || report.Phase != instruction.Refused || report.Reason != instruction.ReasonKubeletUnhealthy {
		t.Errorf("Report() = %+v, %v", report, err)
	}
	h.kubelet.Life = life
	h.kubelet.Boot()
	h.kubelet.Pass(time.Hour)
	i.Number, i.Attempt = 2, instruction.FurtherAttempt
	h.give(g, key, i)
	h.says("", "Verified, and kept", "take")
}
