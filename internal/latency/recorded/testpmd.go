// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// readTestpmd reads the text that testpmd printed: `show fwd stats all`, or what `stop` prints; otherwise `show port stats all`, once after these were
// cleared, or before and after.
func (r *Run) readTestpmd(text []byte, isForwarder bool) error {
	printed, err := printedBy(withoutPrompts(text))
	if err != nil {
		return err
	}
	r.Version = printed.version
	sum, err := printed.counts(isForwarder)
	if err != nil {
		return err
	}
	if !isForwarder {
		r.Rate.Load, err = streamOf(sum["TX-packets"], sum["RX-packets"])
		return err
	}
	// What came to it was received, or dropped at the NIC; what it dropped afterwards is lost, too.
	arrived := sum["RX-packets"] + sum["RX-dropped"] + sum["RX-missed"] + sum["RX-nombuf"] + sum["RX-nombufs"]
	if sum["TX-packets"] > arrived {
		return fmt.Errorf("%d messages left it, and %d came: a forwarder sends none of its own, and has to be stopped before its statistics are shown", sum["TX-packets"], arrived)
	}
	r.Rate.Load = latency.Stream{Sent: arrived, Lost: arrived - sum["TX-packets"]}
	return nil
}

// counts are what all ports counted together in the last run of the record.
func (p *printed) counts(isForwarder bool) (map[string]uint64, error) {
	if len(p.displays) == 0 {
		if err := p.refuseMode(p.mode, isForwarder); err != nil {
			return nil, err
		}
		return p.nicCounts(wholeRecord)
	}
	last := p.judged(isForwarder)
	mode, run := last.mode, last.run
	isOpen := p.runs > p.displays[len(p.displays)-1].run
	if isOpen {
		mode, run = p.mode, p.runs
	}
	if err := p.refuseMode(mode, isForwarder); err != nil {
		return nil, err
	}
	switch {
	case p.hasNICsAround(run, last.number):
		return p.nicCounts(run)
	case isOpen:
		return nil, errors.New("the record is cut off: a run was started after the last statistics, and has none")
	}
	return last.sum, nil
}

// judged is the last printing of forward statistics. Of a program that sends, a run that only received what was still on its way is passed over.
func (p *printed) judged(isForwarder bool) *display {
	last := len(p.displays) - 1
	for at := last; at >= 0 && !isForwarder; at-- {
		if d := &p.displays[at]; d.mode != "rxonly" || d.sum["TX-packets"] > 0 {
			return d
		}
	}
	return &p.displays[last]
}

// refuseMode says why a forwarding mode of testpmd counts only one side of what is judged; the mode is "" where the record does not have it.
func (p *printed) refuseMode(mode string, isForwarder bool) error {
	switch {
	case !isForwarder && mode == "txonly":
		return errors.New("in the mode txonly testpmd never reads what comes back: send with flowgen, or with `start tx_first` in the mode rxonly")
	case isForwarder && (mode == "txonly" || mode == "rxonly" || mode == "flowgen"):
		return fmt.Errorf("in the mode %s testpmd passes nothing on: a forwarder runs io, mac, macswap or another mode that does", mode)
	}
	return nil
}

// wholeRecord stands for a run whose start is not in the record.
const wholeRecord = -1

// hasNICsAround reports whether NIC statistics were shown before a run began, and after so many printings of forward statistics: their difference has what came
// in after the run, too.
func (p *printed) hasNICsAround(run, displays int) bool {
	if run == 0 || len(p.nics) == 0 {
		return false
	}
	for _, shown := range p.nics {
		at := shown.last()
		if at < 0 || shown[at].afterDisplays < displays || shown[at].afterRuns < run {
			return false
		}
		if _, isKnown := shown.base(at, run); !isKnown {
			return false
		}
	}
	return true
}

