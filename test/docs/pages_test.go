// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
)

// TestYAMLSaysWhatItIs leaves no block of YAML out of the test that applies whole objects to an API server (describeDocuments in
// api/v1alpha1), but for these.
func TestYAMLSaysWhatItIs(t *testing.T) {
	whole := regexp.MustCompile(`(?m)^kind: \w+$`)
	excused := map[string]string{
		"docs/pipelines.md:name: low latency plan": "a workflow of GitHub",
		"docs/pipelines.md:low latency plan:":      "a pipeline of GitLab",
		"docs/dangerous-settings.md:spec:":         "a part of a profile, whose fields the tests of the plan set",
		"docs/guard.md:operations:":                "a file of lowlatency-guard, whose tests read it",
	}
	for _, b := range allBlocks(t) {
		if b.language != "yaml" || whole.MatchString(strings.Join(b.lines, "\n")) {
			continue
		}
		name := b.file + ":" + b.lines[0]
		if _, found := excused[name]; !found {
			t.Errorf("%s:%d: the block is no whole object, so nothing tests it", b.file, b.line)
		}
		delete(excused, name)
	}
	for name := range excused {
		t.Errorf("%s is not there any more", name)
	}
}

// TestPicturesHaveATarget wants each picture made by the target pictures, from the code or from what was recorded,
// which the tests of hack/pictures and test/scale hold against the pictures; a picture with a recording names the target that makes it.
func TestPicturesHaveATarget(t *testing.T) {
	made := map[string]string{
		"node.svg": "pictures", "dataflow.svg": "pictures", "demo.svg": "demo-picture", "jitter.svg": "jitter-picture", "jitter-pair.svg": "jitter-pair",
		"dashboard.png":                     "dashboard-picture",
		"latency-container-versus-host.svg": "latency-pictures", "latency-load-search.svg": "latency-pictures", "latency-ping-pong.svg": "latency-pictures",
		"latency-rate-sweep.svg": "latency-pictures", "latency-frames-beside-kernel.svg": "latency-pictures",
		"scale-change.svg": "scale", "scale-first.svg": "scale", "scale-memory.svg": "scale", "scale-time.svg": "scale",
	}
	files, err := filepath.Glob(filepath.Join(repository, "docs/images/*"))
	if err != nil {
		t.Fatal(err)
	}
	targets := read(t, "Makefile")
	var pages strings.Builder
	for _, file := range documents(t) {
		pages.WriteString(read(t, file))
	}
	for _, file := range files {
		name := filepath.Base(file)
		if target, found := made[name]; !found || !strings.Contains(targets, "\n"+target+":") {
			t.Errorf("no target makes docs/images/%s (%q)", name, target)
		}
		if !strings.Contains(pages.String(), "images/"+name) {
			t.Errorf("no document shows docs/images/%s", name)
		}
	}
}

// TestTheDashboardsPictureIsUpToDate compares what the picture of the dashboard was drawn from with what is there now.
func TestTheDashboardsPictureIsUpToDate(t *testing.T) {
	drawn := strings.Fields(read(t, "hack/dashboard/drawn.sha256"))
	const pair = 2
	if len(drawn) < 6*pair {
		t.Fatalf("only %d words say what was drawn", len(drawn))
	}
	for line := range slices.Chunk(drawn, pair) {
		if sum := sha256.Sum256([]byte(read(t, line[1]))); hex.EncodeToString(sum[:]) != line[0] {
			t.Errorf("docs/images/dashboard.png was drawn from another %s: make dashboard-picture", line[1])
		}
	}
}

// TestLinks follows the links between documents, with their anchors.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, file := range documents(t) {
		for _, match := range link.FindAllStringSubmatch(withoutBlocks(t, file), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			target, anchor, _ := strings.Cut(match[1], "#")
			to := file
			if target != "" {
				to = path.Join(path.Dir(file), target)
			}
			if _, err := os.Stat(filepath.Join(repository, to)); err != nil {
				t.Errorf("%s: nothing is at %s", file, match[1])
			} else if anchor != "" && !anchors(t, to)[anchor] {
				t.Errorf("%s: %s has no heading #%s", file, to, anchor)
			}
		}
	}
}

// withoutBlocks is a document without its fenced blocks.
func withoutBlocks(t *testing.T, file string) string {
	t.Helper()
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(read(t, file), "")
}

// anchors are those of a document's headings, as GitHub makes them.
func anchors(t *testing.T, file string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutBlocks(t, file), -1) {
		text := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(heading[1], "$1")
		text = regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(strings.ToLower(text), "")
		names[strings.ReplaceAll(text, " ", "-")] = true
	}
	for _, anchor := range regexp.MustCompile(`<a (?:id|name)="([^"]+)">`).FindAllStringSubmatch(read(t, file), -1) {
		names[anchor[1]] = true
	}
	return names
}

// TestTheThreatModelNamesTests finds every test that the threat model names: those of Go by their names, those of Ginkgo by their sentences.
func TestTheThreatModelNamesTests(t *testing.T) {
	text := strings.Join(strings.Fields(read(t, "docs/threat-model.md")), " ")
	functions := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(text, -1)
	var sentences []string
	for _, list := range regexp.MustCompile("`It` (\"[^\"]*\"(?:, \"[^\"]*\")*)").FindAllStringSubmatch(text, -1) {
		for _, quoted := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(list[1], -1) {
			sentences = append(sentences, quoted[1])
		}
	}
	const few = 10
	if len(functions) < few || len(sentences) < few {
		t.Fatalf("found %d functions and %d sentences only", len(functions), len(sentences))
	}
	tests := testSources(t)
	for _, function := range functions {
		if !strings.Contains(tests, "func "+function[1]+"(") {
			t.Errorf("there is no test %s", function[1])
		}
	}
	for _, sentence := range sentences {
		if !strings.Contains(tests, `It("`+sentence+`"`) {
			t.Errorf("no test says that it %s", sentence)
		}
	}
}

