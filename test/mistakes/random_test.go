// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
)

// arena lends a world, and makes a new one when the last cannot be brought back.
type arena struct {
	t     *testing.T
	world *world
	// isChanged tells that what is in force is not what a world begins with.
	isChanged bool
}

// enter returns the world. The test t, which may be a part of the arena's, fails when there is none.
func (a *arena) enter(t *testing.T) *world {
	t.Helper()
	if a.world != nil {
		return a.world
	}
	w, err := newWorld(a.t)
	if err != nil {
		t.Fatal(err)
	}
	a.world = w
	return w
}

// leave brings the world back to what it was, or gives it up.
func (a *arena) leave() {
	w := a.world
	a.isChanged = false
	if w == nil {
		return
	}
	if err := w.restore(); err == nil && w.awaitGreen(*patience) == nil && w.collectRendered() == nil {
		w.observer.begin()
		return
	}
	a.giveUp()
}

func (a *arena) giveUp() {
	a.world.close(a.t)
	a.world = nil
}

// ran is what a history has come to.
type ran struct {
	complaints                 []string
	reboots, taints, corrected int
	took                       time.Duration
}

// run makes a history and its correction, and returns what is wrong with how the cluster took it.
func (w *world) run(h history) ran {
	began := time.Now()
	result := ran{}
	w.observer.begin()
	allowed := allowance{}
	for i := range h.steps {
		s := &h.steps[i]
		allowed.add(s)
		if err := s.do(w); err != nil {
			// The user is told so by the API server; it is no failure of the operator's.
			continue
		}
		if h.together && i < len(h.steps)-1 {
			continue
		}
		result.complaints = append(result.complaints, w.checkStep(&allowed, s.name, &result)...)
		if len(result.complaints) > 0 {
			break
		}
	}
	result.complaints = append(result.complaints, w.checkCorrection(&allowed, &result)...)
	result.took = time.Since(began)
	return result
}

// allowance is what the steps so far may cost.
type allowance struct {
	// step is how often each node may reboot for the steps since the last look; all for all of them, which is what the
	// correction may cost.
	step, all int
	// late is what steps that linger may cost in later steps, too.
	late int
	// onlyNodes limits step to some nodes; nil for none of them.
	onlyNodes []string
	upset     bool
	losesNICs bool
	tainting  bool
	// contested and let go are halves of a handover.
	contested, letGo bool
}

func (a *allowance) add(s *step) {
	reboots := a.rebootsOf(s)
	if len(s.nodes) > 0 && (a.step == 0 || a.onlyNodes != nil) && !a.upset {
		a.onlyNodes = append(a.onlyNodes, s.nodes...)
	} else if reboots > 0 {
		a.onlyNodes = nil
	}
	a.step += reboots
	a.all += reboots
	if s.lingers {
		a.late += reboots
	}
	a.upset = a.upset || s.upsets
	a.losesNICs = a.losesNICs || s.losesNICs
	a.tainting = a.tainting || s.tainting
}

// rebootsOf is how often nodes may reboot for a step after those before it.
func (a *allowance) rebootsOf(s *step) int {
	reboots := s.reboots
	if s.competes && a.letGo || s.yields && a.contested {
		// The nodes get the plan of the other profile.
		reboots = max(reboots, 1)
	}
	a.contested, a.letGo = a.contested || s.competes, a.letGo || s.yields
	if a.upset {
		// Once something in force is gone, what was a mistake before may be a change now.
		reboots = max(reboots, 2)
	}
	return reboots
}

func (a *allowance) of(node string) int {
	if a.onlyNodes != nil && !slices.Contains(a.onlyNodes, node) {
		return 0
	}
	return a.step
}

// checkStep waits until the cluster is at rest, and judges what has happened since the last time.
func (w *world) checkStep(allowed *allowance, name string, result *ran) []string {
	if err := w.awaitRest(restTime, *patience); err != nil {
		return []string{"restless: " + err.Error()}
	}
	s, err := w.look()
	if err != nil {
		return []string{err.Error()}
	}
	sum := w.observer.account()
	result.add(sum)
	complaints := sum.complaints(allowed, name)
	for _, lie := range slices.Concat(w.liesNow(s), sum.lies) {
		complaints = append(complaints, "false green: "+lie)
	}
	allowed.step, allowed.onlyNodes = allowed.late, nil
	return complaints
}

