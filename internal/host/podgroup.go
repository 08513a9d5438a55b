// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const cgroupRoot = "/sys/fs/cgroup"

// maxPods bounds how many pods with exclusive CPUs are looked at; the kubelet starts at most some hundred.
const maxPods = 1024

// readPodGroups looks at the control groups of the pods that the CPU manager gave exclusive CPUs to
// (kubernetes: pkg/kubelet/cm/cpumanager/state/checkpoint.go). Guaranteed pods are directly below kubepods
// (pkg/kubelet/cm/pod_container_manager_linux.go).
func readPodGroups(r *reader, f *Facts) {
	state := f.Kubelet.CPUManagerState
	if !state.Known {
		f.Kubelet.PodGroups = Absent[[]PodGroup](state.Source, state.Reason)
		return
	}
	pods, err := podsOf(state.Value)
	if err != nil {
		f.Kubelet.PodGroups = Absent[[]PodGroup](state.Source, err.Error())
		return
	}
	var groups []PodGroup
	for _, pod := range pods {
		found, reason := r.podGroups(pod)
		if reason != "" {
			f.Kubelet.PodGroups = Absent[[]PodGroup](cgroupRoot, "the control group of pod "+pod+": "+reason)
			return
		}
		groups = append(groups, found...)
	}
	f.Kubelet.PodGroups = Known(groups, cgroupRoot)
}

// podsOf are the UIDs of the pods in the state of the CPU manager, ascending.
func podsOf(state string) ([]string, error) {
	var checkpoint struct {
		Entries map[string]json.RawMessage `json:"entries"`
	}
	if err := json.Unmarshal([]byte(state), &checkpoint); err != nil {
		return nil, unreadableError{"not the state of the CPU manager"}
	}
	if len(checkpoint.Entries) > maxPods {
		return nil, tooManyError{maxPods}
	}
	isUID := regexp.MustCompile(`^[0-9a-f-]{8,64}$`)
	pods := slices.Sorted(maps.Keys(checkpoint.Entries))
	return slices.DeleteFunc(pods, func(pod string) bool { return !isUID.MatchString(pod) }), nil
}

// hierarchy is where control groups tell the CPUs and the quota of a container.
type hierarchy struct {
	// cpus and quotas are the folders at the top, cpuList and quota the names of the files.
	cpus, quotas, cpuList, quota string
}

// hierarchies are version 2, and the controllers of version 1 where systemd mounts them (Documentation/admin-guide/cgroup-v2.rst,
// cgroup-v1/cpusets.rst, Documentation/scheduler/sched-bwc.rst).
func hierarchies() []hierarchy {
	return []hierarchy{
		{cgroupRoot, cgroupRoot, "cpuset.cpus.effective", "cpu.max"},
		{cgroupRoot + "/cpuset", cgroupRoot + "/cpu,cpuacct", "cpuset.effective_cpus", "cpu.cfs_quota_us"},
	}
}

// podGroups are the containers of a pod, with the systemd driver or the cgroupfs driver of the kubelet; else the
// reason why there are none.
func (r *reader) podGroups(pod string) (groups []PodGroup, reason string) {
	folders := []string{"/kubepods.slice/kubepods-pod" + strings.ReplaceAll(pod, "-", "_") + ".slice", "/kubepods/pod" + pod}
	isContainer := func(e entry) bool { return e.kind == kindDirectory }
	for _, version := range hierarchies() {
		for _, folder := range folders {
			names, err := r.list(version.cpus+folder, isContainer)
			switch {
			case err == nil:
				return r.containerGroups(pod, folder, names, version), ""
			case !isAbsent(err):
				return nil, reasonOf(err)
			}
			reason = reasonOf(err)
		}
	}
	return nil, reason
}

// containerGroups are the containers with these names below the folder of a pod.
func (r *reader) containerGroups(pod, folder string, names []string, version hierarchy) []PodGroup {
	groups := make([]PodGroup, 0, len(names))
	quota := r.nameFact(version.quotas + folder + "/" + version.quota)
	for _, name := range names {
		container := folder + "/" + name
		groups = append(groups, PodGroup{
			Pod: pod, CPUs: read(r, source[cpus.Set]{version.cpus + container + "/" + version.cpuList, r.parseSet}),
			Quota: r.nameFact(version.quotas + container + "/" + version.quota), PodQuota: quota,
		})
	}
	return groups
}
