// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAcceptanceSaysWhatIsLeftOut: a proof that has passed without a part of it is not shown as one that has passed, and one that fails is told.
func TestAcceptanceSaysWhatIsLeftOut(t *testing.T) {
	// The words are those of the Makefile.
	words := regexp.MustCompile(`docs-test: left out: [^\\]+`).FindString(read(t, "Makefile"))
	if words == "" {
		t.Fatal("the Makefile does not say what docs-test leaves out")
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"hack/acceptance.sh": read(t, "hack/acceptance.sh"),
		"hack/packages.sh":   "#!/bin/sh\n",
		"bin/make": `#!/bin/sh
case $2 in
docs-test) echo "compiling"; echo "` + words + `" >&2 ;;
faults) exit 1 ;;
esac
`,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := exec.CommandContext(t.Context(), filepath.Join(dir, "hack/acceptance.sh"), "docs-test", "faults", "bench")
	script.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := script.Output()
	if code := script.ProcessState.ExitCode(); code != 1 {
		t.Errorf("exit code %d (%v), but a proof has failed", code, err)
	}
	table := regexp.MustCompile(`(?m) +`).ReplaceAllString(string(out), " ")
	for _, want := range []string{
		"TARGET RESULT SECONDS PROOF\n", "docs-test passed, without the worked example ", "\nfaults FAILED ", "\nbench passed ",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}
