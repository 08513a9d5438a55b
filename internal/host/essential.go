// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

const (
	cpuStateFile    = "/var/lib/kubelet/cpu_manager_state"
	memoryStateFile = "/var/lib/kubelet/memory_manager_state"
	stacksFile      = onloadRoot + "/stacks"
	initStatusFile  = procRoot + "/1/status"
)

// essential is what facts are made of, of a file that says more: who built the kernel, the users and groups of a process, the
// address of a gateway, comments of administrators. The rest is neither among the facts nor in a snapshot.
func essential(file, content string) string {
	switch file {
	case versionFile:
		return essentialVersion(content)
	case initStatusFile:
		return essentialStatus(content)
	case osReleaseFile, vendorOSReleaseFile:
		return essentialRelease(content)
	case cpuinfoFile:
		return withoutLines(content, "Serial")
	case cpuStateFile:
		return essentialState[cpuState](content)
	case schedStat:
		return onlyLines(content, "cpu", "version")
	case memoryStateFile:
		return essentialState[memoryState](content)
	case stacksFile:
		return essentialStacks(content)
	case "/etc/default/irqbalance", "/etc/sysconfig/irqbalance", "/etc/lowlatency/irqbalance.env":
		return essentialEnvironment(content)
	}
	return essentialByName(file, content)
}

// essentialByName is essential of files whose folders differ from host to host.
func essentialByName(file, content string) string {
	switch {
	case path.Base(path.Dir(file)) == "kubelet.service.d":
		return essentialDropIn(content)
	case strings.HasPrefix(file, rancherRoot):
		return essentialRancher(content)
	}
	switch path.Base(file) {
	case "route":
		const gateway = 2
		return eachLine(content, func(line string) string { return withField(line, gateway, "00000000") })
	case "ipv6_route":
		const source, gateway = 2, 4
		none := strings.Repeat("0", 32)
		return eachLine(content, func(line string) string { return withField(withField(line, source, none), gateway, none) })
	}
	return content
}

// essentialVersion keeps the release, and whether the kernel is PREEMPT_RT. The rest names a user and a host.
func essentialVersion(content string) string {
	release, err := parseVersion(strings.TrimSpace(content))
	if err != nil {
		return content
	}
	kept := "Linux version " + release
	if realTime, _ := parseRealTime(strings.TrimSpace(content)); realTime {
		kept += " PREEMPT_RT"
	}
	return kept + "\n"
}

// essentialStatus keeps the lines of proc_pid_status(5) that are read.
func essentialStatus(content string) string {
	lines := parseColonPairs(content, keptOfStatus()...)
	var kept strings.Builder
	for _, key := range keptOfStatus() {
		if value, ok := lines[key]; ok {
			kept.WriteString(key + ":\t" + value + "\n")
		}
	}
	return kept.String()
}

// onlyLines keeps the lines that begin with one of some words.
func onlyLines(content string, words ...string) string {
	return eachLine(content, func(line string) string {
		if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(line, word) }) {
			return line
		}
		return ""
	})
}

// withoutLines leaves out the lines that begin with a word.
func withoutLines(content, word string) string {
	if !strings.Contains(content, "\n"+word) {
		return content
	}
	return eachLine(content, func(line string) string {
		if strings.HasPrefix(line, word) {
			return ""
		}
		return line
	})
}

// cpuState and memoryState are what is read of the states of the kubelet's managers.
type (
	cpuState struct {
		PolicyName    string                       `json:"policyName,omitempty"`
		DefaultCPUSet string                       `json:"defaultCpuSet,omitempty"`
		Entries       map[string]map[string]string `json:"entries,omitempty"`
	}
	memoryState struct {
		PolicyName string `json:"policyName,omitempty"`
	}
)

// essentialState keeps the fields of a state. What is no state says only that.
func essentialState[T any](content string) string {
	var state T
	if err := json.Unmarshal([]byte(content), &state); err != nil {
		return "not the state of a manager of the kubelet\n"
	}
	kept, err := json.Marshal(state)
	if err != nil {
		return ""
	}
	return string(kept) + "\n"
}

