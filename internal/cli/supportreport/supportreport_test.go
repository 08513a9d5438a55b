// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package supportreport

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTexts(t *testing.T) {
	known := newNames()
	known.learn("nodes", map[string]any{
		"metadata": map[string]any{"name": "w1.bank.example", "labels": map[string]any{"kubernetes.io/hostname": "w1"}},
		"status":   map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": "192.0.2.1"}, map[string]any{"type": "InternalDNS", "address": "w1.internal"}}},
	})
	known.learn("lowlatencynodes", map[string]any{
		"metadata": map[string]any{"name": "w10"},
		"status":   map[string]any{"holders": []any{map[string]any{"namespace": "alpha", "pod": "engine-0", "container": "match"}, "text", map[string]any{"pod": 7}}},
	})
	cases := map[string]struct{ text, disclosed, redacted string }{
		"a name":                       {"node w1 is late", "", "node node-001 is late"},
		"a name at the end":            {"see w1.", "", "see node-001."},
		"the long name":                {"w1.bank.example:10250", "", "node-002:10250"},
		"another domain":               {"w1.other.example", "", "node-001.domain"},
		"an address that is a name":    {"https://w1.internal/x", "", "https://node-003/x"},
		"a longer name":                {"w10 w100 xw1 w1x", "", "node-004 w100 xw1 w1x"},
		"a pod of the node":            {"kube-proxy-w10", "", "kube-proxy-node-004"},
		"pods":                         {"alpha/engine-0/match has CPU 3", "", "namespace-001/pod-001/container-001 has CPU 3"},
		"addresses":                    {"192.0.2.1 or fe80::1:2:3 at 0a:1b:2c:3d:4e:5f", "", "ADDRESS or ADDRESS at ADDRESS"},
		"what only looks like it":      {"0000:3b:00.0 at 12:34:56 of sha256:0a1b", "", "0000:3b:00.0 at 12:34:56 of sha256:0a1b"},
		"user and password, always":    {"http://u:p@proxy:3128", "http://REDACTED@proxy:3128", "http://REDACTED@proxy:3128"},
		"a name with the YAML's marks": {"- 'w1'\n- \"w10\"", "", "- 'node-001'\n- \"node-004\""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.disclosed == "" {
				tc.disclosed = tc.text
			}
			for want, redacted := range map[string]bool{tc.disclosed: false, tc.redacted: true} {
				if tc.disclosed == tc.redacted {
					redacted = true
				}
				if got := string(newRedactor(known, redacted).text([]byte(tc.text))); got != want {
					t.Errorf("redacted %v: got %q, want %q", redacted, got, want)
				}
			}
		})
	}
	if got, want := newRedactor(known, true).path("nodes/w1.bank.example/report.json"), "nodes/node-002/report.json"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestArguments(t *testing.T) {
	object := map[string]any{"spec": map[string]any{
		"kernelArguments": []any{"isolcpus=2-7", "rd.luks.key=x", "quiet"},
		"shapes":          []any{map[string]any{"kernelArguments": "nohz_full=2-7 ip=192.0.2.1::x", "hash": "h"}},
	}}
	redactArguments(object)
	want := map[string]any{"spec": map[string]any{
		"kernelArguments": []any{"isolcpus=2-7", "rd.luks.key=REDACTED", "quiet"},
		"shapes":          []any{map[string]any{"kernelArguments": "nohz_full=2-7 ip=REDACTED", "hash": "h"}},
	}}
	if diff := cmp.Diff(want, object); diff != "" {
		t.Error(diff)
	}
}

