// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package gate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// noon is when the gate decides.
func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// statuses are True, False and Unknown by their first letter.
func status(letter byte) metav1.ConditionStatus {
	return map[byte]metav1.ConditionStatus{'T': metav1.ConditionTrue, 'F': metav1.ConditionFalse, 'U': metav1.ConditionUnknown}[letter]
}

// conditions are Applied, DeJittered and NUMAAligned with these statuses.
func conditions(letters string) []metav1.Condition {
	kinds := []string{v1alpha1.ConditionApplied, v1alpha1.ConditionDeJittered, v1alpha1.ConditionNUMAAligned}
	made := make([]metav1.Condition, 0, len(kinds))
	for i, kind := range kinds {
		reason := map[byte]string{'T': v1alpha1.ReasonVerified, 'F': v1alpha1.ReasonChecksFailed, 'U': v1alpha1.ReasonChecksUnknown}[letters[i]]
		made = append(made, metav1.Condition{Type: kind, Status: status(letters[i]), Reason: reason, Message: "IRQ 142"})
	}
	return made
}

// step is a change of a condition some seconds before noon: "A", "D" or "N" with the letters from and to.
type step struct {
	seconds int
	what    string
	reason  string
	plan    string
	boot    string
}

// story makes the record of steps that are given in the order in which they happened.
func story(steps ...step) []v1alpha1.NodeTransition {
	var recorded []v1alpha1.NodeTransition
	for _, s := range steps {
		kind := map[byte]string{
			'A': v1alpha1.ConditionApplied, 'D': v1alpha1.ConditionDeJittered, 'N': v1alpha1.ConditionNUMAAligned,
		}[s.what[0]]
		t := v1alpha1.NodeTransition{
			Time:      metav1.NewTime(noon().Add(-time.Duration(s.seconds) * time.Second)),
			Condition: kind, From: status(s.what[1]), To: status(s.what[2]), Reason: s.reason, PlanHash: "p1", BootID: "b1",
		}
		if t.Reason == "" {
			t.Reason = map[byte]string{'T': v1alpha1.ReasonVerified, 'F': v1alpha1.ReasonChecksFailed, 'U': v1alpha1.ReasonChecksUnknown}[s.what[2]]
		}
		if s.plan != "" {
			t.PlanHash = s.plan
		}
		if s.boot != "" {
			t.BootID = s.boot
		}
		recorded = slices.Concat([]v1alpha1.NodeTransition{t}, recorded)
	}
	return recorded[:min(len(recorded), v1alpha1.MaxTransitions)]
}

// started is a node whose plugins have advertised in boot b1.
func started() Startup { return Startup{Ready: corev1.ConditionTrue, Boot: "b1", Started: "b1"} }

// joined is what a node has recorded that was verified two hours ago.
func joined() []step {
	return []step{
		{seconds: 7300, what: "AUF", reason: v1alpha1.ReasonRebootPending}, {seconds: 7300, what: "DUF"}, {seconds: 7300, what: "NUF"},
		{seconds: 7200, what: "AFT"}, {seconds: 7200, what: "DFT"}, {seconds: 7200, what: "NFT"},
	}
}

func after(steps ...step) []v1alpha1.NodeTransition { return story(slices.Concat(joined(), steps)...) }

type outcome struct {
	Status     metav1.ConditionStatus
	Reason     string
	RetryAfter time.Duration
}

