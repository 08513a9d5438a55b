// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// row is one figure for each size of a fleet.
type row struct {
	name, aim string
	value     func(*result) string
}

func rows() []row {
	return []row{
		{"a changed profile: all objects that move nodes written", "10 s", func(r *result) string { return seconds(r.Change.Pools) }},
		{"a changed profile: all nodes have the new plan", "120 s", func(r *result) string { return seconds(r.Change.Adopted) }},
		{"a changed profile: writes for each node", "< 5", func(r *result) string { return fmt.Sprintf("%.2f", r.Change.PerNode) }},
		{"a changed profile: events", "0 per node", func(r *result) string { return strconv.Itoa(r.Change.Events) }},
		{"a changed profile: all nodes proven, the profile Ready", "", func(r *result) string { return seconds(r.Change.Ready) }},
		{"a changed profile: processor time of the manager", "", func(r *result) string { return seconds(r.Change.Cost.Processor) }},
		{"a changed profile: that of kube-apiserver / etcd / the simulation / other programs", "", func(r *result) string {
			return besides(r.Change.Processors)
		}},
		{"the first profile: all objects that move nodes written", "", func(r *result) string { return seconds(r.First.Pools) }},
		{"the first profile: all nodes have plan and pool", "", func(r *result) string { return seconds(r.First.Adopted) }},
		{"the first profile: writes for each node", "", func(r *result) string { return fmt.Sprintf("%.2f", r.First.PerNode) }},
		{"the first profile: events", "0 per node", func(r *result) string { return strconv.Itoa(r.First.Events) }},
		{"the first profile: all nodes proven, the profile Ready", "", func(r *result) string { return seconds(r.First.Ready) }},
		{"the first profile: processor time of the manager", "", func(r *result) string { return seconds(r.First.Cost.Processor) }},
		{"the first profile: that of kube-apiserver / etcd / the simulation / other programs", "", func(r *result) string {
			return besides(r.First.Processors)
		}},
		{"memory at most (resident)", "238 MiB", func(r *result) string { return mebibytes(r.peak()) }},
		{"nothing changes: writes in 30 s", "0", func(r *result) string { return strconv.Itoa(r.Idle.Writes) }},
		{"nothing changes: processor", "", func(r *result) string {
			return fmt.Sprintf("%.1f %%", 100*r.Idle.Cost.Processor.Seconds()/max(r.Idle.Seconds, 1))
		}},
		{"one node changes: writes", "", func(r *result) string { return each(float64(r.Single.Writes), r.Single.Changes) }},
		{"one node changes: passes over the fleet", "< 1", func(r *result) string {
			return each(float64(r.Single.Cost.Passes["lowlatencynodeprofile"]), r.Single.Changes)
		}},
		{"one node changes: processor time", "", func(r *result) string {
			return fmt.Sprintf("%.0f ms", 1000*r.Single.Cost.Processor.Seconds()/float64(max(r.Single.Changes, 1)))
		}},
		{"the manager starts again: true status", "30 s", func(r *result) string { return seconds(r.Restart.True) }},
		{"the manager starts again: writes, of which 2 tell what has changed", "2", func(r *result) string { return strconv.Itoa(r.Restart.Writes) }},
	}
}

// peak is the most memory that the manager has had in any phase.
func (r *result) peak() int64 {
	return max(r.First.Cost.Peak, r.Change.Cost.Peak, r.Idle.Cost.Peak, r.Single.Cost.Peak, r.Restart.Cost.Peak)
}

func each(total float64, of int) string { return fmt.Sprintf("%.2f", total/float64(max(of, 1))) }

func seconds(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}

