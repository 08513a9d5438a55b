// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// reserving is what a plan says of memory, whole.
const reserving = `{"memoryManagerPolicy": "Static", "systemReserved": {"memory": "1Gi"}, "kubeReserved": {"memory": "500Mi"},
	"evictionHard": {"memory.available": "100Mi"}, "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1624Mi"}}]}`

const rancherFolder = "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"

// TestFilesOfTheKubelet: what the operations have the kubelet become is refused before anything is written where its flags, its file or its
// other drop-ins contradict it now, or cannot be read, whoever asks for it.
func TestFilesOfTheKubelet(t *testing.T) {
	const standard = "kubelet\x00--config=/etc/k.yaml\x00"
	for name, tc := range map[string]struct {
		line  string
		ours  string
		own   string
		files map[string]hostfile.State
		says  string
	}{
		"nothing else":           {line: standard, ours: reserving},
		"others bear on nothing": {line: standard, ours: reserving, files: configured("/etc/k.yaml", "maxPods: 30\nmemoryManagerPolicy: None\n")},
		"one behind ours says the same": {
			line: standard, ours: reserving, files: configured(kubeletFolder+"/99-site.conf", "memoryManagerPolicy: Static\nmaxPods: 9\n"),
		},
		"one before ours says otherwise": {line: standard, ours: reserving, files: configured(kubeletFolder+"/10-site.conf", "memoryManagerPolicy: None\n")},
		"one that is no drop-in":         {line: standard, ours: reserving, files: configured(kubeletFolder+"/99-site.yaml", "memoryManagerPolicy: None\n")},
		"one of a folder below": {
			line: standard, ours: reserving, files: configured(kubeletFolder+"/95-more/a.conf", "memoryManagerPolicy: None\n"),
			says: "is read after " + kubeletDropIn + ", and sets otherwise: memoryManagerPolicy",
		},
		"one behind ours says otherwise": {
			line: standard, ours: reserving, files: configured(kubeletFolder+"/99-site.conf", "systemReserved: {memory: 2Gi}\nkubeReserved: {memory: 1Mi}\n"),
			says: "reservedMemory adds up to 1624Mi over all NUMA nodes",
		},
		"one behind ours removes it": {
			line: standard, ours: reserving, files: configured(kubeletFolder+"/99-site.conf", "reservedMemory: null\nmemoryManagerPolicy: None\n"),
			says: "sets otherwise: memoryManagerPolicy, reservedMemory",
		},
		"the file has the memory manager on": {
			line: standard, ours: "cpuManagerPolicy: static", files: configured("/etc/k.yaml", reserving[:len(reserving)-1]+`, "kubeReserved": {"memory": "501Mi"}}`),
			says: "adds up to",
		},
		"the file is a link": {
			line: standard, ours: "cpuManagerPolicy: static",
			files: map[string]hostfile.State{"/etc/k.yaml": hostfile.LinkTo("real.yaml"), "/etc/real.yaml": hostfile.File("memoryManagerPolicy: Static\n", 0o644)},
			says:  "systemReserved[memory]",
		},
		"the file is a link to itself": {line: standard, ours: reserving, files: map[string]hostfile.State{"/etc/k.yaml": hostfile.LinkTo("/etc/k.yaml")}, says: "is not known"},
		"the file is gone":             {line: standard, ours: reserving, files: map[string]hostfile.State{"/etc/k.yaml": {}}, says: "is not known: /etc/k.yaml is"},
		"the file is none":             {line: standard, ours: reserving, files: configured("/etc/k.yaml", "a: ["), says: "a file of the kubelet is not a KubeletConfiguration"},
		"a drop-in that nobody can read": {
			line: standard, ours: reserving, files: map[string]hostfile.State{kubeletFolder + "/10-site.conf": {Type: hostfile.Other}}, says: "is not known",
		},
		"a flag that says it, too": {line: standard + "--kube-reserved\x00memory=1Gi\x00", ours: reserving, says: "started with --kube-reserved=memory=1Gi"},
		"its state elsewhere":      {line: standard + "--root-dir\x00/data/kubelet\x00", ours: reserving, says: "started with --root-dir=/data/kubelet, and what it remembers there"},
		"its state where it is":    {line: standard + "--root-dir=/var/lib/kubelet/\x00", ours: reserving},
		"a flag of another thing":  {line: standard + "--node-ip=10.0.0.1\x00", ours: reserving},
		"a kubelet without a file": {line: "kubelet\x00", ours: reserving, files: configured("/var/lib/kubelet/config.yaml", "a: [")},
		"one that does not run":    {ours: reserving, files: configured("/var/lib/kubelet/config.yaml", "a: ["), says: "is not a KubeletConfiguration"},
		"RKE2, whose own file is none of the kubelet's": {
			line: "rke2\x00server\x00--config=/etc/rke2.yaml\x00", own: rancherFolder + "/90-lowlatency.conf", ours: reserving, files: configured("/etc/rke2.yaml", "a: ["),
		},
		"RKE2 with a file behind ours": {
			line: "rke2\x00server\x00", own: rancherFolder + "/90-lowlatency.conf", ours: reserving,
			files: configured(rancherFolder+"/99-site.conf", "memoryManagerPolicy: None\n"), says: "sets otherwise: memoryManagerPolicy",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).withKubelet()
			w.has(map[string]hostfile.State{"/etc/k.yaml": hostfile.File("cgroupDriver: systemd\n", 0o644), kubeletFolder: hostfile.NewFolder()})
			if tc.line != "" {
				w.has(map[string]hostfile.State{"/proc/" + strconv.Itoa(w.kubelet.Unit(kubeletService).Process) + "/cmdline": hostfile.File(tc.line, 0o444)})
			}
			w.has(tc.files)
			if tc.own == "" {
				tc.own = kubeletDropIn
			}
			w.judges(t, []operation.Operation{operation.PutKubeletDropIn(tc.own, tc.ours)}, tc.says)
		})
	}
}

// judges asserts that operations are refused with a message, and the host is as before, or that they are carried out.
func (w *world) judges(t *testing.T, operations []operation.Operation, says string) {
	t.Helper()
	before := w.manifest()
	next, err := w.guard().Apply(t.Context(), wanted(operations))
	if says == "" {
		if next != guard.Verify || err != nil {
			t.Errorf("Apply() = %v, %v", next, err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("Apply() = %v, %v, want an error with %q", next, err, says)
	}
	if diff := cmp.Diff(before, w.manifest()); diff != "" {
		t.Errorf("the host before and after (-before +after):\n%s", diff)
	}
}

// configured is a file of the kubelet.
func configured(name, content string) map[string]hostfile.State {
	return map[string]hostfile.State{name: hostfile.File(content, 0o644)}
}

// has puts files on the host, in folders that are there.
func (w *world) has(files map[string]hostfile.State) {
	for name, state := range files {
		for _, seen := range []map[string]hostfile.State{w.seen, w.kept} {
			for i, letter := range name {
				if letter == '/' && i > 0 {
					seen[name[:i]] = hostfile.NewFolder()
				}
			}
			seen[name] = state
			if state.Type == hostfile.Absent {
				delete(seen, name)
			}
		}
	}
}
