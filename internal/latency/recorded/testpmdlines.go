// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package recorded

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// The lines of testpmd that are read (DPDK, app/test-pmd/testpmd.c, fwd_stats_display and start_packet_forwarding; config.c, nic_stats_display,
// nic_stats_clear and pkt_fwd_config_display). A title begins a block, and a border ends it. Option -v of EAL prints the version.
const (
	forwardTitle     = `Forward statistics for port`
	accumulatedTitle = `Accumulated forward statistics for all ports`
	nicTitle         = `NIC statistics for port`
)

// lines are the patterns of the lines that are read.
type lines struct{ title, field, border, version, cleared, start *regexp.Regexp }

func patterns() *lines {
	return &lines{
		title: regexp.MustCompile(`^ *[-+#]+ ?(` + forwardTitle + `|` + accumulatedTitle + `|` + nicTitle + `) *([0-9]*) *[-+#]+ *$`),
		// A number that something else was printed behind is none.
		field:   regexp.MustCompile(`([A-Z][A-Za-z]*-[a-z]+): *([0-9]+)(?:\s|$)`),
		border:  regexp.MustCompile(`^ *[-+#]{20,} *$`),
		version: regexp.MustCompile(`RTE Version: '([^']{1,60})'`),
		cleared: regexp.MustCompile(`^ *` + nicTitle + ` ([0-9]+) cleared`),
		start:   regexp.MustCompile(`^ *([a-z0-9_-]{1,20}) packet forwarding(?: with retry)? - ports=[0-9]`),
	}
}

// withoutPrompts takes out what a person sees beside the output: what moves the cursor, and the prompt with the command behind it. testpmd prints these at
// once, and its output from a buffer, so that in a file they may stand within a line or a number of the output.
func withoutPrompts(text []byte) string {
	text = regexp.MustCompile(`\x1b\[[0-9;?]*[A-Za-z]`).ReplaceAll(text, nil)
	const prompt = "testpmd> "
	command := regexp.MustCompile(prompt + `(?:(?:[a-z][^\r\n:]*)?\r*\n)?`)
	return string(command.ReplaceAllFunc(text, func(found []byte) []byte {
		// At the end of its input, testpmd prints the rest of its buffer behind a prompt without a command.
		if bytes.Contains(found, []byte("-----")) || bytes.Contains(found, []byte("+++++")) || bytes.Contains(found, []byte("#####")) {
			return bytes.TrimPrefix(found, []byte(prompt))
		}
		return nil
	}))
}

// printedBy reads the text of testpmd.
func printedBy(text string) (*printed, error) {
	p, pattern := &printed{nics: map[string]shownNIC{}, ports: map[string]*block{}}, patterns()
	for line := range strings.Lines(text) {
		if err := p.read(strings.TrimRight(line, "\r\n"), pattern); err != nil {
			return nil, err
		}
	}
	if p.open != nil {
		return nil, p.open.unended()
	}
	if len(p.ports) > 0 {
		return nil, p.cutOff()
	}
	return p, nil
}

// read reads the next line.
func (p *printed) read(line string, pattern *lines) error {
	switch found := pattern.title.FindStringSubmatch(line); {
	case found != nil && p.open != nil:
		return p.open.unended()
	case found != nil:
		p.open = &block{title: found[1], port: found[2], fields: map[string]uint64{}}
		return nil
	case p.open == nil:
		p.readOutside(line, pattern)
		return nil
	case pattern.border.MatchString(line):
		ended := p.open
		p.open = nil
		return p.add(ended)
	default:
		return p.open.read(line, pattern)
	}
}

// readOutside reads a line that stands in no block.
func (p *printed) readOutside(line string, pattern *lines) {
	if found := pattern.version.FindStringSubmatch(line); found != nil {
		p.version = printable(found[1])
	}
	if found := pattern.start.FindStringSubmatch(line); found != nil {
		p.mode = found[1]
		p.runs++
	}
	if found := pattern.cleared.FindStringSubmatch(line); found != nil {
		p.nics[found[1]] = append(p.nics[found[1]], nicMoment{afterRuns: p.runs, afterDisplays: len(p.displays)})
	}
}

// read reads the numbers of a line.
func (b *block) read(line string, pattern *lines) error {
	for _, found := range pattern.field.FindAllStringSubmatch(line, -1) {
		value, err := strconv.ParseUint(found[2], 10, 53)
		if err != nil {
			return fmt.Errorf("%s of port %s: %.40q is no number of messages", found[1], b.port, found[2])
		}
		if _, twice := b.fields[found[1]]; twice {
			return fmt.Errorf("%s %s has %s twice: something else was printed into it", b.title, b.port, found[1])
		}
		b.fields[found[1]] = value
	}
	return nil
}

// unended is the error of a block without its border. Its last number may be a part of one.
func (b *block) unended() error {
	return fmt.Errorf("%s %s has no end: the record is cut off", b.title, b.port)
}

// visible is a character that is shown, and a mark for any other.
func visible(c rune) rune {
	if unicode.IsPrint(c) {
		return c
	}
	return '?'
}
