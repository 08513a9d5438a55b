// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const pipelinesFile = "docs/pipelines.md"

// workflow is what the document uses of GitHub's workflows (docs.github.com, "Workflow syntax for GitHub Actions"): a key that is not here
// is a misspelt one, or one that this test is to be taught.
type workflow struct {
	Name string `json:"name"`
	On   map[string]struct {
		Paths []string `json:"paths"`
	} `json:"on"`
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		RunsOn string         `json:"runs-on"`
		Steps  []workflowStep `json:"steps"`
	} `json:"jobs"`
}

type workflowStep struct {
	Name string            `json:"name"`
	ID   string            `json:"id"`
	If   string            `json:"if"`
	Uses string            `json:"uses"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
	Run  string            `json:"run"`
}

// gitLabJob is what the document uses of GitLab's jobs (docs.gitlab.com, "CI/CD YAML syntax reference").
type gitLabJob struct {
	Image string `json:"image"`
	Rules []struct {
		If      string   `json:"if"`
		Changes []string `json:"changes"`
	} `json:"rules"`
	Variables    map[string]string `json:"variables"`
	Script       []string          `json:"script"`
	AllowFailure struct {
		ExitCodes []int `json:"exit_codes"`
	} `json:"allow_failure"`
	Artifacts struct {
		Paths []string `json:"paths"`
		When  string   `json:"when"`
	} `json:"artifacts"`
}

// pipeline reads the block of the document that begins with a line, strictly.
func pipeline(t *testing.T, begins string, into any) {
	t.Helper()
	for _, b := range blocksOf(t, pipelinesFile, read(t, pipelinesFile)) {
		if b.language == "yaml" && b.lines[0] == begins {
			// YAML 1.1 reads GitHub's key "on" as a truth.
			text := strings.Replace(strings.Join(b.lines, "\n"), "\non:\n", "\n\"on\":\n", 1)
			if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
				t.Fatalf("%s:%d: %v", pipelinesFile, b.line, err)
			}
			return
		}
	}
	t.Fatalf("%s has no block that begins with %q", pipelinesFile, begins)
}

// change is what a pull request does to profiles/trading.yaml, and what the pipeline is to say of it. Without from, the file is deleted.
type change struct {
	from, to string
	// exit is the code of the plan, said a part of its comment.
	exit int
	said string
}

func changes() map[string]change {
	return map[string]change{
		"a change that reboots nodes":  {"preset: MaximumDeterminism", "preset: HighPerformance", 4, "**2 nodes reboot**"},
		"a change that reboots nobody": {"metadata:", "# why\nmetadata:", 0, "2 nodes stay as they are"},
		"other nodes":                  {"node-role.kubernetes.io/trading", "tier", 4, "**Nodes may join or leave and reboot**: nodeSelector of LowLatencyNodeProfile trading"},
		"a profile is deleted":         {"", "", 4, "**2 nodes reboot**"},
		"a typo":                       {"simultaneousMultithreading:", "simultaneousMultithreadng:", 2, ""},
	}
}

// TestPipelineOfGitHub runs the steps of GitHub's workflow as its runner does, in a clone with a change.
func TestPipelineOfGitHub(t *testing.T) {
	var w workflow
	pipeline(t, "name: low latency plan", &w)
	if _, found := w.On["pull_request"]; !found || len(w.Jobs) != 1 || w.Permissions["pull-requests"] != "write" {
		t.Errorf("the workflow has other events, jobs or permissions: %+v", w)
	}
	origin := newOrigin(t)
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) {
			// GitHub checks the branch out as merged into its target.
			r := newRequest(t, origin, "main", c)
			output, summary := filepath.Join(r.tools, "output"), filepath.Join(r.tools, "summary")
			r.env = append(r.env, "GITHUB_BASE_REF=main", "GITHUB_OUTPUT="+output, "GITHUB_STEP_SUMMARY="+summary, "NUMBER=17", "GH_TOKEN=secret")
			failed := r.runGitHub(t, w, output)
			if wanted := c.exit != 0 && c.exit != 4; failed != wanted {
				t.Errorf("the job has failed: %v, want %v\n%s", failed, wanted, r.said)
			}
			r.expect(t, c, []string{"gh pr comment 17 --edit-last --create-if-none --body-file plan.md"}, []string{"gh label create reboots-nodes --force", "gh pr edit 17 --add-label reboots-nodes"})
			if text, err := os.ReadFile(summary); err != nil || !strings.Contains(string(text), c.said) {
				t.Errorf("the summary of the run does not say %q: %s (%v)", c.said, text, err)
			}
		})
	}
}

// runGitHub runs the steps of the job, and reports whether one has failed.
func (r *request) runGitHub(t *testing.T, w workflow, output string) bool {
	t.Helper()
	failed := false
	for _, step := range w.Jobs["plan"].Steps {
		if step.Run == "" || !r.isWanted(t, step.If, output, failed) {
			continue
		}
		// GitHub's runner starts "bash -e FILE" for a step without a shell.
		if code := r.bash(t, "set -e\n"+step.Run); code != 0 {
			failed = true
		}
	}
	return failed
}

// TestPipelineOfGitLab runs the script of GitLab's job as its runner does, in a clone with a change.
func TestPipelineOfGitLab(t *testing.T) {
	jobs := map[string]gitLabJob{}
	pipeline(t, "low latency plan:", &jobs)
	job := jobs["low latency plan"]
	if job.Variables["GIT_DEPTH"] != "0" || !slices.Equal(job.AllowFailure.ExitCodes, []int{4}) || !slices.Equal(job.Artifacts.Paths, []string{"plan.md"}) {
		t.Errorf("the job is another: %+v", job)
	}
	origin := newOrigin(t)
	for name, c := range changes() {
		for kind, prepare := range map[string]string{
			"of the branch":  `export CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git merge-base HEAD origin/main)`,
			"of the results": `export CI_MERGE_REQUEST_DIFF_BASE_SHA=$(git merge-base HEAD origin/main) CI_MERGE_REQUEST_TARGET_BRANCH_SHA=$(git rev-parse origin/main); git merge -q --no-edit origin/main`,
		} {
			t.Run(name+", "+kind, func(t *testing.T) {
				// The target has moved on since the branch began.
				r := newRequest(t, origin, "main~1", c)
				r.env = append(r.env, "CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main", "TOKEN=secret", "CI_API_V4_URL=https://gitlab.example/api/v4", "CI_PROJECT_ID=3",
					"CI_MERGE_REQUEST_IID=17")
				// GitLab's runner joins the lines to one script for bash.
				if code := r.bash(t, "set -eo pipefail\n"+prepare+"\n"+strings.Join(job.Script, "\n")); code != c.exit {
					t.Errorf("exit code %d, want %d\n%s", code, c.exit, r.said)
				}
				r.expect(t, c, []string{"curl --fail --header PRIVATE-TOKEN: secret --form body=<plan.md https://gitlab.example/api/v4/projects/3/merge_requests/17/notes"}, nil)
			})
		}
	}
}

// request is the clone of a repository with objects and snapshots as the document lays them out, in which a branch has a change.
type request struct {
	dir, tools string
	env        []string
	said       string
}

// newOrigin is the repository before any change, in a folder. Its last commit has changed which nodes a pool selects, so that nodes may reboot.
func newOrigin(t *testing.T) string {
	t.Helper()
	w := &world{dir: t.TempDir()}
	for _, name := range []string{"worker-1", "worker-2"} {
		w.untuned(t, "snapshots/"+name+".tar.gz")
	}
	w.write(t, "profiles/trading.yaml", []byte(read(t, "config/samples/tick-to-trade/profile.yaml")), 0o644)
	w.write(t, "profiles/x2.yaml", []byte(read(t, "config/samples/tick-to-trade/pool.yaml")), 0o644)
	r := &request{dir: w.dir, env: gitEnvironment()}
	const moved = "sed -i 's|node-role.kubernetes.io/trading|nic|' profiles/x2.yaml"
	if code := r.bash(t, "git init -q -b main && git add . && git commit -q -m before && "+moved+" && git commit -q -a -m after"); code != 0 {
		t.Fatal(r.said)
	}
	return w.dir
}

func gitEnvironment() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=reader", "GIT_AUTHOR_EMAIL=reader@example.com",
		"GIT_COMMITTER_NAME=reader", "GIT_COMMITTER_EMAIL=reader@example.com", "NO_COLOR=1")
}

// newRequest clones the repository, and changes the profile in a branch that begins at a commit.
func newRequest(t *testing.T, origin, at string, c change) *request {
	t.Helper()
	r := &request{dir: filepath.Join(t.TempDir(), "clone"), tools: t.TempDir()}
	// These are not ours to call: they write down how they were called. GitHub adds no label to a pull request that its repository does not have.
	for name, refuses := range map[string]string{
		"gh":   `[ "$1 $2 $4" != "pr edit --add-label" ] || grep -q "^gh label create $5 --force$" ` + filepath.Join(r.tools, "calls") + ` || { echo "'$5' not found" >&2; exit 1; }`,
		"curl": ":",
	} {
		script := "#!/bin/sh\n" + refuses + "\nprintf '%s\\n' \"" + name + " $*\" >> " + filepath.Join(r.tools, "calls") + "\n"
		if err := os.WriteFile(filepath.Join(r.tools, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go", "kubectl-lowlatency"} {
		if err := os.Symlink(self, filepath.Join(r.tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.env = append(gitEnvironment(), "PATH="+r.tools+string(os.PathListSeparator)+os.Getenv("PATH"))
	clone := &request{dir: origin, env: r.env}
	if code := clone.bash(t, "git clone -q . "+r.dir+" && git -C "+r.dir+" checkout -q -b change "+at); code != 0 {
		t.Fatal(clone.said)
	}
	r.edit(t, c)
	if code := r.bash(t, "git commit -q -a -m change"); code != 0 {
		t.Fatal(r.said)
	}
	return r
}

// edit makes the change in the work tree.
func (r *request) edit(t *testing.T, c change) {
	t.Helper()
	file := filepath.Join(r.dir, "profiles/trading.yaml")
	if c.from == "" {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		return
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	after := strings.Replace(string(before), c.from, c.to, 1)
	if after == string(before) {
		t.Fatalf("the profile has no %q", c.from)
	}
	if err := os.WriteFile(file, []byte(after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// bash runs a script in the clone, and gives its exit code.
func (r *request) bash(t *testing.T, script string) int {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", script)
	command.Dir, command.Env = r.dir, r.env
	out, err := command.CombinedOutput()
	r.said += string(out)
	if command.ProcessState == nil {
		t.Fatal(err)
	}
	return command.ProcessState.ExitCode()
}

// isWanted judges the condition of a step. There are only those that the document has; the pull request is from the repository itself.
func (r *request) isWanted(t *testing.T, condition, output string, failed bool) bool {
	t.Helper()
	const ours = "github.event.pull_request.head.repo.full_name == github.repository"
	text, err := os.ReadFile(output)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	known := map[string]bool{
		"":                    !failed,
		"always() && " + ours: true,
		"steps.plan.outputs.code == '4' && " + ours: !failed && strings.Contains(string(text), "code=4\n"),
	}
	wanted, found := known[condition]
	if !found {
		t.Fatalf("the test does not know the condition %q, but %q", condition, slices.Sorted(maps.Keys(known)))
	}
	return wanted
}

// expect compares what the pipeline has called, and looks at the comment.
func (r *request) expect(t *testing.T, c change, always, rebooting []string) {
	t.Helper()
	want := always
	switch c.exit {
	case 2:
		want = nil
	case 4:
		want = slices.Concat(always, rebooting)
	}
	text, err := os.ReadFile(filepath.Join(r.tools, "calls"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		got = append(got, strings.TrimSuffix(line, "\n"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s\n%s", diff, r.said)
	}
	comment, err := os.ReadFile(filepath.Join(r.dir, "plan.md"))
	if err != nil || !strings.Contains(string(comment), c.said) {
		t.Errorf("the comment does not say %q: %s (%v)", c.said, comment, err)
	}
}