// testSources is the text of all tests of Go outside of this package.
func testSources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range []string{"config", "internal", "test/confinement", "test/traffic", "hack"} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(file string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(file, "_test.go") {
				content, err := os.ReadFile(file)
				all.Write(content)
				return err
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// TestTargetsLookForTheirPrograms holds the table of hack/packages.sh against the Makefile: each target in it looks for its programs before
// anything else is made for it, and no other does.
func TestTargetsLookForTheirPrograms(t *testing.T) {
	needs := map[string]bool{}
	for _, row := range programs(t) {
		for target := range row.targets {
			needs[target] = true
		}
	}
	for _, rule := range regexp.MustCompile(`(?m)^([a-z0-9-]+): programs-([a-z0-9-]+)`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if rule[1] != rule[2] || !needs[rule[1]] {
			t.Errorf("make %s looks for the programs of %s", rule[1], rule[2])
		}
		delete(needs, rule[1])
	}
	for target := range needs {
		t.Errorf("make %s does not look for its programs first", target)
	}
}

// program is a row of the table of hack/packages.sh: a program, or a file by its path.
type program struct {
	name    string
	targets map[string]bool
}

func programs(t *testing.T) []program {
	t.Helper()
	_, table, _ := strings.Cut(read(t, "hack/packages.sh"), "cat <<'EOF'")
	table, _, _ = strings.Cut(table, "EOF")
	rows := regexp.MustCompile(`(?m)^([a-z0-9_./-]+) +[a-z0-9,-]+ +((?:[a-z0-9-]+ ?)+)$`).FindAllStringSubmatch(table, -1)
	all := make([]program, 0, len(rows))
	for _, row := range rows {
		one := program{row[1], map[string]bool{}}
		for target := range strings.FieldsSeq(row[2]) {
			one.targets[target] = true
		}
		all = append(all, one)
	}
	return all
}

// TestScriptsOfLabsUseKnownPrograms wants every program of the table that a script of the lab runs to be in the rows of all targets that
// run the script, and every lab to have such scripts. Programs of packages that every Debian has, such as coreutils, are not in the table.
func TestScriptsOfLabsUseKnownPrograms(t *testing.T) {
	image := []string{"hack/lab/debian.sh", "hack/lab/image/build.sh"}
	scripts := map[string][]string{
		"lab":         append([]string{"hack/lab/kernel/build.sh", "hack/lab/qemu/build.sh", "hack/lab/arm64/record.sh"}, image...),
		"lab-short":   image,
		"lab-image":   image,
		"lab-pools":   append([]string{"hack/lab/qemu/build.sh"}, image...),
		"lab-latency": append([]string{"hack/lab/qemu/build.sh"}, image...),
		"lab-netem":   image,
		"lab-judges":  image,
		"lab-stamps":  append([]string{"hack/lab/qemu/build.sh"}, image...),
		"lab-onload":  append([]string{"hack/lab/onload/build.sh"}, image...),
		"lab-enact":   {"hack/lab/debian.sh", "hack/lab/grub/build.sh"},
		"jitter-pair": {"hack/jitter/pair.sh"},
	}
	for _, target := range regexp.MustCompile(`(?m)^(lab[a-z-]*):`).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if scripts[target[1]] == nil {
			t.Errorf("the test does not know which scripts make %s runs", target[1])
		}
	}
	comment := regexp.MustCompile(`(?m)^\s*#.*$|'[^'\n]*'|\$\(\([^)]*\)\)`)
	for target, files := range scripts {
		for _, file := range files {
			text := comment.ReplaceAllString(read(t, file), "")
			for _, one := range programs(t) {
				runs := regexp.MustCompile(`(?m)(?:^|[|(&;!]|\bthen|\bdo|\bwith|\btimeout \d+|need_tools .*)\s*` + regexp.QuoteMeta(one.name) + `(?:\s|$)`)
				if runs.MatchString(text) && !one.targets[target] {
					t.Errorf("make %s runs %s (%s), but hack/packages.sh does not look for it", target, one.name, file)
				}
			}
		}
	}
}

// TestInstallNamesWhatIsInstalled: docs/install.md names each object of these kinds that the overlay of OpenShift has, and no policy besides.
func TestInstallNamesWhatIsInstalled(t *testing.T) {
	built, err := kustomization.Build(filepath.Join(repository, "config/openshift"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(read(t, "docs/install.md"), "\n## What is installed\n")
	if !found {
		t.Fatal("docs/install.md does not say what is installed")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	told := []string{
		"Deployment", "DaemonSet", "PodTemplate", "NetworkPolicy", "PodDisruptionBudget", "SecurityContextConstraints", "ServiceMonitor", "PrometheusRule", "ValidatingAdmissionPolicy",
	}
	names := map[string]bool{}
	for _, object := range built {
		if !slices.Contains(told, object.GetKind()) {
			continue
		}
		names[object.GetName()] = true
		if !strings.Contains(section, "`"+object.GetName()+"`") {
			t.Errorf("docs/install.md does not name the %s %s", object.GetKind(), object.GetName())
		}
	}
	const few = 15
	for _, name := range regexp.MustCompile("`(lowlatency-operator-[a-z-]+)`").FindAllStringSubmatch(section, -1) {
		if !names[name[1]] && name[1] != "lowlatency-operator-agents" {
			t.Errorf("docs/install.md names %s, which is not installed", name[1])
		}
	}
	if len(names) < few {
		t.Errorf("looked for %d objects only", len(names))
	}
}