func TestDecideByChecks(t *testing.T) {
	open := outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}
	failed := outcome{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, 0}
	unknown := outcome{metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown, 0}
	settling := func(left time.Duration) outcome { return outcome{metav1.ConditionFalse, v1alpha1.ReasonSettling, left} }
	cases := map[string]struct {
		conditions  string
		transitions []v1alpha1.NodeTransition
		want        outcome
		wantText    string
	}{
		"nothing is known":             {"UUU", nil, unknown, "Applied is Unknown: IRQ 142"},
		"verified, without a record":   {"TTT", nil, open, "verified for plan p1"},
		"verified long ago":            {"TTT", after(), open, "verified for plan p1"},
		"verified a moment ago":        {"TTT", story(step{seconds: 1, what: "AUT"}, step{seconds: 1, what: "DUT"}, step{seconds: 1, what: "NUT"}), open, ""},
		"a check fails at this moment": {"TFT", after(step{seconds: 0, what: "DTF"}), failed, "DeJittered is False: IRQ 142"},
		"a failure and an unknown":     {"TUF", after(step{seconds: 1, what: "DTU"}, step{seconds: 1, what: "NTF"}), failed, "NUMAAligned is False"},
		"not applied any more":         {"FTT", after(step{seconds: 5, what: "ATF"}), failed, "Applied is False"},

		"the agent starts again":              {"TUT", after(step{seconds: 30, what: "DTU"}), outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 90 * time.Second}, "trusted until 12:01:30Z: DeJittered is Unknown"},
		"two are unknown, since two times":    {"TUU", after(step{seconds: 30, what: "NTU"}, step{seconds: 10, what: "DTU"}), outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 90 * time.Second}, "12:01:30Z: NUMAAligned"},
		"two are unknown, since one time":     {"TUU", after(step{seconds: 30, what: "DTU"}, step{seconds: 30, what: "NTU"}), outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 90 * time.Second}, "12:01:30Z: DeJittered"},
		"unknown for too long":                {"TUT", after(step{seconds: 120, what: "DTU"}), unknown, "DeJittered is Unknown"},
		"unknown after a failure":             {"TUT", after(step{seconds: 30, what: "DTF"}, step{seconds: 10, what: "DFU"}), unknown, ""},
		"unknown for the first time":          {"TUT", story(step{seconds: 30, what: "AUT"}), unknown, ""},
		"unknown since, proven for no record": {"TUT", story(step{seconds: 30, what: "DTU"}), unknown, ""},
		"unknown, proven for another plan":    {"TUT", story(step{seconds: 300, what: "DUT", plan: "p0"}, step{seconds: 30, what: "DTU"}), unknown, ""},
		"unknown, proven before a reboot":     {"TUT", story(step{seconds: 300, what: "DUT", boot: "b0"}, step{seconds: 30, what: "DTU"}), unknown, ""},
		"unknown, reboot seen by the kubelet": {"TUT", story(step{seconds: 300, what: "DUT", boot: "b0"}, step{seconds: 30, what: "DTU", boot: "b0"}), unknown, ""},
		"the report is about a former plan":   {"UUU", after(), unknown, ""},

		"mended just now":                   {"TTT", after(step{seconds: 90, what: "DTF"}, step{seconds: 10, what: "DFT"}), settling(50 * time.Second), "failed once within an hour, and has to prove its plan until 12:00:50Z"},
		"mended a minute ago":               {"TTT", after(step{seconds: 90, what: "DTF"}, step{seconds: 60, what: "DFT"}), open, "verified for plan p1"},
		"mended, the mends at an end":       {"TTT", after(step{seconds: 90, what: "DTF"}, step{seconds: 59, what: "DFT"}), settling(time.Second), ""},
		"two conditions failed in one pass": {"TTT", after(step{seconds: 90, what: "DTF"}, step{seconds: 90, what: "NTF"}, step{seconds: 60, what: "DFT"}, step{seconds: 60, what: "NFT"}), open, ""},
		"the second failure":                {"TTT", after(step{seconds: 300, what: "DTF"}, step{seconds: 290, what: "DFT"}, step{seconds: 200, what: "NTF"}, step{seconds: 60, what: "NFT"}), settling(time.Minute), "failed 2 times"},
		"the second after an hour":          {"TTT", after(step{seconds: 3700, what: "DTF"}, step{seconds: 3690, what: "DFT"}, step{seconds: 200, what: "NTF"}, step{seconds: 60, what: "NFT"}), open, ""},
		"hugepages taken and given back":    {"TTT", after(step{seconds: 90, what: "ATF"}, step{seconds: 90, what: "NTF"}, step{seconds: 5, what: "AFT"}, step{seconds: 5, what: "NFT"}), settling(55 * time.Second), "failed once"},
		"a failure found after an unknown":  {"TTT", after(step{seconds: 90, what: "DTU"}, step{seconds: 60, what: "DUF"}, step{seconds: 5, what: "DFT"}), settling(55 * time.Second), ""},
		"a reboot for a new plan": {"TTT", after(step{seconds: 90, what: "ATF", reason: v1alpha1.ReasonRebootPending, plan: "p2"}, step{seconds: 90, what: "DTF", plan: "p2"},
			step{seconds: 1, what: "AFT", plan: "p2"}, step{seconds: 1, what: "DFT", plan: "p2"}), open, ""},
		"flapping": {"TTT", flapping(10), settling(MaximumSettleTime - 10*time.Second), "failed 10 times"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(Input{Conditions: conditions(tc.conditions), Transitions: tc.transitions, PlanHash: "p1", Startup: started(), Now: noon()})
			if diff := cmp.Diff(tc.want, outcome{got.Status, got.Reason, got.RetryAfter}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(got.Message, tc.wantText) {
				t.Errorf("the message is %q, want %q in it", got.Message, tc.wantText)
			}
		})
	}
}

// flapping is a node that fails every half minute, and is mended ten seconds before noon.
func flapping(times int) []v1alpha1.NodeTransition {
	steps := make([]step, 0, 2*times)
	for i := range times {
		end := 30*(times-1-i) + 10
		steps = append(steps, step{seconds: end + 15, what: "DTF"}, step{seconds: end, what: "DFT"})
	}
	return after(steps...)
}

