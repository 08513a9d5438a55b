// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/finding"
)

// Hazard is a setting that a profile must not ask for unseen: with it a node does not come back after its reboot, opens
// itself to strangers, or is no longer what the platform installed.
type Hazard struct {
	// names of the setting: kernel arguments with underscores, units and modules in small letters. "*" stands for any
	// text.
	names []string
	// harmless reports whether a value has none of the danger; nil when all values have it.
	harmless func(value string) bool

	// Why completes a sentence that begins with the setting.
	Why string
	// Instead is what to do, a sentence.
	Instead string
	// Acceptable settings are legitimate on some nodes; spec.acceptedRisks confirms them by name. Others are refused.
	Acceptable bool

	// objects of the node that are in danger.
	objects finding.Objects
}

// acceptedField is the field that confirms settings by name.
const acceptedField = "spec.acceptedRisks"

// hazardOf finds the first row that knows the name and finds danger in the value.
func hazardOf(table []Hazard, name, value string) (Hazard, bool) {
	at := slices.IndexFunc(table, func(h Hazard) bool {
		return slices.ContainsFunc(h.names, func(pattern string) bool { return matchesName(pattern, name) }) &&
			(h.harmless == nil || !h.harmless(value))
	})
	if at < 0 {
		return Hazard{}, false
	}
	return table[at], true
}

// matchesName compares a name with one in which "*" stands for any text. The patterns are constants that path.Match can
// read, and it takes "/" for the end of a text.
func matchesName(pattern, name string) bool {
	ok, err := path.Match(pattern, strings.ReplaceAll(name, "/", "."))
	return ok && err == nil
}

// hazardousSetting is one setting of the profile that may be a hazard.
type hazardousSetting struct {
	// field and text as in the profile. The text is what spec.acceptedRisks names.
	field, text string
	// same reports whether another text, given in spec.acceptedRisks, is this setting.
	same func(text string) bool
	Hazard
}

// refuseHazards reports the hazards of the profile, unless they are accepted by name, and acceptances that are good for
// nothing.
func (p *planner) refuseHazards() {
	found := slices.Concat(p.argumentHazards(), p.unitHazards(), p.moduleHazards(), p.parameterHazards(), p.kubeletHazards())
	used := map[int]bool{}
	for _, setting := range found {
		at := slices.IndexFunc(p.spec.AcceptedRisks, func(risk v1alpha1.AcceptedRisk) bool { return setting.same(risk.Setting) })
		used[at] = true
		if at < 0 || !setting.Acceptable {
			p.refuse(setting)
		}
	}
	for i, risk := range p.spec.AcceptedRisks {
		if !used[i] {
			p.report(v1alpha1.SeverityLow, ruleHazard, element(acceptedField, i), "Remove it.",
				"%s is accepted, but the profile asks for nothing of that name that needs it", risk.Setting)
		}
	}
}

// refuse reports a hazard that is not accepted.
func (p *planner) refuse(setting hazardousSetting) {
	remedy := setting.Instead
	if setting.Acceptable {
		remedy += " If it is meant, name it in " + acceptedField + "."
	}
	p.critical(ruleHazard, setting.field, remedy, "%s %s", setting.text, setting.Why).about(setting.objects)
}

// equalTo compares texts by their one spelling.
func equalTo(text string, spell func(string) string) func(string) bool {
	return func(other string) bool { return spell(other) == spell(text) }
}
