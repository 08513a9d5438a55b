// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cgroup knows the notation of control groups: what the kernel writes into /proc/PID/cgroup, and the names that the
// kubelet gives to those of pods. It is pure.
package cgroup

import (
	"errors"
	"regexp"
	"slices"
	"strings"
)

// Path finds in the content of /proc/PID/cgroup the control group that tells most about whose the process is: in
// version 1, with a line for each hierarchy, one that belongs to a pod, else the one of systemd; in version 2 there is one
// (cgroups(7)). Seen from a control group namespace, the path begins with /.. for what is outside of it
// (cgroup_namespaces(7)). Text without such a line is an error.
func Path(text string) (string, error) {
	var best string
	var rank int
	for line := range strings.Lines(text) {
		// hierarchy-ID:controller-list:path, and a path may hold colons.
		fields := strings.SplitN(strings.TrimRight(line, "\n"), ":", 3)
		if len(fields) < 3 || !strings.HasPrefix(fields[2], "/") {
			continue
		}
		if found := rankOf(fields[0], fields[1], fields[2]); found > rank {
			best, rank = fields[2], found
		}
	}
	if rank == 0 {
		return "", errors.New("it names no control group")
	}
	return best, nil
}

// rankOf orders the lines of a process by what they tell.
func rankOf(hierarchy, controllers, path string) int {
	switch {
	case Pod(path) != "":
		return 4
	case controllers == "name=systemd":
		return 3
	case hierarchy == "0":
		return 2
	}
	return 1
}

// pod matches how the kubelet names the control group of a pod (kubernetes: pkg/kubelet/cm/pod_container_manager_linux.go,
// cgroup_manager_linux.go): podUID with the cgroupfs driver, kubepods-podUID.slice or kubepods-QOS-podUID.slice with the
// systemd driver, which writes underscores for hyphens. A UID is a UUID, or 32 hexadecimal digits for a static pod. A
// runtime that was configured for the other driver puts a colon where the slice's name ends.
const pod = `(?:^|/|kubepods-(?:burstable-|besteffort-)?)pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12}|[0-9a-f]{32})(?:\.slice)?(?:[/:]|$)`

// Pod is the UID of the pod to which a control group belongs; "" for one that belongs to none.
func Pod(path string) string {
	if !strings.Contains(path, "pod") {
		return ""
	}
	match := regexp.MustCompile(pod).FindStringSubmatch(path)
	if match == nil {
		return ""
	}
	return strings.ReplaceAll(match[1], "_", "-")
}

// Unit is the last part of a path that names a unit of systemd or, without systemd, the last part: what an administrator
// looks for.
func Unit(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for _, part := range slices.Backward(parts) {
		if strings.HasSuffix(part, ".service") || strings.HasSuffix(part, ".scope") {
			return part
		}
	}
	return parts[len(parts)-1]
}
