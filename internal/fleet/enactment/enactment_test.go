// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package enactment_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

const (
	planA = "aaaaaaaa"
	planB = "bbbbbbbb"
)

func now() time.Time { return time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC) }

// seconds is the time as a number of an instruction.
func seconds() int64 { return now().Unix() }

// node is one that is to have plan A, and has nothing of ours.
func node(name string, changes ...func(*enactment.Node)) enactment.Node {
	n := enactment.Node{
		Name: name, Profile: "trading", IsReady: true, IsReporting: true,
		Wanted: &enactment.Wanted{Action: enactment.Enact, PlanHash: planA},
	}
	for _, change := range changes {
		change(&n)
	}
	return n
}

type change = func(*enactment.Node)

func reported(phase v1alpha1.EnactmentPhase, number int64, hash, inForce string) change {
	return func(n *enactment.Node) {
		n.Reported = &v1alpha1.NodeEnactment{Phase: phase, Number: number, PlanHash: hash, InForcePlanHash: inForce}
	}
}

func because(reason, message string) change {
	return func(n *enactment.Node) { n.Reported.Reason, n.Reported.Message = reason, message }
}

func inTurn(n *enactment.Node) { n.Turn = &enactment.Turn{Since: now().Add(-time.Minute)} }

func turnSince(ago time.Duration) change {
	return func(n *enactment.Node) { n.Turn = &enactment.Turn{Since: now().Add(-ago)} }
}

func cordoned(n *enactment.Node) { n.IsCordoned, n.IsOurCordon = true, true }

func foreignCordon(n *enactment.Node) { n.IsCordoned = true }

func issued(reboots bool) change {
	return func(n *enactment.Node) {
		n.Issued = &enactment.Issued{Number: 8, Action: enactment.Enact, PlanHash: planA, Reboots: reboots, Since: now().Add(-time.Minute)}
	}
}

func held(n *enactment.Node) { n.IsHeld = true }

func delivered(n *enactment.Node) { n.Issued.Delivered = true }

func issuedRemoval(number int64) change {
	return func(n *enactment.Node) {
		n.Issued = &enactment.Issued{Number: number, Action: enactment.Remove, Reboots: true, Since: now()}
	}
}

func empty(n *enactment.Node) { n.Drain = &enactment.Drain{} }

func left(pods ...string) change {
	return func(n *enactment.Node) { n.Drain = &enactment.Drain{Left: pods} }
}

func blocked(pods ...string) change {
	return func(n *enactment.Node) { n.Drain = &enactment.Drain{Blocked: pods} }
}

func applied(n *enactment.Node) { n.IsApplied = true }

func notReady(n *enactment.Node) { n.IsReady = false }

func unrenewed(n *enactment.Node) { n.IsReady, n.Unrenewed = false, "its Lease stands still" }

func silent(n *enactment.Node) { n.IsReporting = false }

func gated(n *enactment.Node) { n.IsGated = true }

func controlPlane(n *enactment.Node) { n.IsControlPlane = true }

func unwanted(n *enactment.Node) { n.Wanted = nil }

func wantsRemoval(n *enactment.Node) { n.Wanted = &enactment.Wanted{Action: enactment.Remove} }

func wants(hash string) change {
	return func(n *enactment.Node) { n.Wanted = &enactment.Wanted{Action: enactment.Enact, PlanHash: hash} }
}

func impossible(why string) change { return func(n *enactment.Node) { n.Wanted.Refused = why } }

func troubled(what string) change { return func(n *enactment.Node) { n.Issued.Trouble = what } }

func locked(why string) change { return func(n *enactment.Node) { n.Lock = why } }

func of(profile string) change { return func(n *enactment.Node) { n.Profile = profile } }

// retry allows one more attempt after instruction 8.
func retry(n *enactment.Node) { n.Retry = 8 }

func decide(limit int, nodes ...enactment.Node) enactment.Decision {
	return enactment.Decide(nodes, enactment.Limits{Profile: "trading", MaximumUnavailable: limit, MayBegin: true}, now())
}