// TestNothingFlaps plays a node that fails and is mended every half minute for an hour, and counts how often the gate
// becomes another, asking it every five seconds, as if the operator started anew each time.
// TestPlanThatTakesNoReboot: what is brought to a running node does not close its gate before its agent has looked.
func TestPlanThatTakesNoReboot(t *testing.T) {
	open := outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}
	awaiting := outcome{metav1.ConditionUnknown, v1alpha1.ReasonAwaitingVerification, 0}
	failed := outcome{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, 0}
	cases := map[string]struct {
		conditions  string
		reason      string
		boot        string
		transitions []v1alpha1.NodeTransition
		want        outcome
	}{
		"the agent has yet to look at the next plan":     {"UUU", v1alpha1.ReasonAwaitingVerification, "b1", after(), open},
		"it has looked, and does not know yet":           {"TUT", v1alpha1.ReasonChecksUnknown, "b1", after(step{seconds: 9, what: "DTU", plan: "p2"}), outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 111 * time.Second}},
		"it does not know, and the node is to reboot":    {"TUT", v1alpha1.ReasonChecksUnknown, "b1", after(step{seconds: 9, what: "DTU", plan: "p2"}), outcome{metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown, 0}},
		"it has looked, and a check fails":               {"TFT", "", "b1", after(step{seconds: 1, what: "DTF", plan: "p2"}), failed},
		"a check failed for the former plan":             {"UUU", v1alpha1.ReasonAwaitingVerification, "b1", after(step{seconds: 9, what: "DTF"}), awaiting},
		"a condition was unknown for the former plan":    {"UUU", v1alpha1.ReasonAwaitingVerification, "b1", after(step{seconds: 9, what: "ATU"}), outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 111 * time.Second}},
		"the node is to reboot for it":                   {"UUU", v1alpha1.ReasonAwaitingVerification, "b1", after(), awaiting},
		"the node has booted since":                      {"UUU", v1alpha1.ReasonAwaitingVerification, "b2", after(), awaiting},
		"nobody says which boot it is":                   {"UUU", v1alpha1.ReasonAwaitingVerification, "", after(), awaiting},
		"nothing was ever proven":                        {"UUU", v1alpha1.ReasonAwaitingVerification, "b1", nil, awaiting},
		"there is no plan any more":                      {"UUU", v1alpha1.ReasonAwaitingPlan, "b1", after(), outcome{metav1.ConditionUnknown, v1alpha1.ReasonAwaitingPlan, 0}},
		"one condition is proven for the next, two wait": {"TUU", v1alpha1.ReasonAwaitingVerification, "b1", after(), open},
		"mended just now for the former plan": {
			"UUU", v1alpha1.ReasonAwaitingVerification, "b1", after(step{seconds: 90, what: "DTF"}, step{seconds: 10, what: "DFT"}),
			outcome{metav1.ConditionFalse, v1alpha1.ReasonSettling, 50 * time.Second},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := Input{Conditions: conditions(tc.conditions), Transitions: tc.transitions, PlanHash: "p2", Startup: started(), Now: noon()}
			in.Configured = !strings.Contains(name, "is to reboot")
			in.Startup.Boot, in.Startup.Started = tc.boot, (&Startup{Boot: tc.boot}).Mark()
			for i := range in.Conditions {
				if in.Conditions[i].Status == metav1.ConditionUnknown {
					in.Conditions[i].Reason = tc.reason
				}
			}
			got := Decide(in)
			if diff := cmp.Diff(tc.want, outcome{got.Status, got.Reason, got.RetryAfter}); diff != "" {
				t.Errorf("(-want +got):\n%s%s", diff, got.Message)
			}
		})
	}
}

func TestNothingFlaps(t *testing.T) {
	steps := []step{{seconds: 3700, what: "AUT"}, {seconds: 3700, what: "DUT"}, {seconds: 3700, what: "NUT"}}
	changes, open, letters := 0, true, "TTT"
	for second := 3600; second >= 0; second -= 5 {
		switch second % 30 {
		case 20:
			steps, letters = append(steps, step{seconds: second, what: "DTF"}), "TFT"
		case 10:
			steps, letters = append(steps, step{seconds: second, what: "DFT"}), "TTT"
		}
		now := noon().Add(-time.Duration(second) * time.Second)
		is := Decide(Input{Conditions: conditions(letters), Transitions: story(steps...), PlanHash: "p1", Startup: started(), Now: now}).IsOpen()
		if is != open {
			changes, open = changes+1, is
		}
	}
	if changes != 1 || open {
		t.Errorf("the gate became another %d times and is open: %v; it has to close and stay closed", changes, open)
	}
}

