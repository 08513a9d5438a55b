// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// drawFault makes the fault of a seed. Every kind has its turn.
func drawFault(seed uint64, r *rand.Rand) fault {
	kinds := faultKinds()
	f := fault{kind: kinds[int(seed%uint64(len(kinds)))], seed: seed} //nolint:gosec // A small remainder.
	f.share = 0.1 + 0.5*r.Float64()
	f.delay = time.Duration(200+r.IntN(1300)) * time.Millisecond
	const writesOfAChange = 24
	f.write = 1 + r.IntN(writesOfAChange)
	return f
}

// drawUnderFault is what the user does while the API server fails: a change that stays, or a mistake that is corrected.
func drawUnderFault(seed uint64, r *rand.Rand) (s step, stays bool) {
	kinds := uint64(len(faultKinds()))
	switch (seed / kinds) % 5 {
	case 0:
		return toggleHugepages(), true
	case 1:
		return toggleNICHugepages(), true
	case 2:
		return toggleArgument(), true
	case 3:
		return pick(r, overlappingPool, sameResource, typoInSelector, impossibleSpec, secondProfile)(r), false
	default:
		return pick(r, joinSpare, replaceNode, deleteGenerated, recreatePool)(r), false
	}
}

// toggleHugepages changes between two numbers of hugepages.
func toggleHugepages() step {
	s := specStep("2 hugepages become 3, or 3 become 2", func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Memory.Hugepages[0].Count = 5 - s.Memory.Hugepages[0].Count
	})
	s.reboots = 1
	return s
}

func toggleArgument() step {
	s := specStep("nowatchdog comes or goes", func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		if len(s.Kernel.AdditionalArguments) > 1 {
			s.Kernel.AdditionalArguments = s.Kernel.AdditionalArguments[:1]
			return
		}
		s.Kernel.AdditionalArguments = append(s.Kernel.AdditionalArguments, "nowatchdog")
	})
	s.reboots = 1
	return s
}

func toggleNICHugepages() step {
	return step{name: "8 hugepages per NIC become 12, or 12 become 8", reboots: 1, do: func(w *world) error {
		return w.editPool(func(s *v1alpha1.BypassNICPoolSpec) { s.Hugepages[0].CountPerNIC = 20 - s.Hugepages[0].CountPerNIC })
	}}
}

// faulty is one case: what is done, and what fails meanwhile.
type faulty struct {
	seed  uint64
	fault fault
	step  step
	stays bool
	// lasts is for how long the fault lasts.
	lasts time.Duration
}

func drawFaulty(seed uint64) faulty {
	r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // Not for secrets.
	c := faulty{seed: seed, fault: drawFault(seed, r), lasts: time.Duration(1000+r.IntN(2500)) * time.Millisecond}
	c.step, c.stays = drawUnderFault(seed, r)
	return c
}

func (c *faulty) String() string {
	return fmt.Sprintf("seed %d: %s, with %s", c.seed, c.step.name, c.fault)
}

// runFaulty makes one case. It returns what is wrong, and how many requests the fault has hit.
func (w *world) runFaulty(c *faulty) (complaints []string, hits int) {
	w.observer.begin()
	w.link.begin(c.fault)
	if err := c.step.do(w); err != nil {
		w.link.end()
		return []string{"step: " + err.Error()}, 0
	}
	hits, err := w.endure(c.lasts)
	if err != nil {
		return []string{"operator: " + err.Error()}, hits
	}
	allowed := allowance{}
	allowed.add(&c.step)
	// What the manager wrote last may be what it was killed for.
	if c.stays {
		if err := w.awaitGreen(*patience); err != nil {
			return []string{err.Error()}, hits
		}
		sum := w.observer.account()
		complaints = sum.complaints(&allowed, c.step.name)
		for _, lie := range sum.lies {
			complaints = append(complaints, "false green: "+lie)
		}
		return slices.Concat(complaints, c.reboots(sum, w)), hits
	}
	var ignored ran
	complaints = w.checkStep(&allowed, c.step.name, &ignored)
	return append(complaints, w.checkCorrection(&allowed, &ignored)...), hits
}

// reboots expects that a change that stays has cost each node exactly one reboot.
func (c *faulty) reboots(sum *account, w *world) []string {
	var complaints []string
	for _, node := range w.Fleet.Names() {
		if node != "spare" && sum.reboots[node] != c.step.reboots {
			complaints = append(complaints, fmt.Sprintf("reboots: %s rebooted %d times during %q, not %d", node, sum.reboots[node], c.step.name, c.step.reboots))
		}
	}
	return complaints
}

// endure waits while the fault lasts. A manager that is killed is started again.
func (w *world) endure(lasts time.Duration) (hits int, err error) {
	killed := w.link.died
	select {
	case <-killed:
	case <-time.After(lasts):
	}
	hits = w.link.end()
	if !w.link.isDead() {
		return hits, nil
	}
	w.stopOperator()
	return hits, w.startOperator()
}

func TestServerFaults(t *testing.T) {
	a := &arena{t: t}
	cases, hits, failed := map[faultKind]int{}, map[faultKind]int{}, map[faultKind]int{}
	for _, seed := range seeds(1, 3, 5, 7) {
		c := drawFaulty(seed)
		if !c.stays && a.isChanged {
			// The correction of a mistake must not be what brings back what former cases have changed.
			a.leave()
		}
		w := a.enter(t)
		a.isChanged = c.stays
		complaints, hit := w.runFaulty(&c)
		cases[c.fault.kind]++
		hits[c.fault.kind] += hit
		t.Logf("%s: %d requests hit, %d complaints", c.String(), hit, len(complaints))
		if len(complaints) == 0 {
			continue
		}
		failed[c.fault.kind]++
		complain(t, "faults", complaints)
		a.leave()
	}
	rows := table.NewWriter()
	rows.SetStyle(table.StyleLight)
	rows.SetTitle("Faults of the API server")
	rows.AppendHeader(table.Row{"fault", "cases", "requests hit", "failed"})
	total := table.Row{"all", 0, 0, 0}
	for _, kind := range kindsOf(cases) {
		rows.AppendRow(table.Row{kind, cases[kind], hits[kind], failed[kind]})
		total[1], total[2], total[3] = total[1].(int)+cases[kind], total[2].(int)+hits[kind], total[3].(int)+failed[kind]
	}
	rows.AppendFooter(total)
	printTable(t, rows)
}
