// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"io"
	"maps"
	"slices"
	"strings"
)

// Contents are what a snapshot holds, for who is to pass it on.
type Contents struct {
	// Files is how many files there are, Bytes the sum of their lengths.
	Files int
	Bytes int64
	// Personal is what tells whose host it is, or may tell, and in which files that stands.
	Personal []PersonalContent
	// RedactedArguments are the names of the kernel arguments that lost their value.
	RedactedArguments []string
}

// PersonalContent is what people are to look through.
type PersonalContent struct {
	What  string
	Files []string
}

// personalKind is a kind of content by the files that have it: names that begin and end so.
type personalKind struct {
	what     string
	files    []string
	redacted string
}

// personalKinds are what a snapshot tells about a host beyond its kernel and hardware; redacted is what of it a redacted one still
// tells, "" for nothing.
func personalKinds() []personalKind {
	return []personalKind{
		{"the name of the host", []string{"/proc/sys/kernel/hostname"}, ""},
		{"the kernel command line", []string{"/proc/cmdline"}, "kernel arguments about CPUs, memory and drivers; of others only that there are some"},
		{"routes: networks and interfaces", []string{"/proc/1/net/route", "/proc/1/net/ipv6_route", "/proc/net/route", "/proc/net/ipv6_route"},
			"the interfaces of the default routes"},
		{"names of programs, and where they run", []string{"/proc/*/stat", "/proc/*/comm"}, ""},
		{"control groups: services, users by number, UIDs of pods", []string{"/proc/*/cgroup"}, ""},
		{"variables that tell irqbalance which CPUs to leave alone", []string{"/proc/*/environ", "/etc/*"}, ""},
		{"swap files and devices", []string{"/proc/swaps"}, ""},
		{"the kubelet's configuration: numbers, switches, policies", []string{
			"/etc/kubernetes/*", "/var/lib/kubelet/config.yaml", "/var/lib/kubelet/kubelet.conf.d/*", "/var/lib/rancher/*", rancherRoot + "*", "/proc/*/cmdline",
		},
			"the kubelet's configuration: numbers, switches, policies"},
		{"the kubelet's state: UIDs of pods and names of containers with CPUs of their own", []string{"/var/lib/kubelet/*_manager_state"}, ""},
		{"names of interfaces", []string{"/sys/class/net/*"}, "names of interfaces, without MAC addresses"},
		{"what the AF_XDP device plugin says, with the names of pools", []string{SocketReports + "/*"},
			"what the AF_XDP device plugin says, with the names of pools"},
		{"what is traced, and the names of tracing instances", []string{tracingRoot + "/*", "/sys/kernel/debug/*"},
			"which functions and events of the kernel are traced"},
		{"the vendor and model of the machine and its firmware", []string{"/sys/class/dmi/*", "/sys/devices/virtual/dmi/*"},
			"the vendor and model of the machine and its firmware"},
	}
}

// writeAs writes what was recorded as an archive, with the names of the host or without.
func (t *recording) writeAs(disclosure Disclosure, w *walk, out io.Writer) (Contents, error) {
	var names *redaction
	if disclosure == Redacted {
		names = t.redact()
	}
	tree, err := t.tree(w)
	if err == nil && names != nil {
		tree, err = names.tree(tree)
	}
	if err != nil {
		return Contents{}, err
	}
	contents := tree.contents(disclosure)
	if names != nil {
		contents.RedactedArguments = names.arguments
	}
	return contents, tree.write(out)
}

// contents describes a tree.
func (t *memoryTree) contents(disclosure Disclosure) Contents {
	var contents Contents
	names := slices.Sorted(maps.Keys(t.nodes))
	for _, name := range names {
		if t.nodes[name].kind == kindFile {
			contents.Files++
			contents.Bytes += int64(len(t.nodes[name].content))
		}
	}
	for _, kind := range personalKinds() {
		what := kind.what
		if disclosure == Redacted {
			what = kind.redacted
		}
		files := slices.DeleteFunc(slices.Clone(kind.files), func(pattern string) bool {
			return !slices.ContainsFunc(names, func(name string) bool { return t.nodes[name].kind != kindDirectory && matches(pattern, "/"+name) })
		})
		if what != "" && len(files) > 0 {
			contents.Personal = append(contents.Personal, PersonalContent{what, files})
		}
	}
	return contents
}

// matches reports whether a name has the form of a pattern with at most one star, which also stands for slashes.
func matches(pattern, name string) bool {
	head, tail, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	return len(name) >= len(head)+len(tail) && strings.HasPrefix(name, head) && strings.HasSuffix(name, tail)
}
