// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

// redaction puts other names in the place of those that tell whose host it is and what it is for: of the host, its users, pods,
// containers, units and programs, the values of kernel arguments that are not about the kernel, and addresses. What the
// checks and the planner conclude stays the same, because equal names stay equal and in their order.
type redaction struct {
	// unique replaces what occurs nowhere by chance: UIDs of pods, IDs of containers, MAC addresses in names of interfaces.
	unique *strings.Replacer
	// programs, containers, units, instances, areas and probes are the names of these that others take the place of.
	programs, containers, units, instances, areas, probes *pseudonyms
	// arguments are the kernel arguments that lost their value.
	arguments []string
}

// pseudonyms number names in their order, so that what is sorted by name stays in its order.
type pseudonyms struct {
	format string
	names  map[string]bool
	sorted []string
}

func newPseudonyms(format string) *pseudonyms {
	return &pseudonyms{format: format, names: map[string]bool{}}
}

// add notes a name and leaves it as it is.
func (p *pseudonyms) add(name string) string {
	p.names[name] = true
	return name
}

// of is the pseudonym of a name that was added before the first one was asked for.
func (p *pseudonyms) of(name string) string {
	if p.sorted == nil {
		p.sorted = slices.Sorted(maps.Keys(p.names))
	}
	at, _ := slices.BinarySearch(p.sorted, name)
	return fmt.Sprintf(p.format, at+1)
}

// redact replaces the names in the contents that were recorded, and returns what replaces those in paths.
func (t *recording) redact() *redaction {
	r := &redaction{
		programs: newPseudonyms("program-%03d"), containers: newPseudonyms("container-%03d"), units: newPseudonyms("unit-%03d"),
		instances: newPseudonyms("instance-%03d"), areas: newPseudonyms("area-%03d"), probes: newPseudonyms("probe_%03d"),
	}
	r.collect(t)
	for file, content := range t.files {
		t.files[file] = r.content(file, content, (*pseudonyms).of)
	}
	return r
}

// Names within paths and contents that occur nowhere else.
const (
	podUID      = `[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}`
	longID      = `\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b`
	hardwareMAC = `\b(?:en|wl|ww|ib|eth|usb)x?[0-9a-f]{12}\b`
)

// collect finds the names.
func (r *redaction) collect(t *recording) {
	unique := map[string]bool{}
	find := func(pattern *regexp.Regexp, text string) {
		for _, found := range pattern.FindAllString(text, -1) {
			unique[strings.ReplaceAll(found, "_", "-")] = true
		}
	}
	pods, long, hardware := regexp.MustCompile(podUID), regexp.MustCompile(longID), regexp.MustCompile(hardwareMAC)
	for _, name := range slices.Concat(slices.Collect(maps.Keys(t.names)), slices.Collect(maps.Keys(t.followed)),
		slices.Collect(maps.Keys(t.files)), slices.Collect(maps.Keys(t.unreadable))) {
		if strings.HasPrefix(name, cgroupRoot) {
			find(pods, name)
			find(long, strings.ReplaceAll(strings.ReplaceAll(name, "_", "-"), "-", " "))
		}
		find(hardware, name)
		if instance, ok := instanceOf(name); ok {
			r.instances.add(instance)
		}
	}
	for file, content := range t.files {
		if rule := ruleOf(file); rule.hasIDs {
			find(pods, content)
			find(long, strings.ReplaceAll(strings.ReplaceAll(content, "_", "-"), "-", " "))
		}
		r.content(file, content, (*pseudonyms).add)
	}
	r.unique = replacerOf(slices.Sorted(maps.Keys(unique)))
}

// replacerOf numbers identifiers, each in the shape that it has, and with underscores for hyphens.
func replacerOf(identifiers []string) *strings.Replacer {
	pairs := make([]string, 0, 4*len(identifiers))
	for i, id := range identifiers {
		digits := fmt.Sprintf("%0*x", len(id), i+1)
		switch {
		case strings.Contains(id, "-"):
			digits = digits[:8] + "-" + digits[9:13] + "-" + digits[14:18] + "-" + digits[19:23] + "-" + digits[24:]
		case len(id) < 32:
			digits = id[:len(id)-12] + fmt.Sprintf("%012x", i+1)
		}
		pairs = append(pairs, id, digits, strings.ReplaceAll(id, "-", "_"), strings.ReplaceAll(digits, "-", "_"))
	}
	return strings.NewReplacer(pairs...)
}

// naming replaces a name, or notes it.
type naming func(names *pseudonyms, name string) string

