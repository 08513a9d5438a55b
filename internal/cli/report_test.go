// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/supportreport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/transcript"
)

// archived are the files of an archive by name.
func archived(t *testing.T, packed string) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(header.Name, supportreport.Folder+"/")] = string(content)
	}
}

// TestReportWithoutCluster: what would help is a flag of the command.
func TestReportWithoutCluster(t *testing.T) {
	got := run(t, "", "report", "-o", "-", "--kubeconfig", "/does/not/exist")
	want := result{ExitUsage, "", "error: finding the cluster: stat /does/not/exist: no such file or directory; give --kubeconfig\n"}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestReportOfNodes asks agents for reports and snapshots through the API server.
func TestReportOfNodes(t *testing.T) {
	object, _ := reporting(t, "a")
	text, err := json.Marshal(fullReport("p"))
	if err != nil {
		t.Fatal(err)
	}
	address, _ := agentAt(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case nodereport.Path:
			_, _ = w.Write(text)
		case nodereport.SnapshotPath:
			_, _ = io.WriteString(w, "with names")
		case nodereport.RedactedSnapshotPath:
			_, _ = io.WriteString(w, "without names")
		}
	}))
	config := cluster(t, nil, []v1alpha1.LowLatencyNode{object}, agents(t, podOfAgent("serving", "a", address, corev1.ConditionTrue)))
	for _, tc := range []struct {
		name, node, snapshot, report string
		args                         []string
	}{
		{"as they are", "a", "with names", `"pod": "engine-0"`, nil},
		{"redacted", "node-001", "without names", `"pod": "pod-001"`, []string{"--redact"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := run(t, "", append([]string{"report", "-o", "-", "--node", "a", "--kubeconfig", config}, tc.args...)...)
			if got.code != ExitOK {
				t.Fatalf("%+v", got)
			}
			files := archived(t, got.out)
			if files["nodes/"+tc.node+"/snapshot.tar.gz"] != tc.snapshot || !strings.Contains(files["nodes/"+tc.node+"/report.json"], tc.report) {
				t.Errorf("%q", files)
			}
			if want := "missing: machineconfigs: the cluster has no such kind"; !strings.Contains(got.err, want) {
				t.Errorf("%q is missing in:\n%s", want, got.err)
			}
		})
	}
}

func TestAskSnapshot(t *testing.T) {
	cases := map[string]struct {
		code       int
		text, want string
	}{
		"a snapshot":         {http.StatusOK, "packed", ""},
		"nothing":            {http.StatusOK, "", "the snapshot is empty"},
		"an older agent":     {http.StatusNotFound, "not found", supportreport.ErrSnapshotMissing.Error()},
		"another one at it":  {http.StatusTooManyRequests, "try again", "it answers 429 Too Many Requests: try again"},
		"a host that is odd": {http.StatusInternalServerError, "the disk is gone", "it answers 500 Internal Server Error: the disk is gone"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, connect := agentAt(t, answering(tc.code, tc.text))
			got, err := askSnapshot(t.Context(), connect, nodereport.Path)
			if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want || err == nil && string(got) != tc.text {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	var said transcript.Transcript
	p := startProgress(Streams{Err: &said}, time.Millisecond)
	p.say("reading pods")
	for deadline := time.Now().Add(time.Minute); !strings.Contains(said.String(), "reading pods ... 0 s\n"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nothing was said but %q", said.String())
		}
	}
	p.stop()
	p.stop()
	if before := said.String(); said.String() != before {
		t.Error("it goes on")
	}
}