func TestNamesOfFiles(t *testing.T) {
	for name, want := range map[string]string{"a": "a", "system:x": "system:x", "../x": ".._x", "..": "_", "": "_", "a\\b\n": "a_b_"} {
		if got := harmless(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// memory keeps what is written.
type memory map[string]string

func (m memory) Add(name string, content []byte) error {
	m[name] = string(content)
	return nil
}

// listOfTests are Jobs of LatencyTests, and what happened in their namespaces.
func listOfTests(path string, each func(map[string]any)) error {
	switch {
	case strings.HasSuffix(path, "/jobs"):
		each(map[string]any{"kind": "Job", "metadata": map[string]any{"namespace": "desk-b", "name": "quiet-new"}})
	case strings.HasSuffix(path, "/desk-a/events"):
		return errors.New("you may not read desk-a")
	case strings.HasSuffix(path, "/desk-b/events"):
		for name, about := range map[string]map[string]any{
			"test": {"kind": "LatencyTest", "apiVersion": "lowlatency.dev/v1alpha1", "name": "quiet"}, "job": {"kind": "Job", "name": "quiet-new"},
			"pod": {"kind": "Pod", "name": "quiet-old-x1y2z"}, "of-others": {"kind": "Pod", "name": "engine-0"},
			"their-job": {"kind": "Job", "name": "quiet"}, "no-name": {"kind": "Pod"}, "namesake": {"kind": "LatencyTest", "apiVersion": "example.com/v1"},
		} {
			each(map[string]any{"kind": "Event", "metadata": map[string]any{"namespace": "desk-b", "name": name}, "involvedObject": about})
		}
	}
	return nil
}

// options are those of a cluster without OpenShift in which Deployments may not be read, with two nodes that have agents.
func options() Options {
	return Options{
		Namespace: "operator", AgentNamespace: "agents", Nodes: []string{"w1", "w2"}, Program: "this test", Time: time.Unix(0, 0), Progress: func(string) {},
		List: func(_ context.Context, path, _ string, each func(map[string]any)) error {
			switch {
			case strings.Contains(path, "openshift"):
				return apierrors.NewNotFound(schema.GroupResource{}, "")
			case strings.HasSuffix(path, "deployments"):
				return errors.New("you may not")
			case strings.HasSuffix(path, "latencytests"):
				for _, namespace := range []string{"desk-a", "desk-b"} {
					each(map[string]any{
						"kind": "LatencyTest", "metadata": map[string]any{"namespace": namespace, "name": "quiet"},
						"spec":   map[string]any{"nodes": map[string]any{"names": []any{"w1", "lonely"}}},
						"status": map[string]any{"results": []any{map[string]any{"node": "w3", "message": "w3 was slow", "job": "quiet-old"}}},
					})
				}
			case strings.HasSuffix(path, "/jobs"), strings.HasSuffix(path, "/events"):
				return listOfTests(path, each)
			case strings.HasSuffix(path, "lowlatencynodes"):
				for _, name := range []string{"w1", "w2"} {
					each(map[string]any{"kind": "LowLatencyNode", "metadata": map[string]any{"name": name, "managedFields": []any{}}})
				}
			}
			return nil
		},
		Report: func(_ context.Context, node string) ([]byte, error) {
			if node == "w2" {
				return nil, errors.New("the agent of w2 is away")
			}
			return []byte(`{"node": "w1", "containers": [{"namespace": "alpha", "pod": "engine-0", "container": "match"}]}`), nil
		},
		Snapshot: func(_ context.Context, node string) ([]byte, error) {
			if node == "w2" {
				return nil, ErrSnapshotMissing
			}
			return []byte("w1 as it was packed"), nil
		},
		Redacted: true,
	}
}

func TestWrite(t *testing.T) {
	got := memory{}
	sum, err := Write(t.Context(), options(), got)
	if err != nil {
		t.Fatal(err)
	}
	problems := []string{
		"machineconfigs: the cluster has no such kind", "kubeletconfigs: the cluster has no such kind", "machineconfigpools: the cluster has no such kind",
		"tuneds: the cluster has no such kind", "operator/deployments: you may not", "latencytest-events/namespace-002: you may not read namespace-002",
		"node node-003: the full report of its agent: the agent of node-003 is away", "node node-003: the snapshot of its host: the agent of this version offers no snapshots",
	}
	if diff := cmp.Diff(problems, sum.Problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	readme := got[Folder+"/README.txt"]
	if !strings.Contains(readme, "- operator/deployments: you may not\n") || !strings.Contains(readme, "made 1970-01-01T00:00:00Z by this test") {
		t.Errorf("README.txt:\n%s", readme)
	}
	delete(got, Folder+"/README.txt")
	test := func(namespace string) string {
		return "kind: LatencyTest\nmetadata:\n  name: quiet\n  namespace: " + namespace + "\nspec:\n  nodes:\n    names:\n    - node-002\n    - node-001\n" +
			"status:\n  results:\n  - job: quiet-old\n    message: node-004 was slow\n    node: node-004\n"
	}
	event := func(name, about string) string {
		return "involvedObject:\n" + about + "kind: Event\nmetadata:\n  name: " + name + "\n  namespace: namespace-003\n"
	}
	const events = Folder + "/objects/latencytest-events/namespace-003/"
	want := memory{
		Folder + "/objects/latencytests/namespace-002/quiet.yaml":         test("namespace-002"),
		Folder + "/objects/latencytests/namespace-003/quiet.yaml":         test("namespace-003"),
		Folder + "/objects/latencytest-jobs/namespace-003/quiet-new.yaml": "kind: Job\nmetadata:\n  name: quiet-new\n  namespace: namespace-003\n",
		events + "test.yaml": event("test", "  apiVersion: lowlatency.dev/v1alpha1\n  kind: LatencyTest\n  name: quiet\n"),
		events + "job.yaml":  event("job", "  kind: Job\n  name: quiet-new\n"),
		events + "pod.yaml":  event("pod", "  kind: Pod\n  name: quiet-old-x1y2z\n"),
		Folder + "/objects/lowlatencynodes/node-002.yaml": "kind: LowLatencyNode\nmetadata:\n  name: node-002\n",
		Folder + "/objects/lowlatencynodes/node-003.yaml": "kind: LowLatencyNode\nmetadata:\n  name: node-003\n",
		Folder + "/nodes/node-002/report.json":            `{"node": "node-002", "containers": [{"namespace": "namespace-001", "pod": "pod-001", "container": "container-001"}]}`,
		Folder + "/nodes/node-002/snapshot.tar.gz":        "w1 as it was packed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if sum.Files != 11 || sum.Objects["lowlatencynodes"] != 2 {
		t.Errorf("the sum is %+v", sum)
	}
}

func TestNothingCanBeRead(t *testing.T) {
	away := options()
	away.List = func(context.Context, string, string, func(map[string]any)) error {
		return errors.New("connection refused")
	}
	got := memory{}
	if _, err := Write(t.Context(), away, got); err == nil || !strings.Contains(err.Error(), "nothing of the cluster can be read: connection refused") || len(got) > 0 {
		t.Errorf("%v, %v", err, got)
	}
}

// TestDirectory holds that nothing is written but below a folder that is made for it.
func TestDirectory(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(folder, Folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := NewDirectory(folder); err == nil || !strings.Contains(err.Error(), "is there already") {
		t.Errorf("a link in the place of the folder: %v", err)
	}
	if _, err := NewDirectory(filepath.Join(folder, "nowhere")); err == nil {
		t.Error("a folder that is not there is no error")
	}
	made, err := NewDirectory(elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{Folder + "/a/b": true, "../c": false, "/d": false} {
		if err := made.Add(name, []byte("x")); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := made.Add(Folder+"/a/b", nil); err == nil {
		t.Error("a file was replaced")
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
}
