// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/test/confinement/attempts"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

// placed is a trial below a folder of a container, as the program workload reads it.
type placed struct {
	Root string `json:"root"`
	attempts.Trial
}

// takenOver tries from inside the running pods what somebody would who has taken them over: as the process that the container
// runtime starts, with its user, capabilities, filter of system calls, devices and mounts. What does not work as root of the
// node either would show nothing and is left out.
func (s *scene) takenOver(t *testing.T) string {
	s.furnish(t)
	all := slices.Concat(attempts.Files(), attempts.Beyond())
	said := s.try(t, lab.FilesPath+"/bin/workload", onHost(all))
	var possible []attempts.Trial
	for i, trial := range all {
		if said[i] == "" {
			possible = append(possible, trial)
		} else {
			t.Logf("not tried: %s, which root of the node cannot either: %s", trial, said[i])
		}
	}
	// Without most of them, nothing would be shown.
	if missing := len(all) - len(possible); missing > 6 {
		t.Errorf("root of the node cannot do %d of %d either", missing, len(all))
	}
	pods := []struct {
		name  string
		pod   *corev1.Pod
		wants []string
	}{
		{"manager", s.readyPod(t, operatorNamespace, client.MatchingLabels{"control-plane": "controller-manager"}), nil},
		{"agent", s.readyPod(t, agentNamespace, client.MatchingLabels{"app.kubernetes.io/component": "agent"}), nil},
		{"device plugin", s.plugin(t, "whole"), []string{"connect /var/lib/kubelet/device-plugins/kubelet.sock"}},
	}
	rows := make([][]string, len(possible)+1)
	rows[0] = []string{"ATTEMPTED", "ROOT OF THE NODE"}
	for i, trial := range possible {
		rows[i+1] = []string{trial.String(), "DONE"}
	}
	counts := make([]string, 0, len(pods))
	for _, p := range pods {
		rows[0] = append(rows[0], strings.ToUpper(p.name))
		done := 0
		for i, outcome := range s.tryInside(t, p.pod, possible) {
			rows[i+1] = append(rows[i+1], outcome)
			if isDone := outcome == "DONE"; isDone != slices.Contains(p.wants, possible[i].String()) {
				t.Errorf("%s: %s: %s", p.name, possible[i], outcome)
			} else if isDone {
				done++
			}
		}
		counts = append(counts, fmt.Sprintf("%s %d", p.name, done))
	}
	show(rows)
	return fmt.Sprintf("of %d attempts that root of the node can make: %s (to register with the kubelet)", len(possible), strings.Join(counts, ", "))
}

// furnish gives the node secrets that nodes have and this one lacks.
func (s *scene) furnish(t *testing.T) {
	t.Helper()
	for _, path := range attempts.Secrets() {
		s.run(t, fmt.Sprintf("test -s '%[1]s' || { mkdir -p \"$(dirname '%[1]s')\" && (umask 077; echo secret >'%[1]s'); }", path))
	}
}

func onHost(trials []attempts.Trial) []placed {
	all := make([]placed, 0, len(trials))
	for _, trial := range trials {
		all = append(all, placed{"/", trial})
	}
	return all
}

// tryInside tries all in a pod, below the folder that stands for the host, and where a folder of the host has its own path in the
// container, there.
func (s *scene) tryInside(t *testing.T, pod *corev1.Pod, trials []attempts.Trial) []string {
	t.Helper()
	var all []placed
	for _, trial := range trials {
		all = append(all, placed{"/host", trial})
		isBelow := func(mount corev1.VolumeMount) bool {
			return mount.MountPath != "/host" && trial.Path != "" && strings.HasPrefix(trial.Path, mount.MountPath+"/")
		}
		if slices.ContainsFunc(pod.Spec.Containers[0].VolumeMounts, isBelow) {
			all = append(all, placed{"/", trial})
		}
	}
	id := container(pod)
	s.run(t, "cp "+lab.FilesPath+"/bin/workload /run/containerd/io.containerd.runtime.v2.task/k8s.io/"+id+"/rootfs/workload")
	said := s.try(t, lab.FilesPath+"/bin/ctr -n k8s.io tasks exec --exec-id attempts "+id+" /workload", all)
	s.run(t, "rm /run/containerd/io.containerd.runtime.v2.task/k8s.io/"+id+"/rootfs/workload")
	outcomes := make([]string, 0, len(trials))
	for i, one := range all {
		outcome := said[i]
		if outcome == "" {
			outcome = "DONE"
		}
		if i > 0 && all[i-1].Trial == one.Trial {
			if outcome == "DONE" {
				outcomes[len(outcomes)-1] = outcome
			}
			continue
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// try runs the program workload with trials, and returns what came of each.
func (s *scene) try(t *testing.T, program string, trials []placed) []string {
	t.Helper()
	text, err := json.Marshal(trials)
	must(t, err)
	var said []string
	must(t, json.Unmarshal([]byte(s.run(t, program+" -try '"+string(text)+"'")), &said))
	return said
}

// show prints a table.
func show(rows [][]string) {
	writer := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(writer, strings.Join(row, "\t"))
	}
	_ = writer.Flush()
}