// essentialStacks keeps the numbers of stacks and of their processes; users follow.
func essentialStacks(content string) string {
	return eachLine(content, func(line string) string {
		stack, rest, ok := strings.Cut(strings.TrimRight(line, "\n"), ":")
		owner, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
		if _, err := parseIdentifier(stack); err != nil || !ok {
			return line
		}
		return stack + ": " + owner + "\n"
	})
}

// essentialEnvironment keeps the variables of irqbalance that say which CPUs it leaves alone.
func essentialEnvironment(content string) string {
	return eachLine(content, func(line string) string {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), "="); ok && isBanList(strings.TrimSpace(name)) {
			return strings.TrimRight(line, "\n") + "\n"
		}
		return ""
	})
}

func isBanList(variable string) bool { return strings.HasPrefix(variable, "IRQBALANCE_BANNED_") }

// eachLine puts another line, or nothing, in the place of each.
func eachLine(content string, replace func(line string) string) string {
	var replaced strings.Builder
	for line := range strings.Lines(content) {
		replaced.WriteString(replace(line))
	}
	return replaced.String()
}

// withField replaces one field of a line, counted from 0, by a value of the same kind; a line with a title stays.
func withField(line string, number int, value string) string {
	at, seen := 0, 0
	for at < len(line) {
		start := at + len(line[at:]) - len(strings.TrimLeft(line[at:], " \t"))
		end := start + strings.IndexAny(line[start:]+"\n", " \t\n")
		if seen == number {
			if len(line[start:end]) == len(value) {
				return line[:start] + value + line[end:]
			}
			return line
		}
		at, seen = end, seen+1
		if line[end:] == "" || line[end] == '\n' {
			break
		}
	}
	return line
}

// OmittedFields is the field of a kubelet's configuration in a snapshot that names the fields which were left out.
const OmittedFields = "lowlatencySnapshotOmits"

// essentialFields are the fields of KubeletConfiguration that are kept whatever words are their values: what checks read, and
// switches with words of Kubernetes.
func essentialFields() []string {
	return []string{
		OmittedFields, "apiVersion", "kind", "cgroupDriver", "cpuManagerPolicy", "cpuManagerPolicyOptions", "evictionHard", "evictionSoft",
		"failSwapOn", "featureGates", "hairpinMode", "kubeReserved", "memoryManagerPolicy", "memorySwap", "reservedMemory",
		"reservedSystemCPUs", "systemReserved", "topologyManagerPolicy", "topologyManagerPolicyOptions", "topologyManagerScope",
	}
}

// essentialConfiguration is a kubelet's configuration as a snapshot holds it: numbers, switches, amounts and times of all
// fields, and the fields above. Addresses, domains, headers with credentials and paths are left out, by name, and so are comments.
func essentialConfiguration(content string) (string, error) {
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(content), &fields); err != nil {
		return "", err
	}
	kept := map[string]any{}
	left := []string{}
	for name, value := range fields {
		if slices.Contains(essentialFields(), name) || isAmount(value) {
			kept[name] = value
		} else {
			left = append(left, name)
		}
	}
	switch {
	case len(left) == 0 && !strings.Contains(content, "#"):
		return content, nil
	case len(left) > 0:
		slices.Sort(left)
		kept[OmittedFields] = left
	}
	text, err := json.MarshalIndent(kept, "", " ")
	return string(text) + "\n", err
}

// isAmount tells a number, a switch, an amount such as 50Mi or 10%, or a time such as 1m30s.
func isAmount(value any) bool {
	switch value := value.(type) {
	case nil, bool, int64, float64:
		return true
	case string:
		return regexp.MustCompile(`^(|[0-9]+(\.[0-9]+)?([KMGTPE]i?|[mk%])?|([0-9]+(\.[0-9]+)?(h|m|s|ms|us|µs|ns))+)$`).MatchString(value)
	}
	return false
}

// EssentialKubeletConfiguration is a kubelet's configuration without what might tell whose it is, or give access: numbers,
// switches, amounts and times of all fields, and the fields that decide about CPUs, memory and pods. It merges like the whole. The
// error is that of reading it.
func EssentialKubeletConfiguration(content string) (string, error) {
	return essentialConfiguration(content)
}