// besides is what else used the processors.
func besides(p processors) string {
	if p == nil {
		return "-"
	}
	var parts []string
	for _, part := range []string{"kube-apiserver", "etcd", partSimulation, partRest} {
		parts = append(parts, fmt.Sprintf("%.0f s", p[part].Seconds()))
	}
	return strings.Join(parts, " / ")
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", bytes/mebibyte) }

// table prints the figures as the documentation shows them.
func table(results []*result) string {
	var b strings.Builder
	b.WriteString("| Nodes | Aim |")
	for _, r := range results {
		fmt.Fprintf(&b, " %d |", r.Nodes)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---:|", len(results)) + "\n")
	for _, one := range rows() {
		fmt.Fprintf(&b, "| %s | %s |", one.name, one.aim)
		for _, r := range results {
			fmt.Fprintf(&b, " %s |", one.value(r))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// charts are the pictures by the names of their files.
func charts(results []*result) map[string]string {
	adoption := func(title string, of func(*result) *roll) *chart {
		c := &chart{title: title, x: "seconds", y: "% of nodes"}
		for _, r := range results {
			one := curve{name: fmt.Sprintf("%d nodes", r.Nodes)}
			for _, p := range of(r).Curve {
				one.points = append(one.points, [2]float64{p.After.Seconds(), 100 * float64(p.Nodes) / float64(r.Nodes)})
			}
			c.curves = append(c.curves, one)
		}
		return c
	}
	growth := &chart{title: "Time by the size of the fleet", x: "nodes", y: "seconds"}
	memory := &chart{title: "Memory of the manager by the size of the fleet", x: "nodes", y: "MiB"}
	for _, of := range []struct {
		name string
		time func(*result) time.Duration
	}{
		{"objects", func(r *result) time.Duration { return r.Change.Pools }},
		{"nodes", func(r *result) time.Duration { return r.Change.Adopted }},
		{"restart", func(r *result) time.Duration { return r.Restart.True }},
	} {
		one := curve{name: of.name}
		for _, r := range results {
			one.points = append(one.points, [2]float64{float64(r.Nodes), of.time(r).Seconds()})
		}
		growth.curves = append(growth.curves, one)
	}
	one := curve{name: "at most"}
	for _, r := range results {
		one.points = append(one.points, [2]float64{float64(r.Nodes), float64(r.peak()) / mebibyte})
	}
	memory.curves = append(memory.curves, one)
	return map[string]string{
		"scale-first.svg":  adoption("Nodes with plan and pool after the first profile", func(r *result) *roll { return &r.First }).draw(),
		"scale-change.svg": adoption("Nodes with the new plan after a change", func(r *result) *roll { return &r.Change }).draw(),
		"scale-time.svg":   growth.draw(),
		"scale-memory.svg": memory.draw(),
	}
}

// The figures stand between these lines of the documentation.
const (
	figuresBegin = "<!-- written by make scale -->\n"
	figuresEnd   = "<!-- end -->\n"
)

// recordedResults is where the results that the documentation shows are kept, below the repository, so that table and curves can be drawn anew.
const recordedResults = "test/scale/recorded.json"

// document writes what the documentation shows of the results, into the repository at a path.
func document(repository string, results []*result) error {
	path, page, err := figures(repository, results)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, page, 0o644); err != nil {
		return fmt.Errorf("writing the documentation: %w", err)
	}
	for name, picture := range charts(results) {
		if err := os.WriteFile(filepath.Join(repository, "docs", "images", name), []byte(picture), 0o644); err != nil {
			return fmt.Errorf("writing a picture: %w", err)
		}
	}
	return nil
}

// figures is the page of the documentation with the figures in their place, and where it is.
func figures(repository string, results []*result) (path string, page []byte, err error) {
	path = filepath.Join(repository, "docs", "performance.md")
	old, err := os.ReadFile(path)
	if err != nil {
		return "", nil, fmt.Errorf("reading the documentation: %w", err)
	}
	before, rest, found := strings.Cut(string(old), figuresBegin)
	_, after, ended := strings.Cut(rest, figuresEnd)
	if !found || !ended {
		return "", nil, fmt.Errorf("%s has no place for the figures", path)
	}
	return path, []byte(before + figuresBegin + table(results) + figuresEnd + after), nil
}

// save writes the results as they are, a line for each fleet.
func save(path string, results []*result) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making a folder for the results: %w", err)
	}
	lines := make([]string, 0, len(results))
	for _, one := range results {
		line, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("printing the results: %w", err)
		}
		lines = append(lines, string(line))
	}
	if err := os.WriteFile(path, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o644); err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// load reads results that were saved.
func load(path string) (results []*result, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	if err := json.Unmarshal(text, &results); err != nil {
		return nil, fmt.Errorf("reading the results %s: %w", path, err)
	}
	return results, nil
}