// nicCounts are the sums of what the NICs of all ports counted since the run of a number began, or over the whole record.
func (p *printed) nicCounts(run int) (map[string]uint64, error) {
	if len(p.nics) == 0 {
		return nil, errors.New("the record has neither forward statistics nor NIC statistics of a port: it is what testpmd prints at `show fwd stats all` or `show port stats all`")
	}
	sum, times := map[string]uint64{}, -1
	for _, port := range slices.Sorted(maps.Keys(p.nics)) {
		shown := p.nics[port]
		if n := shown.times(); times >= 0 && n != times {
			return nil, errors.New("NIC statistics were not shown as often of each port: the record is cut off, or lacks a port")
		}
		times = shown.times()
		at := shown.last()
		if at < 0 {
			return nil, fmt.Errorf("NIC statistics of port %s were cleared, and not shown after that", port)
		}
		base, _ := shown.base(at, run)
		if err := addSince(sum, port, shown[at].fields, base); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// shownNIC is what the record has of the counters of a NIC, in its order.
type shownNIC []nicMoment

// nicMoment is a printing of the counters of a NIC, or the moment at which they were cleared: fields is nil then.
type nicMoment struct {
	fields map[string]uint64
	// afterRuns is how many runs had been started, and afterDisplays how many printings of forward statistics had ended.
	afterRuns, afterDisplays int
}

// last is the place of the last printing; -1 for none.
func (s shownNIC) last() int {
	for i, moment := range slices.Backward(s) {
		if moment.fields != nil {
			return i
		}
	}
	return -1
}

// times is how often the counters were printed.
func (s shownNIC) times() int {
	n := 0
	for i := range s {
		if s[i].fields != nil {
			n++
		}
	}
	return n
}

// base is what the counters had before a run, as of a later place, and whether that is known: nil and true where they had been cleared and not shown since. Of
// a whole record it is the first printing since they were cleared, nil where there is no other.
func (s shownNIC) base(at, run int) (fields map[string]uint64, isKnown bool) {
	isKnown = run == wholeRecord
	for i := range s[:at] {
		switch m := &s[i]; {
		case m.fields == nil:
			fields, isKnown = nil, true
		case run == wholeRecord && fields == nil, run != wholeRecord && m.afterRuns < run:
			fields, isKnown = m.fields, true
		}
	}
	return fields, isKnown
}

// addSince adds the counters of a port, less what they had before.
func addSince(sum map[string]uint64, port string, fields, base map[string]uint64) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if fields[name] < base[name] {
			return fmt.Errorf("%s of port %s went from %d to %d: it was cleared between the two", name, port, base[name], fields[name])
		}
		sum[name] += fields[name] - base[name]
	}
	return nil
}

// display is one printing of forward statistics.
type display struct {
	// mode is the forwarding mode of its run, "" where the record does not have the start; run is how many runs had been started, and number which printing it is.
	mode        string
	run, number int
	sum         map[string]uint64
}

// printed is what is read of the text of testpmd.
type printed struct {
	version  string
	displays []display
	nics     map[string]shownNIC
	// mode and runs are of the last start.
	mode string
	runs int
	// ports are those of a printing of forward statistics that has not come to its end.
	ports map[string]*block
	// open is the block that the next line belongs to; nil between blocks.
	open *block
}

// add takes a block that is whole.
func (p *printed) add(b *block) error {
	if err := b.check(); err != nil {
		return err
	}
	switch b.title {
	case nicTitle:
		p.nics[b.port] = append(p.nics[b.port], nicMoment{fields: b.fields, afterRuns: p.runs, afterDisplays: len(p.displays)})
	case forwardTitle:
		if p.ports[b.port] != nil {
			return p.cutOff()
		}
		p.ports[b.port] = b
	default:
		sum := map[string]uint64{}
		for _, one := range p.ports {
			for name, value := range one.fields {
				sum[name] += value
			}
		}
		p.displays = append(p.displays, display{mode: p.mode, run: p.runs, number: len(p.displays) + 1, sum: sum})
		p.ports = map[string]*block{}
		return agrees(sum, b)
	}
	return nil
}

// cutOff is the error of a printing of forward statistics without its end.
func (p *printed) cutOff() error {
	return errors.New("the record is cut off: it has no " + accumulatedTitle)
}

// agrees is an error when the block of all ports, which testpmd prints after them, does not have the sums of the ports: then some of them are missing.
func agrees(sum map[string]uint64, accumulated *block) error {
	for _, field := range []string{"RX-packets", "RX-dropped", "TX-packets", "TX-dropped"} {
		if accumulated.fields[field] != sum[field] {
			return fmt.Errorf("%s has %d of %s, and its ports have %d: the record lacks a port", accumulatedTitle, accumulated.fields[field], field, sum[field])
		}
	}
	return nil
}

// block is what testpmd prints of a port, or of all.
type block struct {
	title, port string
	fields      map[string]uint64
}

// check wants the numbers of a block to be there, and to add up.
func (b *block) check() error {
	wanted := []string{"RX-packets", "RX-dropped", "RX-total", "TX-packets", "TX-dropped", "TX-total"}
	if b.title == nicTitle {
		wanted = []string{"RX-packets", "RX-missed", "TX-packets"}
	}
	for _, name := range wanted {
		if _, found := b.fields[name]; !found {
			return fmt.Errorf("%s %s has no %s: the record is cut off, or something else was printed into it", b.title, b.port, name)
		}
	}
	for _, way := range []string{"RX", "TX"} {
		whole, parts := b.fields[way+"-total"], b.fields[way+"-packets"]+b.fields[way+"-dropped"]
		if b.title != nicTitle && whole != parts {
			return fmt.Errorf("%s %s has %d of %s-total, and %s-packets and %s-dropped are %d together", b.title, b.port, whole, way, way, way, parts)
		}
	}
	return nil
}

// printable is a text of another program without what a terminal would obey.
func printable(text string) string {
	const most = 60
	cleaned := strings.Map(visible, text)
	return strings.TrimSpace(cleaned[:min(len(cleaned), most)])
}