// verbs are the steps of a decision as "verb node".
func verbs(d enactment.Decision) []string {
	texts := make([]string, 0, len(d.Steps))
	for _, step := range d.Steps {
		texts = append(texts, string(step.Verb)+" "+step.Node)
	}
	return texts
}

// stages are the stages of a decision by node, and what the messages hold.
func stageOf(t *testing.T, d enactment.Decision, name string) enactment.State {
	t.Helper()
	for _, state := range d.States {
		if state.Node == name {
			return state
		}
	}
	t.Fatalf("nothing is said about node %s", name)
	return enactment.State{}
}

// stageCase is one node at one stage.
type stageCase struct {
	with  []change
	step  enactment.Step
	stage enactment.Stage
	says  string
}

func took(changes ...change) []change { return append([]change{inTurn}, changes...) }

func boot(changes ...change) []change { return append([]change{inTurn, cordoned}, changes...) }

// needsReboot is a guard without a plan in force that has found nothing else against plan A.
func needsReboot(n *enactment.Node) {
	reported(v1alpha1.EnactmentRefused, 7, planA, "")(n)
	because("RebootForbidden", "it needs a reboot")(n)
}

// untilEmpty are the stages until a node is empty.
func untilEmpty() map[string]stageCase {
	return map[string]stageCase{
		"nothing begun":                   {nil, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageWaiting, "its turn begins"},
		"brought by other means":          {[]change{applied}, enactment.Step{}, enactment.StageDone, ""},
		"a guard without a plan":          {[]change{reported(v1alpha1.EnactmentIdle, 0, "", "")}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageWaiting, ""},
		"in force":                        {[]change{reported(v1alpha1.EnactmentInForce, 7, planA, planA)}, enactment.Step{}, enactment.StageDone, ""},
		"in force again after a failure":  {[]change{reported(v1alpha1.EnactmentTakenBack, 7, planB, planA)}, enactment.Step{}, enactment.StageDone, ""},
		"another plan in force":           {[]change{reported(v1alpha1.EnactmentInForce, 7, planB, planB)}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageWaiting, ""},
		"no plan":                         {[]change{unwanted, reported(v1alpha1.EnactmentInForce, 7, planB, planB)}, enactment.Step{}, enactment.StageDone, ""},
		"a host that cannot have it":      {[]change{impossible("no real-time kernel")}, enactment.Step{}, enactment.StageRefused, "no real-time kernel"},
		"a guard that nobody can read":    {[]change{reported(v1alpha1.EnactmentUnreadable, 7, planB, planB), because("", "a newer guard.")}, enactment.Step{}, enactment.StageWaiting, "its agent cannot read what the guard says: a newer guard"},
		"one that had the plan":           {[]change{applied, reported(v1alpha1.EnactmentUnreadable, 7, planA, planA)}, enactment.Step{}, enactment.StageWaiting, "cannot read"},
		"one that is to leave":            {[]change{wantsRemoval, reported(v1alpha1.EnactmentUnreadable, 0, "", "")}, enactment.Step{}, enactment.StageWaiting, "cannot read"},
		"a kubelet that is not ready":     {[]change{notReady}, enactment.Step{}, enactment.StageWaiting, "kubelet is not ready"},
		"an agent that is silent":         {[]change{silent}, enactment.Step{}, enactment.StageWaiting, "since its last boot"},
		"a foreign lock":                  {[]change{locked("kured holds its lock")}, enactment.Step{}, enactment.StageWaiting, "kured holds its lock"},
		"a foreign cordon":                {[]change{foreignCordon}, enactment.Step{}, enactment.StageWaiting, "somebody else has cordoned it"},
		"a guard that somebody uses":      {[]change{reported(v1alpha1.EnactmentVerifying, 0, "", "")}, enactment.Step{}, enactment.StageWaiting, "somebody is changing it"},
		"the first plan, too, is tried":   {took(), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, "without a reboot"},
		"a host that cannot be written":   {took(reported(v1alpha1.EnactmentRefused, 8, planA, ""), because("CannotEnact", "x")), enactment.Step{Verb: enactment.EndTurn}, enactment.StageFailed, "was refused (CannotEnact)"},
		"one that needs a reboot":         {took(needsReboot), enactment.Step{Verb: enactment.Cordon}, enactment.StageChanging, "cordoned"},
		"of another plan nothing is said": {took(needsReboot, wants(planB)), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, "without a reboot"},
		"a later one is tried without":    {took(reported(v1alpha1.EnactmentInForce, 7, planB, planB)), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, "without a reboot"},
		"and handed over":                 {took(reported(v1alpha1.EnactmentInForce, 7, planB, planB), issued(false)), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, "handed"},
		"the guard needs a reboot":        {took(reported(v1alpha1.EnactmentRefused, 8, planA, planB), because("RebootForbidden", "it needs a reboot"), issued(false)), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, ""},
		"so the node is emptied":          {took(reported(v1alpha1.EnactmentRefused, 8, planA, planB), because("RebootForbidden", "it needs a reboot")), enactment.Step{Verb: enactment.Cordon}, enactment.StageChanging, ""},
		"cordoned":                        {boot(needsReboot), enactment.Step{Verb: enactment.Evict}, enactment.StageChanging, "evicted"},
		"pods are left":                   {boot(needsReboot, left("a/b")), enactment.Step{Verb: enactment.Evict}, enactment.StageChanging, "a/b"},
		"a PDB that blocks for a moment":  {boot(needsReboot, blocked("a/b: budget")), enactment.Step{Verb: enactment.Evict}, enactment.StageChanging, "a/b: budget"},
		"a PDB that blocks":               {boot(needsReboot, blocked("a/b: budget"), turnSince(10*time.Minute)), enactment.Step{Verb: enactment.Evict}, enactment.StageBlocked, "a/b: budget"},
	}
}

