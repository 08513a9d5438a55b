// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// offered are the words that a shell is told for an unfinished command line, without their descriptions.
func offered(t *testing.T, in string, args ...string) []string {
	t.Helper()
	got := run(t, in, append([]string{"__complete"}, args...)...)
	var words []string
	for line := range strings.Lines(got.out) {
		word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if !strings.HasPrefix(word, ":") {
			words = append(words, word)
		}
	}
	return words
}

func TestCompletion(t *testing.T) {
	objects := write(t, "objects.yaml", profileText+`---
apiVersion: lowlatency.dev/v1alpha1
kind: LowLatencyNode
metadata: {name: epyc-1}
spec: {profile: trading}
---
apiVersion: lowlatency.dev/v1alpha1
kind: LowLatencyNode
metadata: {name: xeon-1}
spec: {profile: trading}
---
`+poolText)
	cases := map[string]struct {
		args, want []string
	}{
		"commands":         {[]string{"ch"}, []string{"check"}},
		"formats":          {[]string{"node", "-o", ""}, []string{"text", "json", "yaml", "html", "svg"}},
		"thresholds":       {[]string{"check", "--fail-on", "C"}, []string{"Critical"}},
		"colours":          {[]string{"plan", "--color", ""}, []string{"auto", "always", "never"}},
		"a probe's format": {[]string{"probe", "jitter", "-o", "s"}, []string{"svg"}},
		"a busy CPU":       {[]string{"probe", "jitter", "--on-busy", ""}, []string{"refuse", "measure"}},
		"kinds of files":   {[]string{"plan", "-f", ""}, []string{"yaml", "yml", "json"}},
		"checks":           {[]string{"explain", "cpu.nohz"}, []string{"cpu.nohz-full"}},
		"nodes of files":   {[]string{"node", "-f", objects, ""}, []string{"epyc-1", "xeon-1"}},
		"one node only":    {[]string{"node", "-f", objects, "epyc-1", ""}, nil},
		"pools of files":   {[]string{"pool", "-f", objects, ""}, []string{"x2"}},
		"profiles":         {[]string{"plan", "-f", objects, "--profile", ""}, []string{"trading"}},
		"profiles of none": {[]string{"plan", "--profile", ""}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, offered(t, "", tc.args...)); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompletionFromTheCluster asks an API server for names, with the flags of the line that is being typed.
func TestCompletionFromTheCluster(t *testing.T) {
	var pool v1alpha1.BypassNICPool
	if err := yaml.UnmarshalStrict([]byte(poolText), &pool); err != nil {
		t.Fatal(err)
	}
	other := *pool.DeepCopy()
	other.Name = "e810"
	config := cluster(t, []v1alpha1.BypassNICPool{pool, other}, []v1alpha1.LowLatencyNode{reported("xeon-2", nil), reported("xeon-1", nil), reported("epyc-1", nil)},
		func(mux *http.ServeMux) {
			mux.HandleFunc("GET /apis/lowlatency.dev/v1alpha1/lowlatencynodeprofiles", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"kind": "LowLatencyNodeProfileList", "apiVersion": "lowlatency.dev/v1alpha1", "metadata": {}, "items": [{"metadata": {"name": "trading"}}]}`)
			})
		})
	away := kubeconfig(t, "http://127.0.0.1:1")
	cases := map[string]struct {
		args, want []string
	}{
		"nodes":                    {[]string{"node", "--kubeconfig", config, ""}, []string{"epyc-1", "xeon-1", "xeon-2"}},
		"nodes that begin so":      {[]string{"node", "--kubeconfig", config, "x"}, []string{"xeon-1", "xeon-2"}},
		"pools":                    {[]string{"pool", "--kubeconfig", config, ""}, []string{"e810", "x2"}},
		"a node of a report":       {[]string{"report", "--kubeconfig", config, "--node", "e"}, []string{"epyc-1"}},
		"another node of a report": {[]string{"report", "--kubeconfig", config, "--node", "epyc-1", "--node", "xeon"}, []string{"xeon-1", "xeon-2"}},
		"the profile of a test":    {[]string{"test", "run", "quiet", "--kubeconfig", config, "--profile", ""}, []string{"trading"}},
		"the pool of a test":       {[]string{"test", "run", "quiet", "--kubeconfig", config, "--pool", "x"}, []string{"x2"}},
		"a node of a test":         {[]string{"test", "run", "quiet", "--kubeconfig", config, "--nodes", "e"}, []string{"epyc-1"}},
		"a second node of a test":  {[]string{"test", "run", "quiet", "--kubeconfig", config, "--nodes", "xeon-2,x"}, []string{"xeon-2,xeon-1"}},
		"a cluster that is away":   {[]string{"node", "--kubeconfig", away, ""}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, offered(t, "", tc.args...)); diff != "" {
				t.Errorf("offered (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFolders reads what kubectl would of a folder, and says what was passed over.
func TestFolders(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"profile.yaml": profileText, "pool.yml": poolText, "README.md": "# none",
		"kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [profile.yaml]\n",
		"pods.json":          `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	host := tree(t, small("epyc"))
	got := run(t, "", "plan", "-f", folder, "--root", host)
	if want := run(t, "", "plan", "-f", filepath.Join(folder, "profile.yaml"), "-f", filepath.Join(folder, "pool.yml"), "--root", host); got.out != want.out || got.code != want.code {
		t.Errorf("from the folder:\n%s\nfrom its files:\n%s", got.out, want.out)
	}
	if want := "passed over: 1 of kind Kustomization\npassed over: 2 of kind Pod\n"; got.err != want {
		t.Errorf("standard error %q, want %q", got.err, want)
	}

	mistyped := strings.Replace(poolText, "BypassNICPool", "BypassNICPol", 1)
	if err := os.WriteFile(filepath.Join(folder, "pool.yml"), []byte(mistyped), 0o644); err != nil {
		t.Fatal(err)
	}
	got = run(t, "", "plan", "-f", folder, "--root", host)
	if got.code != ExitUsage || !strings.Contains(got.err, "did you mean BypassNICPool?") {
		t.Errorf("exit code %d: %s, want a complaint about the kind", got.code, got.err)
	}
}

// TestObjectsOfOthers passes over them in files that are named and on the standard input, as in folders.
func TestObjectsOfOthers(t *testing.T) {
	const pods = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: c}\n"
	const passed = "passed over: 1 of kind Deployment\npassed over: 2 of kind Pod\n"
	host := tree(t, small("epyc"))
	alone := run(t, profileText, "plan", "-f", "-", "--root", host)
	for name, tc := range map[string]struct {
		in   string
		args []string
	}{
		"standard input": {profileText + pods, []string{"-f", "-"}},
		"a file":         {"", []string{"-f", write(t, "all.yaml", profileText+pods)}},
		"before":         {"", []string{"-f", write(t, "before.yaml", strings.TrimPrefix(pods, "---\n")+"---\n"+profileText)}},
		"two files":      {pods, []string{"-f", "-", "-f", write(t, "profile.yaml", profileText)}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, tc.in, append([]string{"plan", "--root", host}, tc.args...)...)
			if got.out != alone.out || got.code != alone.code || got.err != alone.err+passed {
				t.Errorf("exit code %d, standard error %q, want %d, %q; the plan is the same: %t", got.code, got.err, alone.code, alone.err+passed, got.out == alone.out)
			}
		})
	}
	for command, want := range map[string]string{
		"plan": "the files hold no LowLatencyNodeProfile", "pool": "the files hold no BypassNICPool", "node": "the files hold no LowLatencyNodeProfile",
	} {
		if got := run(t, pods, command, "-f", "-"); got.code != ExitUsage || got.err != passed+"error: "+want+"\n" {
			t.Errorf("%s with objects of others alone: exit code %d, %q", command, got.code, got.err)
		}
	}
}