func TestDecideByStartup(t *testing.T) {
	pool := func(reported bool, units, advertised int64) Pool {
		return Pool{Name: "x2", Resource: "lowlatency.dev/x2", Reported: reported, Units: units, Advertised: advertised}
	}
	cases := map[string]struct {
		conditions string
		startup    Startup
		want       outcome
		wantStart  bool
		wantText   string
	}{
		"no pools": {"TTT", Startup{Ready: corev1.ConditionTrue, Boot: "b1"}, outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}, false, ""},
		"not ready": {"FFF", Startup{Ready: corev1.ConditionFalse, Boot: "b1", Started: "b1"}, outcome{metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, 0}, true,
			"the condition Ready of the Node is False"},
		"not known ready": {"TTT", Startup{Ready: corev1.ConditionUnknown, Boot: "b1", Started: "b1"}, outcome{metav1.ConditionFalse, v1alpha1.ReasonNodeNotReady, 0}, true, "is Unknown"},
		"the agent has not looked": {"TTT", Startup{Boot: "b1", Pools: []Pool{pool(false, 0, 2)}}, outcome{metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlugins, 0}, true,
			"the agent has not reported the NICs of BypassNICPool x2"},
		"the plugin is late": {"TTT", Startup{Boot: "b1", Pools: []Pool{pool(true, 2, 0)}}, outcome{metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlugins, 0}, true,
			"the kubelet advertises 0 of 2 units of lowlatency.dev/x2: the device plugin of BypassNICPool x2"},
		"the plugin advertises some":      {"TTT", Startup{Boot: "b1", Pools: []Pool{pool(true, 2, 1)}}, outcome{metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlugins, 0}, true, "1 of 2"},
		"the second pool is late":         {"TTT", Startup{Boot: "b1", Pools: []Pool{pool(true, 2, 2), pool(true, 1, 0)}}, outcome{metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlugins, 0}, true, "0 of 1"},
		"all advertise":                   {"TTT", Startup{Boot: "b1", Pools: []Pool{pool(true, 2, 2), pool(true, 1, 1)}}, outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}, false, ""},
		"a NIC is sick":                   {"TTT", Startup{Boot: "b1", Pools: []Pool{pool(true, 0, 0)}}, outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}, false, ""},
		"a unit goes after the start":     {"TTT", Startup{Boot: "b1", Started: "b1", Pools: []Pool{pool(true, 2, 1)}}, outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}, false, ""},
		"started in another boot":         {"TTT", Startup{Boot: "b2", Started: "b1", Pools: []Pool{pool(true, 2, 0)}}, outcome{metav1.ConditionFalse, v1alpha1.ReasonAwaitingPlugins, 0}, true, ""},
		"a kubelet that tells no boot":    {"TTT", Startup{Started: "unknown", Pools: []Pool{pool(true, 2, 0)}}, outcome{metav1.ConditionTrue, v1alpha1.ReasonVerified, 0}, false, ""},
		"late and not verified: checks":   {"TFT", Startup{Boot: "b1", Pools: []Pool{pool(true, 2, 0)}}, outcome{metav1.ConditionFalse, v1alpha1.ReasonChecksFailed, 0}, true, "DeJittered"},
		"advertised and not verified yet": {"UUU", Startup{Boot: "b1", Pools: []Pool{pool(true, 2, 2)}}, outcome{metav1.ConditionUnknown, v1alpha1.ReasonChecksUnknown, 0}, false, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Decide(Input{Conditions: conditions(tc.conditions), PlanHash: "p1", Startup: tc.startup, Now: noon()})
			if diff := cmp.Diff(tc.want, outcome{got.Status, got.Reason, got.RetryAfter}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.IsStarting() != tc.wantStart {
				t.Errorf("IsStarting() = %v, want %v", got.IsStarting(), tc.wantStart)
			}
			if !strings.Contains(got.Message, tc.wantText) {
				t.Errorf("the message is %q, want %q in it", got.Message, tc.wantText)
			}
		})
	}
}

// TestNoTrustAcrossBoots looks at a node whose kubelet does not report its boot: the record does.
func TestNoTrustAcrossBoots(t *testing.T) {
	for boot, want := range map[string]bool{"b1": true, "b0": false} {
		got := Decide(Input{
			Conditions: conditions("TUT"), PlanHash: "p1", Now: noon(),
			Transitions: story(step{seconds: 300, what: "DUT", boot: boot}, step{seconds: 30, what: "DTU"}),
		})
		if got.IsOpen() != want {
			t.Errorf("proven in boot %s, unknown in boot b1: open is %v, want %v", boot, got.IsOpen(), want)
		}
	}
}

func TestMark(t *testing.T) {
	known, unknown := Startup{Boot: "b1"}, Startup{}
	if diff := cmp.Diff([]string{"b1", "unknown"}, []string{known.Mark(), unknown.Mark()}); diff != "" {
		t.Error(diff)
	}
}