// fromEmpty are those from then on.
func fromEmpty() map[string]stageCase {
	return map[string]stageCase{
		"empty":                              {boot(needsReboot, empty), enactment.Step{Verb: enactment.Instruct, Number: seconds(), Reboots: true}, enactment.StageChanging, "empty"},
		"a clock that was set back":          {took(reported(v1alpha1.EnactmentRemoved, seconds()+9, "", "")), enactment.Step{Verb: enactment.Instruct, Number: seconds() + 10}, enactment.StageChanging, ""},
		"a replayed number":                  {took(reported(v1alpha1.EnactmentRefused, 8, planA, ""), because("Replayed", "its number")), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, ""},
		"instructed":                         {boot(issued(true)), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, "handed"},
		"not taken for long":                 {boot(issued(true), func(n *enactment.Node) { n.Issued.Since = now().Add(-time.Hour) }), enactment.Step{Verb: enactment.HandOver}, enactment.StageLate, "has not taken"},
		"not to be handed over":              {boot(issued(true), troubled("no space left on device")), enactment.Step{Verb: enactment.HandOver}, enactment.StageLate, "cannot be handed its instruction: no space left"},
		"handed over, and in trouble":        {boot(issued(true), delivered, troubled("no answer")), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, "handed"},
		"handed over, in trouble for long":   {boot(issued(true), delivered, troubled("no answer"), func(n *enactment.Node) { n.Issued.Since = now().Add(-time.Hour) }), enactment.Step{Verb: enactment.HandOver}, enactment.StageLate, "has not taken its instruction: no answer"},
		"in trouble, and not wanted":         {boot(unwanted, issued(true), troubled("no space left on device")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "withdrawn"},
		"in trouble, and corrected":          {boot(wants(planB), issued(true), troubled("no space left on device")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "withdrawn"},
		"a key that the guard does not know": {boot(issued(true), reported(v1alpha1.EnactmentRefused, 0, "", ""), because("WrongKey", "another key")), enactment.Step{Verb: enactment.HandOver}, enactment.StageLate, "another key"},
		"received":                           {boot(issued(true), reported(v1alpha1.EnactmentReceived, 8, planA, "")), enactment.Step{}, enactment.StageChanging, "has the instruction"},
		"rebooting, the kubelet away":        {boot(issued(true), notReady, reported(v1alpha1.EnactmentArmed, 8, planA, "")), enactment.Step{}, enactment.StageChanging, "reboots"},
		"verifying":                          {boot(issued(true), reported(v1alpha1.EnactmentVerifying, 8, planA, "")), enactment.Step{}, enactment.StageChanging, "verified"},
		"verifying for long":                 {boot(issued(true), turnSince(2*time.Hour), reported(v1alpha1.EnactmentVerifying, 8, planA, "")), enactment.Step{}, enactment.StageLate, "longer than it should"},
		"kept":                               {boot(issued(true), reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "answered"},
		"kept, the kubelet away":             {boot(notReady, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{}, enactment.StageChanging, "kubelet is not ready"},
		"unreadable after it was told":       {boot(issued(true), delivered, reported(v1alpha1.EnactmentUnreadable, 8, planA, ""), because("", "a newer guard.")), enactment.Step{}, enactment.StageLate, "its agent cannot read what the guard says: a newer guard"},
		"unreadable, and told for nothing":   {boot(unwanted, issued(true), delivered, reported(v1alpha1.EnactmentUnreadable, 7, planA, "")), enactment.Step{}, enactment.StageLate, "cannot read"},
		"unreadable before it was told":      {boot(issued(true), reported(v1alpha1.EnactmentUnreadable, 7, planA, "")), enactment.Step{}, enactment.StageLate, "cannot read"},
		"unreadable, and not to be told":     {boot(unwanted, issued(true), reported(v1alpha1.EnactmentUnreadable, 7, planA, "")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageLate, "cannot read"},
		"unreadable when it is empty":        {boot(empty, reported(v1alpha1.EnactmentUnreadable, 7, planA, "")), enactment.Step{}, enactment.StageLate, "cannot read"},
		"unreadable when it was kept":        {boot(applied, reported(v1alpha1.EnactmentUnreadable, 8, planA, planA)), enactment.Step{}, enactment.StageLate, "cannot read"},
		"kept, no word of the kubelet":       {boot(unrenewed, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{}, enactment.StageChanging, "its Lease stands still"},
		"taken back, no word of the kubelet": {boot(unrenewed, reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "x")), enactment.Step{}, enactment.StageFailed, "(NotStarted): x; its Lease stands still"},
		"kept, the agent away":               {boot(silent, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{}, enactment.StageChanging, "since it has rebooted"},
		"kept, not found by the agent":       {boot(reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{}, enactment.StageChanging, "has not found the plan"},
		"proven":                             {boot(applied, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.Uncordon}, enactment.StageChanging, ""},
		"uncordoned":                         {took(applied, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.EndTurn}, enactment.StageChanging, ""},
		"a cordon that is not ours stays":    {took(applied, foreignCordon, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.EndTurn}, enactment.StageChanging, ""},
		"taken back":                         {boot(issued(true), reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "the kernel did not come up.")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, ""},
		"taken back and given free":          {boot(reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "the kernel did not come up.")), enactment.Step{Verb: enactment.Uncordon}, enactment.StageFailed, "instruction 8 was taken back (NotStarted): the kernel did not come up"},
		"taken back and over":                {[]change{reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "x")}, enactment.Step{}, enactment.StageFailed, "taken back"},
		"refused":                            {[]change{reported(v1alpha1.EnactmentRefused, 8, planA, ""), because("CannotEnact", "x")}, enactment.Step{}, enactment.StageFailed, "was refused (CannotEnact)"},
		"another attempt":                    {[]change{reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), retry}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageWaiting, ""},
		"another attempt is told so":         {boot(empty, reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), retry), enactment.Step{Verb: enactment.Instruct, Number: seconds(), Reboots: true, Again: true}, enactment.StageChanging, ""},
		"another attempt, a plan in force":   {took(reported(v1alpha1.EnactmentTakenBack, 8, planA, planB), retry), enactment.Step{Verb: enactment.Cordon}, enactment.StageChanging, "cordoned"},
		"which is told so, too":              {boot(empty, reported(v1alpha1.EnactmentTakenBack, 8, planA, planB), retry), enactment.Step{Verb: enactment.Instruct, Number: seconds(), Reboots: true, Again: true}, enactment.StageChanging, ""},
		"one more attempt failed":            {[]change{reported(v1alpha1.EnactmentTakenBack, 9, planA, ""), retry}, enactment.Step{}, enactment.StageFailed, ""},
		"corrected after a failure":          {[]change{wants(planB), reported(v1alpha1.EnactmentTakenBack, 8, planA, "")}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageWaiting, ""},
		"withdrawn while it is emptied":      {boot(unwanted, left("a/b")), enactment.Step{Verb: enactment.Uncordon}, enactment.StageChanging, ""},
		"withdrawn before it was taken":      {boot(unwanted, issued(true)), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, ""},
		"withdrawn, the guard unheard":       {boot(unwanted, issued(true), delivered), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, "handed"},
		"withdrawn, refused by the guard":    {boot(unwanted, issued(true), delivered, reported(v1alpha1.EnactmentRefused, 0, "", ""), because("WrongKey", "another key")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, ""},
		"withdrawn, the guard was heard":     {boot(unwanted, issued(true), delivered, reported(v1alpha1.EnactmentTakenBack, 8, planA, "")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "answered"},
		"withdrawn while it reboots":         {boot(unwanted, issued(true), reported(v1alpha1.EnactmentArmed, 8, planA, "")), enactment.Step{}, enactment.StageChanging, "reboots"},
		"corrected before it was taken":      {boot(wants(planB), issued(true)), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "withdrawn"},
		"corrected, the guard unheard":       {boot(wants(planB), issued(true), delivered), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, "handed"},
		"found impossible in its turn":       {boot(impossible("a flag")), enactment.Step{Verb: enactment.Uncordon}, enactment.StageChanging, ""},
		"given back, nothing there":          {[]change{wantsRemoval}, enactment.Step{}, enactment.StageDone, ""},
		"given back, nobody says anything":   {[]change{wantsRemoval, silent}, enactment.Step{}, enactment.StageWaiting, "take the label lowlatency.dev/pool off"},
		"given back":                         {[]change{wantsRemoval, reported(v1alpha1.EnactmentInForce, 8, planA, planA)}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageWaiting, ""},
		"given back, empty":                  {boot(wantsRemoval, empty, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.Instruct, Number: seconds(), Reboots: true}, enactment.StageChanging, ""},
		"given back, told":                   {boot(wantsRemoval, issuedRemoval(9), reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, ""},
		"given back, its plan was refused":   {took(wantsRemoval, reported(v1alpha1.EnactmentRefused, 8, planA, ""), because("CannotEnact", "x")), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, "without a reboot"},
		"given back, its plan taken back":    {took(wantsRemoval, reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "x")), enactment.Step{Verb: enactment.Instruct, Number: seconds()}, enactment.StageChanging, "without a reboot"},
		"given back, being taken back":       {took(wantsRemoval, reported(v1alpha1.EnactmentTakingBack, 8, planA, "")), enactment.Step{}, enactment.StageChanging, ""},
		"given back, the plan of before":     {took(wantsRemoval, reported(v1alpha1.EnactmentRefused, 8, planA, planB), because("CannotEnact", "x")), enactment.Step{Verb: enactment.Cordon}, enactment.StageChanging, "cordoned"},
		"given back, waits for a reboot":     {took(wantsRemoval, reported(v1alpha1.EnactmentRefused, 8, planA, ""), because("RebootForbidden", "x")), enactment.Step{Verb: enactment.Cordon}, enactment.StageChanging, "cordoned"},
		"given back, removed":                {boot(wantsRemoval, reported(v1alpha1.EnactmentRemoved, 9, "", "")), enactment.Step{Verb: enactment.Uncordon}, enactment.StageChanging, ""},
		"given back, failed":                 {[]change{wantsRemoval, reported(v1alpha1.EnactmentTakenBack, 9, "", planA), because("NotStarted", "x")}, enactment.Step{}, enactment.StageFailed, ""},
		"taken away before it was cordoned":  {took(locked("Karpenter takes it away")), enactment.Step{}, enactment.StageChanging, "Karpenter takes it away; it is left alone"},
		"taken away while it is emptied":     {boot(left("a/b"), locked("Karpenter takes it away")), enactment.Step{}, enactment.StageChanging, "left alone"},
		"taken away when it is empty":        {boot(empty, locked("Karpenter takes it away")), enactment.Step{}, enactment.StageChanging, "left alone"},
		"taken away before it was told":      {boot(issued(true), locked("Karpenter takes it away")), enactment.Step{Verb: enactment.Withdraw}, enactment.StageChanging, "withdrawn"},
		"taken away, the guard unheard":      {boot(issued(true), delivered, locked("Karpenter takes it away")), enactment.Step{Verb: enactment.HandOver}, enactment.StageChanging, "handed"},
		"taken away when it was changed":     {boot(applied, reported(v1alpha1.EnactmentInForce, 8, planA, planA), locked("Karpenter takes it away")), enactment.Step{}, enactment.StageChanging, "left alone"},
		"held, and nothing begun":            {[]change{held}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageChanging, "goes on"},
		"changed without a cordon":           {took(held, applied, reported(v1alpha1.EnactmentInForce, 8, planA, planA)), enactment.Step{Verb: enactment.Uncordon}, enactment.StageChanging, ""},
		"a turn that somebody has deleted":   {[]change{cordoned, reported(v1alpha1.EnactmentArmed, 8, planA, "")}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageChanging, "goes on"},
		"an instruction without a turn":      {[]change{issued(true)}, enactment.Step{Verb: enactment.TakeTurn}, enactment.StageChanging, ""},
	}
}

// TestOneNode is one node at every stage: what is done, how far it is said to be.
func TestOneNode(t *testing.T) {
	cases := untilEmpty()
	maps.Copy(cases, fromEmpty())
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(1, node("n1", tc.with...))
			var got enactment.Step
			if len(d.Steps) == 1 {
				got = d.Steps[0]
			}
			want := tc.step
			if want.Verb != "" {
				want.Node = "n1"
			}
			if diff := cmp.Diff(want, got); diff != "" || len(d.Steps) > 1 {
				t.Errorf("step (-want +got), of %d:\n%s", len(d.Steps), diff)
			}
			state := stageOf(t, d, "n1")
			if state.Stage != tc.stage || !strings.Contains(state.Message, tc.says) || (state.Stage == enactment.StageDone) != (state.Message == "") {
				t.Errorf("state = %+v, want %s, %q", state, tc.stage, tc.says)
			}
		})
	}
}

// TestWhoIsNext is about several nodes: one budget for all profiles, the control plane one by one, a failure that stops.
func TestWhoIsNext(t *testing.T) {
	failed := func(more ...change) []change {
		return append([]change{reported(v1alpha1.EnactmentTakenBack, 8, planA, ""), because("NotStarted", "x")}, more...)
	}
	cases := map[string]struct {
		limit int
		nodes []enactment.Node
		want  []string
		// says is a part of what is said of the node n2.
		says string
	}{
		"one at a time":                        {1, []enactment.Node{node("n1"), node("n2")}, []string{"TakeTurn n1"}, "n1 must be available first"},
		"two at a time":                        {2, []enactment.Node{node("n3"), node("n2"), node("n1")}, []string{"TakeTurn n1", "TakeTurn n2"}, "its turn begins"},
		"none is one":                          {0, []enactment.Node{node("n1"), node("n2")}, []string{"TakeTurn n1"}, ""},
		"another profile's node counts":        {1, []enactment.Node{node("n1", of("other"), inTurn), node("n2")}, nil, "n1 must be available first"},
		"another profile's may be busy":        {2, []enactment.Node{node("n1", of("other"), inTurn), node("n2")}, []string{"TakeTurn n2"}, ""},
		"another profile's failure is its own": {1, []enactment.Node{node("n1", failed(of("other"))...), node("n2")}, []string{"TakeTurn n2"}, ""},
		"a failure stops":                      {2, []enactment.Node{node("n1", failed()...), node("n2")}, nil, "failed on node n1"},
		"and gives nodes back all the same":    {2, []enactment.Node{node("n1", failed()...), node("n2", wantsRemoval, reported(v1alpha1.EnactmentInForce, 3, planA, planA))}, []string{"TakeTurn n2"}, ""},
		"who is given back goes first":         {1, []enactment.Node{node("n1"), node("n2", wantsRemoval, reported(v1alpha1.EnactmentInForce, 3, planA, planA))}, []string{"TakeTurn n2"}, ""},
		"a node that is not ready counts":      {1, []enactment.Node{node("n1", notReady), node("n2")}, nil, "n1 must be available first"},
		"a node that is not verified counts":   {1, []enactment.Node{node("n1", gated, reported(v1alpha1.EnactmentInForce, 3, planA, planA)), node("n2")}, nil, "n1 must be available first"},
		"one that nobody can read counts":      {1, []enactment.Node{node("n1", reported(v1alpha1.EnactmentUnreadable, 7, planB, planB)), node("n2")}, nil, "n1 must be available first"},
		"one of another profile, too":          {1, []enactment.Node{node("n1", of("other"), unwanted, notReady), node("n2")}, nil, "n1 must be available first"},
		"and one that is not verified":         {1, []enactment.Node{node("n1", of("other"), unwanted, gated, reported(v1alpha1.EnactmentInForce, 3, planA, planA)), node("n2")}, nil, "n1 must be available first"},
		"a node of nobody does not count":      {1, []enactment.Node{node("n1", of(""), unwanted, notReady), node("n2")}, []string{"TakeTurn n2"}, ""},
		"one that waits for its plan does not": {1, []enactment.Node{node("n1", gated), node("n2", gated)}, []string{"TakeTurn n1"}, "n1"},
		"control plane one by one":             {3, []enactment.Node{node("n1", controlPlane), node("n2", controlPlane), node("n3")}, []string{"TakeTurn n1", "TakeTurn n3"}, "one at a time"},
		"control plane elsewhere":              {3, []enactment.Node{node("n1", controlPlane, of(""), unwanted, foreignCordon), node("n2", controlPlane)}, nil, "n1 is not available"},
		"a node that is begun goes on":         {1, []enactment.Node{node("n1", inTurn, needsReboot), node("n2", inTurn, needsReboot, cordoned)}, []string{"Cordon n1", "Evict n2"}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := decide(tc.limit, tc.nodes...)
			if diff := cmp.Diff(append([]string{}, tc.want...), verbs(d)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			for _, n := range tc.nodes {
				if n.Name == "n2" && !strings.Contains(stageOf(t, d, "n2").Message, tc.says) {
					t.Errorf("of n2 is said %q, want %q", stageOf(t, d, "n2").Message, tc.says)
				}
			}
		})
	}
}

// TestPaused: a profile that is paused begins nothing, and finishes what is begun.
func TestPaused(t *testing.T) {
	nodes := []enactment.Node{
		node("n1", inTurn, cordoned, issued(true), reported(v1alpha1.EnactmentInForce, 8, planA, planA)), node("n2"),
	}
	d := enactment.Decide(nodes, enactment.Limits{Profile: "trading", MaximumUnavailable: 5}, now())
	if diff := cmp.Diff([]string{"Withdraw n1"}, verbs(d)); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if state := stageOf(t, d, "n2"); !strings.Contains(state.Message, "paused") {
		t.Errorf("of n2 is said %q", state.Message)
	}
}