// rule is what a redacted snapshot holds of the files with a pattern of path.Match.
type rule struct {
	pattern string
	// hasIDs reports whether UIDs of pods or IDs of containers may be in it.
	hasIDs  bool
	rewrite func(r *redaction, file, content string, replace naming) string
}

// rules are the one table of the files that hold names. What is neither the kernel's nor in it says nothing of its own.
func rules() []rule {
	return []rule{
		{"/proc/sys/kernel/hostname", false, func(*redaction, string, string, naming) string { return RedactedName + "\n" }},
		{"/proc/cmdline", false, (*redaction).commandLine},
		{"/proc/swaps", false, (*redaction).swaps},
		{"/proc/sys/kernel/random/boot_id", false, bootID},
		{procRoot + "/net/route", false, defaultRoutes},
		{procRoot + "/1/net/route", false, defaultRoutes},
		{procRoot + "/net/ipv6_route", false, defaultRoutes},
		{procRoot + "/1/net/ipv6_route", false, defaultRoutes},
		{procRoot + "/[0-9]*/stat", false, (*redaction).task},
		{procRoot + "/[0-9]*/task/[0-9]*/stat", false, (*redaction).task},
		{procRoot + "/[0-9]*/comm", false, (*redaction).program},
		{procRoot + "/[0-9]*/cgroup", true, (*redaction).group},
		{cpuStateFile, true, (*redaction).pods},
		{tracingRoot + "/set_event", false, (*redaction).events},
		{tracingRoot + "/instances/*/set_event", false, (*redaction).events},
		{SocketReports + "/*", false, withoutAddresses},
	}
}

// ruleOf finds the rule of a file; files without one keep their content.
func ruleOf(file string) rule {
	for _, rule := range rules() {
		if matched, err := path.Match(rule.pattern, file); matched && err == nil {
			return rule
		}
	}
	return rule{}
}

// content is what a redacted snapshot holds of a file.
func (r *redaction) content(file, content string, replace naming) string {
	if rule := ruleOf(file); rule.rewrite != nil {
		return rule.rewrite(r, file, content, replace)
	}
	return content
}

// RedactedName is the name of every host in a redacted snapshot.
const RedactedName = "redacted"

// commandLine redacts the kernel command line; one that cannot be read is left out as a whole.
func (r *redaction) commandLine(_, content string, _ naming) string {
	line, err := cmdline.Parse(strings.TrimSpace(content))
	if err != nil {
		return "redacted\n"
	}
	text, left := line.Impersonal()
	r.arguments = left
	return text + "\n"
}

// bootID is another identifier for each boot.
func bootID(_ *redaction, _, content string, _ naming) string {
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte(strings.TrimSpace(content))))
	return sum[:8] + "-" + sum[8:12] + "-" + sum[12:16] + "-" + sum[16:20] + "-" + sum[20:32] + "\n"
}

// defaultRoutes keeps the title and the default routes: no others say which NICs carry the host's own traffic, as long as nobody
// knows an address of the host. The second field of IPv4 is the destination, of IPv6 the length of its prefix.
func defaultRoutes(_ *redaction, _, content string, _ naming) string {
	return eachLine(content, func(line string) string {
		fields := strings.Fields(line)
		if len(fields) > 1 && !slices.Contains([]string{"Destination", "00000000", "00"}, fields[1]) {
			return ""
		}
		return line
	})
}

// program replaces the name in a comm. The daemons that checks know by name keep theirs.
func (r *redaction) program(_, content string, replace naming) string {
	if name := strings.TrimSpace(content); !processesOfInterest()[name] {
		return replace(r.programs, name) + "\n"
	}
	return content
}

// task replaces the name in a stat. Threads of the kernel keep theirs, too.
func (r *redaction) task(file, content string, replace naming) string {
	stat, err := parseTaskStat(content)
	if err != nil || processesOfInterest()[stat.name] {
		return content
	}
	if stat.flags&flagKernelThread != 0 {
		// The thread of an interrupt has the beginning of the interface's name.
		stat.name = regexp.MustCompile(`-((en|wl|ww)x)[0-9a-f]+$`).ReplaceAllString(stat.name, "-${1}")
	} else {
		stat.name = replace(r.programs, stat.name)
	}
	id, _ := strconv.Atoi(path.Base(path.Dir(file)))
	return stat.String(id)
}

