// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// verdict is what a check found. The zero verdict means that the check does not apply to the plan.
type verdict struct {
	outcome            v1alpha1.Outcome
	message            string
	observed, expected string
	// objects are what of the node the verdict is about; none when it is about the node as a whole.
	objects finding.Objects
	// fix and reboot replace those of the check where the verdict knows better.
	fix    string
	reboot v1alpha1.RebootRequirement
}

// notApplicable is the verdict of a check that the plan does not ask for.
func notApplicable() verdict { return verdict{} }

// passed says what was observed.
func passed(observed string) verdict {
	return verdict{outcome: v1alpha1.OutcomePassed, observed: observed, message: "as planned"}
}

// failed says in one sentence what is wrong.
func failed(message, observed, expected string) verdict {
	return verdict{outcome: v1alpha1.OutcomeFailed, message: message, observed: observed, expected: expected}
}

// about adds what of the node the verdict is about, if it says that something is wrong or not known.
func (v verdict) about(objects ...finding.Objects) verdict {
	if v.outcome == v1alpha1.OutcomeFailed || v.outcome == v1alpha1.OutcomeUnknown {
		v.objects = finding.Union(append(objects, v.objects)...)
	}
	return v
}

// unknown says which fact is missing and why.
func unknown(source, reason, expected string) verdict {
	if reason == "" {
		reason = "no value"
	}
	message := fmt.Sprintf("%s cannot be read: %s", source, reason)
	return verdict{outcome: v1alpha1.OutcomeUnknown, message: message, expected: expected}
}

// unsaid says what a file that can be read does not tell, and why.
func unsaid(source, reason, expected string) verdict {
	return verdict{outcome: v1alpha1.OutcomeUnknown, message: source + " does not tell: " + reason, expected: expected}
}

// judge hands a known fact to a rule; an absent one is Unknown.
func judge[T any](fact host.Fact[T], expected string, rule func(T) verdict) verdict {
	value, ok := fact.Get()
	if !ok {
		return unknown(fact.Source, fact.Reason, expected)
	}
	return rule(value)
}

// worst joins the verdicts of several objects that one check looks at: one that failed decides, else
// one that is unknown, else they passed. Verdicts that do not apply do not count.
func worst(verdicts ...verdict) verdict {
	for _, outcome := range []v1alpha1.Outcome{v1alpha1.OutcomeFailed, v1alpha1.OutcomeUnknown, v1alpha1.OutcomePassed} {
		if joined, ok := joinVerdicts(verdicts, outcome); ok {
			return joined
		}
	}
	return notApplicable()
}

// joinVerdicts joins the verdicts of one outcome, and reports whether there are any. The sentence names the first few
// objects and counts the rest; the objects are those of all.
func joinVerdicts(verdicts []verdict, outcome v1alpha1.Outcome) (verdict, bool) {
	joined := verdict{outcome: outcome}
	var messages, observed, expected texts
	var objects []finding.Objects
	for _, v := range verdicts {
		if v.outcome != outcome {
			continue
		}
		messages.add(v.message)
		observed.add(v.observed)
		expected.add(v.expected)
		objects = append(objects, v.objects)
		if joined.fix == "" {
			joined.fix = v.fix
		}
		if joined.reboot != v1alpha1.RebootRequired {
			joined.reboot = v.reboot
		}
	}
	joined.message = enumerate(messages.distinct)
	joined.objects = finding.Union(objects...)
	joined.observed, joined.expected = enumerate(observed.distinct), enumerate(expected.distinct)
	return joined, len(messages.distinct) > 0
}

// texts collects the distinct texts that are not empty, in the order in which they came.
type texts struct {
	distinct []string
	seen     map[string]bool
}

func (t *texts) add(text string) {
	if text == "" || t.seen[text] {
		return
	}
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	t.seen[text] = true
	t.distinct = append(t.distinct, text)
}

// enumerated is how many objects a sentence names; the rest is counted.
const enumerated = 5

// enumerate joins items with semicolons and counts those beyond the first few.
func enumerate(items []string) string {
	if len(items) <= enumerated {
		return strings.Join(items, "; ")
	}
	return strings.Join(items[:enumerated], "; ") + fmt.Sprintf("; and %d more", len(items)-enumerated)
}

// isOrAre agrees with the name of the set.
func isOrAre(set cpus.Set) string {
	if set.Len() == 1 {
		return "is"
	}
	return "are"
}

// sorted brings the verdicts of objects that came in no order, such as those of a map, into that of their messages.
func sorted(verdicts []verdict) []verdict {
	slices.SortFunc(verdicts, func(a, b verdict) int {
		return cmp.Or(strings.Compare(a.message, b.message), strings.Compare(a.observed, b.observed))
	})
	return verdicts
}
