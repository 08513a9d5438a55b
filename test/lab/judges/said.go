// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package judges runs the judges of measurements over the network in machines of the lab: where a kernel of this machine lacks what they need, and between two
// machines.
package judges

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// busy is the share of time from which on emulators that waited for a CPU say that this machine was busy: as much as the bound of a median.
const busy = 0.02

// absentServers are the ports of servers at which nothing listens, in what ss prints.
func absentServers(listening string) []string {
	var absent []string
	for _, port := range []string{"tcp 2048", "tcp 19765", "tcp 11111", "udp 11111"} {
		transport, number, _ := strings.Cut(port, " ")
		if !regexp.MustCompile(`(?m)^` + transport + `\s+\S+\s+\d+\s+\d+\s+\S+:` + number + `\s`).MatchString(listening) {
			absent = append(absent, port)
		}
	}
	return absent
}

// busyness says for how long the emulators waited for a CPU of this machine, and what that makes of intervals that are too wide.
func busyness(client, server, took time.Duration) string {
	text := fmt.Sprintf("In %.0f s, the emulator of the client was ready and without a CPU of this machine for %.1f s, that of the server for %.1f s",
		took.Seconds(), client.Seconds(), server.Seconds())
	if (client + server).Seconds() < busy*took.Seconds() {
		return text + ".\n"
	}
	return text + ": where an interval is too wide, the machine was busy.\n"
}

// incomplete tells what a table lacks: a row of each program, transport and size, one of each delay, and the reason of each that does not hold.
func incomplete(table string) []string {
	var wrong []string
	for _, program := range []string{"median of %d bytes over %s, beside sockperf", "mean of %d bytes over %s, beside qperf"} {
		for _, transport := range []string{"UDP", "TCP"} {
			for _, bytes := range []int{64, 1024} {
				if what := fmt.Sprintf(program, bytes, transport); !strings.Contains(table, what) {
					wrong = append(wrong, "nothing is said of the "+what)
				}
			}
		}
	}
	if got := strings.Count(table, "delay that netem added"); got != 2 {
		wrong = append(wrong, fmt.Sprintf("%d delays are judged, not 2", got))
	}
	for line := range strings.Lines(table) {
		if regexp.MustCompile(`\*\*no\*\*\s*\|`).MatchString(line) {
			wrong = append(wrong, "this row does not say why: "+line)
		}
	}
	return wrong
}

// loaded are the loader and the libraries in what ldd prints: a line with an arrow for each library, and one with the path of the loader alone.
func loaded(text string) (loader string, libraries []string) {
	for _, found := range regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`).FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(filepath.Base(found[1]), "ld-linux") {
			loader = found[1]
			continue
		}
		libraries = append(libraries, found[1])
	}
	return loader, libraries
}

// starter is a script that runs a program of a folder with its loader and its libraries there.
func starter(folder, loader, name string) string {
	return fmt.Sprintf("#!/bin/sh\nexec %[1]s/%[2]s --library-path %[1]s %[1]s/%[3]s \"$@\"\n", folder, filepath.Base(loader), name)
}
