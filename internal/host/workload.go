// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// RuntimeFolder is where CRI-O reads its configuration from, file by file in the order of their names.
const RuntimeFolder = "/etc/crio/crio.conf.d"

// managementTable is the table of CRI-O's configuration about the pods of the platform. A cluster of OpenShift that was
// installed with CPU partitioning has it on every node, at first without CPUs (BootstrapWorkloadPinningMC of the Node Tuning
// Operator).
const managementTable = "crio.runtime.workloads.management"

// cpusetKey finds the CPUs in the resources of a workload.
func cpusetKey() *regexp.Regexp {
	return regexp.MustCompile(`(?:^|[\s{.,])"?cpuset"?\s*=\s*["']([^"']*)["']`)
}

// PlatformPodsFile is the file by which OpenShift's kubelet knows, when it starts, that the pods of the platform are told from
// others. It looks for no more than the file (pkg/kubelet/managed of its fork).
const PlatformPodsFile = "/etc/kubernetes/openshift-workload-pinning"

func readWorkloads(r *reader, f *Facts) {
	f.ManagementCPUs, f.PlatformPods = r.managementCPUs(), r.platformPods()
}

// platformPods reports whether the kubelet tells the pods of the platform from others. A copy whose maker did not look for the
// file does not say.
func (r *reader) platformPods() Fact[bool] {
	_, err := r.peek(PlatformPodsFile, smallFile)
	switch {
	case err == nil:
		r.taken.file(PlatformPodsFile, "{}\n", nil)
		return Known(true, PlatformPodsFile)
	case errors.Is(err, fs.ErrNotExist) && (r.complete || slices.Contains(r.missing, PlatformPodsFile)):
		r.taken.lack(PlatformPodsFile)
		return Known(false, PlatformPodsFile)
	}
	r.taken.file(PlatformPodsFile, "", err)
	return Absent[bool](PlatformPodsFile, reasonOf(err))
}

// managementCPUs are the CPUs on which CRI-O keeps the pods of the platform, as a list of the kernel; "" where it knows such
// pods and gives them no CPUs of their own. A file replaces the whole table of an earlier one. A snapshot holds of each file
// this table alone.
func (r *reader) managementCPUs() Fact[string] {
	names, err := r.list(RuntimeFolder, func(e entry) bool { return e.kind != kindDirectory })
	if err != nil {
		return Absent[string](RuntimeFolder, reasonOf(err))
	}
	found := Absent[string](RuntimeFolder, "no file has a table "+managementTable)
	for _, name := range names {
		file := path.Join(RuntimeFolder, name)
		content, err := r.peek(file, smallFile)
		if err == nil {
			content, err = plainText(content)
		}
		if err != nil {
			r.taken.file(file, "", err)
			return Absent[string](file, reasonOf(err))
		}
		cpuset, ok := managementCPUsOf(content)
		if ok {
			found = Known(cpuset, file)
			content = fmt.Sprintf("[%s]\nresources = { \"cpuset\" = %q }\n", managementTable, cpuset)
		} else {
			content = ""
		}
		r.taken.file(file, content, nil)
	}
	return found
}

// managementCPUsOf reads the table of one file, and reports whether there is one. It knows as much of TOML as that takes.
func managementCPUsOf(content string) (cpuset string, ok bool) {
	key := cpusetKey()
	table := ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, "["):
			header, _, _ := strings.Cut(line, "#")
			table = strings.NewReplacer("[", "", "]", "", " ", "", "\t", "", `"`, "").Replace(header)
			ok = ok || table == managementTable || table == managementTable+".resources"
			continue
		case table != managementTable && table != managementTable+".resources":
			continue
		case table == managementTable && !strings.HasPrefix(line, "resources"):
			continue
		}
		if match := key.FindStringSubmatch(line); match != nil {
			cpuset = strings.TrimSpace(match[1])
		}
	}
	return cpuset, ok
}
