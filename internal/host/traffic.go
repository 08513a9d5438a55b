// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

func readUptime(r *reader, f *Facts) { f.UptimeSeconds = r.uptime() }

func (r *reader) uptime() Fact[float64] {
	return read(r, source[float64]{"/proc/uptime", parseUptime})
}

// parseUptime reads the first of the two numbers of proc_uptime(5): seconds since boot.
func parseUptime(text string) (float64, error) {
	first, _, _ := strings.Cut(text, " ")
	seconds, err := strconv.ParseFloat(first, 64)
	if err != nil || seconds < 0 || math.IsInf(seconds, 0) || math.IsNaN(seconds) {
		return 0, fmt.Errorf("not a time since boot: %q", abbreviate(text))
	}
	return seconds, nil
}

// readTraffic prefers the files of process 1, which is in the network namespace of the host wherever the reader is.
func readTraffic(r *reader, f *Facts) {
	f.Traffic = Traffic{
		BacklogDrops: read(r,
			source[uint64]{"/proc/1/net/softnet_stat", parseBacklogDrops}, source[uint64]{"/proc/net/softnet_stat", parseBacklogDrops}),
		DatagramDrops: read(r,
			source[uint64]{"/proc/1/net/snmp", parseDatagramDrops}, source[uint64]{"/proc/net/snmp", parseDatagramDrops}),
	}
}

// parseBacklogDrops adds up the second column of softnet_stat, one line for each CPU in hexadecimal numbers
// (net/core/net-procfs.c, softnet_seq_show).
func parseBacklogDrops(text string) (uint64, error) {
	var sum uint64
	if text == "" {
		return 0, errors.New("no lines")
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			return 0, fmt.Errorf("not a line of softnet_stat: %q", abbreviate(line))
		}
		dropped, err := strconv.ParseUint(fields[1], 16, 32)
		if err != nil {
			return 0, fmt.Errorf("not a count: %q", abbreviate(fields[1]))
		}
		sum += dropped
	}
	return sum, nil
}

// parseDatagramDrops finds RcvbufErrors in the two lines "Udp: NAMES" and "Udp: NUMBERS" of snmp
// (net/ipv4/proc.c, snmp_seq_show).
func parseDatagramDrops(text string) (uint64, error) {
	const protocol, counter = "Udp", "RcvbufErrors"
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != protocol+":" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		at := slices.Index(names, counter)
		if at < 0 || at >= len(fields) {
			break
		}
		return parseCount(fields[at])
	}
	return 0, errors.New("no counter " + counter + " of " + protocol)
}

const uncoreRoot = cpuRoot + "/intel_uncore_frequency"

// readUncore reads the domains that newer processors describe in memory (uncore00, …: drivers/platform/x86/intel/
// uncore-frequency/uncore-frequency-tpmi.c). The older folders package_00_die_00 are registers, which the kernel
// reads by interrupting a CPU of the package: on a running host they are left alone.
func readUncore(r *reader, f *Facts) {
	isDomain := func(e entry) bool {
		return e.kind == kindDirectory && (strings.HasPrefix(e.name, "uncore") || strings.HasPrefix(e.name, "package_"))
	}
	names, err := r.list(uncoreRoot, isDomain)
	if err != nil {
		f.UncoreDomains = Absent[[]UncoreDomain](uncoreRoot, reasonOf(err))
		return
	}
	domains := make([]UncoreDomain, 0, len(names))
	for _, name := range names {
		folder := uncoreRoot + "/" + name + "/"
		domain := UncoreDomain{Name: name, Minimum: r.register(folder + "min_freq_khz"), Maximum: r.register(folder + "max_freq_khz")}
		domains = append(domains, domain)
	}
	f.UncoreDomains = Known(domains, uncoreRoot)
}

// register reads a number that may be a register of another CPU.
func (r *reader) register(file string) Fact[int64] {
	if r.live && strings.HasPrefix(file, uncoreRoot+"/package_") {
		const reason = "not read: the kernel would interrupt a CPU of the package for it"
		r.taken.skip(file, reason)
		return Absent[int64](file, reason)
	}
	return r.numberFact(file)
}