// ownGroups are the control groups that systemd and the kubelet make on every host.
const ownGroups = `^(\.\.|container|(system|user|machine|dataplane|kubelet|kubelet-kubepods|kubepods(-burstable|-besteffort)?)\.slice|` +
	`init\.scope|kubepods|burstable|besteffort|` +
	`((kubelet-)?kubepods-(burstable-|besteffort-)?)?pod(` + podUID + `|[0-9a-f]{32})(\.slice)?(:[a-z-]+:[0-9a-f]{64})?|` +
	`([a-z-]+-)?[0-9a-f]{64}(\.scope)?)( \(deleted\))?$`

// group replaces the parts of the path of a control group that others have chosen, and leaves their kind.
func (r *redaction) group(_, content string, replace naming) string {
	head, group, ok := strings.Cut(strings.TrimSpace(content), "::")
	if !ok {
		return ""
	}
	own := regexp.MustCompile(ownGroups)
	parts := strings.Split(group, "/")
	for i, part := range parts {
		if part == "" || own.MatchString(part) {
			continue
		}
		kind := path.Ext(part)
		if !slices.Contains([]string{".service", ".scope", ".slice", ".socket", ".mount", ".swap"}, kind) {
			kind = ""
		}
		parts[i] = replace(r.units, strings.TrimSuffix(part, kind)) + kind
	}
	return head + "::" + strings.Join(parts, "/") + "\n"
}

// pods replaces the names of containers in the state of the CPU manager. The UIDs of pods are replaced wherever they stand.
func (r *redaction) pods(_, content string, replace naming) string {
	var state cpuState
	if json.Unmarshal([]byte(content), &state) != nil {
		return content
	}
	for pod, containers := range state.Entries {
		renamed := map[string]string{}
		for name, list := range containers {
			renamed[replace(r.containers, name)] = list
		}
		state.Entries[pod] = renamed
	}
	// Texts and maps of texts can always be written.
	text, _ := json.Marshal(state)
	return string(text) + "\n"
}

// swaps replaces the names of files and devices in /proc/swaps.
func (r *redaction) swaps(_, content string, replace naming) string {
	first := true
	return eachLine(content, func(line string) string {
		name, _, ok := strings.Cut(line, " ")
		if first || !ok {
			first = false
			return line
		}
		return "/" + replace(r.areas, name) + strings.TrimPrefix(line, name)
	})
}

// events replaces the names of events that somebody has made for a program: those of the kernel have the names of its subsystems.
func (r *redaction) events(_, content string, replace naming) string {
	return eachLine(content, func(line string) string {
		if strings.HasPrefix(line, "probe") || strings.HasPrefix(line, "uprobe") {
			return replace(r.probes, strings.TrimSpace(line)) + "\n"
		}
		return line
	})
}

// addressPattern is what looks like an address of IPv4 or IPv6 or like a MAC address.
const addressPattern = `\b\d{1,3}(\.\d{1,3}){3}\b|\b(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}\b|\b[0-9a-fA-F]{0,4}(:[0-9a-fA-F]{0,4}){2,7}:[0-9a-fA-F]{1,4}\b`

// WithoutAddresses replaces what looks like an address of IPv4 or IPv6 or like a MAC address in a text.
func WithoutAddresses(text string) string {
	return regexp.MustCompile(addressPattern).ReplaceAllString(text, "ADDRESS")
}

func withoutAddresses(_ *redaction, _, content string, _ naming) string {
	return WithoutAddresses(content)
}

// instanceOf is the instance of the tracer to which a file belongs.
func instanceOf(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, tracingRoot+"/instances/")
	instance, _, _ := strings.Cut(rest, "/")
	return instance, ok && instance != ""
}

// tree is the tree of a snapshot with other names in its paths.
func (r *redaction) tree(from *memoryTree) (*memoryTree, error) {
	to := newMemoryTree()
	for _, name := range slices.Sorted(maps.Keys(from.nodes)) {
		n := *from.nodes[name]
		n.children = nil
		n.target, n.content = r.target("/"+name, n.target), r.unique.Replace(n.content)
		if err := to.add(r.path(name), &n); err != nil {
			return nil, err
		}
	}
	return to, nil
}

func (r *redaction) path(name string) string {
	if instance, ok := instanceOf("/" + name); ok {
		head := strings.TrimPrefix(tracingRoot+"/instances/", "/")
		name = head + r.instances.of(instance) + strings.TrimPrefix(name, head+instance)
	}
	return r.unique.Replace(name)
}

// target is where a link leads. Of units only counts whether they are masked, and containers have devices below folders of theirs.
func (r *redaction) target(name, target string) string {
	switch {
	case strings.HasSuffix(target, latencyDevice):
		return latencyDevice
	case slices.Contains(unitFolders(), path.Dir(name)) && target != "/dev/null":
		return RedactedName
	}
	return r.unique.Replace(target)
}
