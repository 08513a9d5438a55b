// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// checkCase changes the sound host or its plan, and says what one check makes of it.
type checkCase struct {
	change func(f fixture)
	// once tells that the host was read once only.
	once bool
	// want is "" when the check does not apply.
	want v1alpha1.Outcome
	// wantMessage is the whole message of a check that failed, and a part of it when it is unknown.
	wantMessage string
}

type checkCases map[string]checkCase

// allCases are the cases of every check.
func allCases() map[v1alpha1.CheckID]checkCases {
	all := map[v1alpha1.CheckID]checkCases{}
	for _, subject := range []map[v1alpha1.CheckID]checkCases{
		kernelCases(), partitionCases(), isolationCases(), interruptCases(), counterCases(), workqueueCases(),
		backgroundCases(), memoryCases(), clockCases(), frequencyCases(), idleCases(), numaCases(), nicCases(), podCases(), poolCases(), kubeletCases(),
		rateCases(), taskCases(), disturbanceCases(), qualificationCases(), platformCases(), networkCases(), ownershipCases(), moreMemoryCases(), platformPodCases(),
	} {
		maps.Copy(all, subject)
	}
	return all
}

func TestChecks(t *testing.T) {
	for id, cases := range allCases() {
		for name, tc := range cases {
			t.Run(string(id)+"/"+name, func(t *testing.T) {
				f := sound()
				if tc.change != nil {
					tc.change(f)
				}
				if tc.once {
					f.before = nil
				}
				result, found := find(f.evaluate(), id)
				tc.compare(t, result, found)
			})
		}
	}
}

// compare holds the result of a check against the case.
func (tc checkCase) compare(t *testing.T, result Result, found bool) {
	t.Helper()
	if found != (tc.want != "") {
		t.Fatalf("evaluated: %t, want %t (%+v)", found, tc.want != "", result)
	}
	if result.Outcome != tc.want {
		t.Fatalf("got %s (%s), want %s", result.Outcome, result.Message, tc.want)
	}
	if tc.want == v1alpha1.OutcomeFailed && result.Message != tc.wantMessage {
		t.Errorf("message:\n got %s\nwant %s", result.Message, tc.wantMessage)
	}
	if tc.want == v1alpha1.OutcomeUnknown && (tc.wantMessage == "" || !strings.Contains(result.Message, tc.wantMessage)) {
		t.Errorf("message %q does not name %q", result.Message, tc.wantMessage)
	}
}

// skipsUncounted reports whether a run in which nobody counted leaves its check out and says why.
func skipsUncounted() bool {
	f := sound()
	f.pods.qualification.ManagementInterrupts = host.Absent[uint64]("msr/smi/", "the processor is of AMD")
	return slices.Contains(f.evaluate().Skipped, Skip{
		Check: checkManagementInterrupts, Reason: "nobody counted system management interrupts during the qualification run: the processor is of AMD",
	})
}

func find(report Report, id v1alpha1.CheckID) (Result, bool) {
	i := slices.IndexFunc(report.Results, func(r Result) bool { return r.Check.ID == id })
	if i < 0 {
		return Result{}, false
	}
	return report.Results[i], true
}

// Every check must be shown to pass, to fail and to admit that it does not know. One admits it by being left out, with the reason:
// where nothing counts system management interrupts, a critical check that is unknown would close every gate.
func TestEveryCheckHasCases(t *testing.T) {
	all := allCases()
	for _, check := range Catalogue() {
		for _, outcome := range []v1alpha1.Outcome{v1alpha1.OutcomePassed, v1alpha1.OutcomeFailed, v1alpha1.OutcomeUnknown} {
			has := false
			for _, tc := range all[check.ID] {
				has = has || tc.want == outcome
			}
			if check.ID == checkManagementInterrupts && outcome == v1alpha1.OutcomeUnknown {
				has = !has && skipsUncounted()
			}
			if !has {
				t.Errorf("no case in which %s is %s", check.ID, outcome)
			}
		}
		delete(all, check.ID)
	}
	for id := range all {
		t.Errorf("cases for %s, which is no check", id)
	}
}

func TestCatalogueIsComplete(t *testing.T) {
	pattern := regexp.MustCompile(`^[a-z0-9-]+([.][a-z0-9-]+)+$`)
	seen := map[v1alpha1.CheckID]bool{}
	for _, check := range Catalogue() {
		if !pattern.MatchString(string(check.ID)) || len(check.ID) > 64 || seen[check.ID] {
			t.Errorf("check %q: the identifier is malformed or taken", check.ID)
		}
		seen[check.ID] = true
		if missing := missingFields(check); missing != "" {
			t.Errorf("check %s lacks %s", check.ID, missing)
		}
		if severityRank(check.Severity) < 0 || check.Reboot == "" {
			t.Errorf("check %s: severity %q, reboot %q", check.ID, check.Severity, check.Reboot)
		}
		for _, condition := range check.Conditions {
			if !slices.Contains(ConditionTypes(), condition) {
				t.Errorf("check %s speaks to condition %s, which does not exist", check.ID, condition)
			}
		}
	}
}

// missingFields names what a check does not say about itself.
func missingFields(check Check) string {
	said := map[string]bool{
		"title": check.Title != "", "why": check.Why != "", "reads": len(check.Reads) > 0, "source": check.Source != "",
		"fix": check.Fix != "" && len(check.Fix) <= v1alpha1.MaxFindingDetailLength, "conditions": len(check.Conditions) > 0, "run": check.run != nil,
	}
	maps.DeleteFunc(said, func(_ string, is bool) bool { return is })
	return strings.Join(slices.Sorted(maps.Keys(said)), ", ")
}

// A fact has one judge, so that one fault is one finding.
func TestSettingsHaveOneOwner(t *testing.T) {
	owners := map[string]v1alpha1.CheckID{}
	for _, check := range Catalogue() {
		for _, pattern := range check.owns {
			if _, err := path.Match(pattern, "/"); err != nil {
				t.Errorf("check %s: pattern %q: %v", check.ID, pattern, err)
			}
			if other, taken := owners[pattern]; taken {
				t.Errorf("%s is owned by %s and by %s", pattern, other, check.ID)
			}
			owners[pattern] = check.ID
		}
	}
}