func (r *ran) add(sum *account) {
	for _, n := range sum.reboots {
		r.reboots += n
	}
	r.taints += len(sum.taints)
}

// checkCorrection puts everything right, and judges what that has cost.
func (w *world) checkCorrection(allowed *allowance, result *ran) []string {
	if err := w.restore(); err != nil {
		return []string{"stuck: " + err.Error()}
	}
	if err := w.awaitGreen(*patience); err != nil {
		return []string{err.Error()}
	}
	if err := w.collectRendered(); err != nil {
		return []string{err.Error()}
	}
	sum := w.observer.account()
	result.add(sum)
	for _, n := range sum.reboots {
		result.corrected += n
	}
	limits := allowance{step: 2*allowed.all + 2, losesNICs: true, tainting: allowed.tainting}
	if allowed.all == 0 {
		limits = allowance{}
	}
	complaints := sum.complaints(&limits, "the correction")
	for _, lie := range sum.lies {
		complaints = append(complaints, "false green: "+lie)
	}
	return complaints
}

// complaints are what the account has and must not have.
func (a *account) complaints(allowed *allowance, during string) []string {
	var found []string
	for _, node := range slices.Sorted(maps.Keys(a.reboots)) {
		if n := a.reboots[node]; n > allowed.of(node) {
			found = append(found, fmt.Sprintf("reboots: %s rebooted %d times during %q, %d allowed", node, n, during, allowed.of(node)))
		}
	}
	for _, t := range a.taints {
		if t.doubt != "" && !allowed.tainting {
			found = append(found, fmt.Sprintf("taint: %s during %q: %s (%s)", t.node, during, t.doubt, t.why))
		}
	}
	if allowed.losesNICs || allowed.step > 0 {
		return found
	}
	for _, nic := range slices.Sorted(maps.Keys(a.lost)) {
		found = append(found, fmt.Sprintf("lost: %s during %q", nic, during))
	}
	return found
}

// kindOf is the first word of a complaint.
func kindOf(complaint string) string {
	kind, _, _ := strings.Cut(complaint, ":")
	return kind
}

// shrink takes steps out of a history that fails, as long as it fails in the same way.
func (a *arena) shrink(h history, complaint string) history {
	for i := 0; i < len(h.steps) && len(h.steps) > 1; {
		shorter := h.without(i)
		found := a.enter(a.t).run(shorter).complaints
		a.leave()
		if slices.ContainsFunc(found, func(c string) bool { return kindOf(c) == kindOf(complaint) }) {
			h = shorter
			continue
		}
		i++
	}
	return h
}

// seeds are those that are to be made; few when neither one nor a number is asked for.
func seeds(few ...uint64) []uint64 {
	if *seedFlag != 0 {
		return []uint64{*seedFlag}
	}
	if *countFlag == 0 {
		return few
	}
	list := make([]uint64, 0, *countFlag)
	for i := range *countFlag {
		list = append(list, *firstFlag+uint64(i)) //nolint:gosec // Small and positive.
	}
	return list
}

func TestRandomMistakes(t *testing.T) {
	a := &arena{t: t}
	rows := table.NewWriter()
	rows.SetStyle(table.StyleLight)
	rows.SetTitle("Random mistakes")
	rows.AppendHeader(table.Row{"seed", "history", "reboots", "of them for the correction", "taints", "seconds", "verdict"})
	for _, seed := range seeds(6, 29) {
		h := draw(seed)
		result := a.enter(a.t).run(h)
		t.Logf("%s: %d complaints", h, len(result.complaints))
		verdict := "as it should be"
		if len(result.complaints) > 0 {
			verdict = shorten(result.complaints[0])
			a.report(h, &result)
		}
		rows.AppendRow(table.Row{seed, h.String(), result.reboots, result.corrected, result.taints, int(result.took.Seconds()), verdict})
	}
	printTable(t, rows)
}

// report prints a history that has failed, and the shortest that fails in the same way.
func (a *arena) report(h history, result *ran) {
	a.t.Helper()
	a.leave()
	name := "random"
	complain(a.t, name, result.complaints)
	if shortest := a.shrink(h, result.complaints[0]); len(shortest.steps) < len(h.steps) {
		a.t.Logf("shortest: %s", shortest)
	}
}
