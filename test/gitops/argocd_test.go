// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build argocd

package gitops

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"
)

//nolint:gochecknoglobals // That is how flags of tests are made.
var programFlag = flag.String("argocd", "argocd", "the program of Argo CD")

// TestArgoCDItself: the program of Argo CD comes to the same verdict and message about every recorded state, by argocd-cm.yaml as it is shipped.
func TestArgoCDItself(t *testing.T) {
	answer := regexp.MustCompile(`(?s)STATUS: (\S*)\nMESSAGE: (.*?)\n?$`)
	for _, kind := range kinds() {
		states := recorded(t, kind)
		if len(states) == 0 {
			t.Errorf("no state of %s is recorded", kind)
		}
		for name, conditions := range states {
			object := object(kind, conditions)
			want, wantMessage := health(t, kind, object)
			content, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "object.yaml")
			if err := os.WriteFile(file, content, 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), *programFlag, "admin", "settings", "resource-overrides", "health", file,
				"--argocd-cm-path", filepath.Join(checks, "argocd-cm.yaml")).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %s: %v\n%s", kind, name, err, out)
			}
			if got := answer.FindStringSubmatch(string(out)); len(got) != 3 || got[1] != want || got[2] != wantMessage {
				t.Errorf("%s: %s: Argo CD says\n%s\nwant %s (%s)", kind, name, out, want, wantMessage)
			}
		}
		t.Logf("%s: %d states", kind, len(states))
	}
}
