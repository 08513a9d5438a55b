// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/samples"
)

// objectsOf are the objects of a YAML text by kind, namespace and name.
func objectsOf(t *testing.T, where, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	for part := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(part), &object.Object); err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		if all[name(object)] != nil {
			t.Errorf("%s has two of %s", where, name(object))
		}
		all[name(object)] = object.Object
	}
	return all
}

func name(object *unstructured.Unstructured) string {
	return strings.Join([]string{object.GetKind(), object.GetNamespace(), object.GetName()}, " ")
}

// inFiles are the objects of those files that are wanted.
func inFiles(t *testing.T, files []string, wanted func(file string) bool) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, file := range files {
		if !wanted(file) {
			continue
		}
		maps.Copy(all, objectsOf(t, file, read(t, strings.TrimPrefix(filepath.ToSlash(file), repository+"/"))))
	}
	return all
}

func sampleFiles(t *testing.T, folder string) []string {
	t.Helper()
	files, err := samples.Files(folder)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func sampleJobs(t *testing.T) []string {
	t.Helper()
	jobs, err := samples.Jobs(repository)
	if err != nil {
		t.Fatal(err)
	}
	return jobs
}

// TestGuidesShowTheSamples: what a guide shows is what is in the folder of its job, field by field, and nothing in the folder is left out. What a
// folder in it holds, for other NICs, the guide shows or links.
func TestGuidesShowTheSamples(t *testing.T) {
	withoutGuide := map[string]string{"performance-profile": "kubectl lowlatency import makes such a profile of what somebody has"}
	guides, err := filepath.Glob(filepath.Join(repository, "docs/guides/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	unseen := map[string]bool{}
	for _, guide := range guides {
		unseen[strings.TrimSuffix(filepath.Base(guide), ".md")] = true
	}
	for _, folder := range sampleJobs(t) {
		job := filepath.Base(folder)
		if _, excused := withoutGuide[job]; excused {
			continue
		}
		if !unseen[job] {
			t.Errorf("config/samples/%s has no guide docs/guides/%s.md", job, job)
			continue
		}
		delete(unseen, job)
		compareWithGuide(t, folder, "docs/guides/"+job+".md")
	}
	for job := range unseen {
		t.Errorf("docs/guides/%s.md has no folder config/samples/%s", job, job)
	}
}

func compareWithGuide(t *testing.T, folder, guide string) {
	t.Helper()
	text, shown := read(t, guide), map[string]any{}
	for _, b := range blocksOf(t, guide, text) {
		if b.language == "yaml" {
			maps.Copy(shown, objectsOf(t, guide, strings.Join(b.lines, "\n")))
		}
	}
	files := sampleFiles(t, folder)
	want := inFiles(t, files, func(file string) bool { return filepath.Dir(file) == filepath.Clean(folder) })
	for _, file := range files {
		variant := filepath.Dir(file)
		if variant == filepath.Clean(folder) {
			continue
		}
		if link := strings.TrimPrefix(filepath.ToSlash(variant), repository+"/"); !strings.Contains(text, "](../../"+link+")") {
			t.Errorf("%s has no link to %s", guide, link)
		}
		for name, object := range inFiles(t, []string{file}, func(string) bool { return true }) {
			if shown[name] != nil {
				want[name] = object
			}
		}
	}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("%s shows other objects than %s (-sample +guide):\n%s", guide, folder, diff)
	}
}

// isOfPods reports whether a sample is for pods, which are applied after their RuntimeClass is there.
func isOfPods(file string) bool {
	return strings.HasPrefix(filepath.Base(file), "pod")
}

// TestKustomizationsOfSamples: what kustomize makes of a folder are all objects in it but the pods with their claims, and of config/samples all of them.
func TestKustomizationsOfSamples(t *testing.T) {
	root := filepath.Join(repository, "config/samples")
	files := sampleFiles(t, root)
	folders := map[string]bool{}
	for _, file := range files {
		folders[filepath.Dir(file)] = true
	}
	// Its kind belongs to the node readiness controller, which few clusters have.
	delete(folders, filepath.Join(root, "readiness"))
	for folder := range folders {
		built, err := kustomization.Build(folder)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]any{}
		for _, object := range built {
			text, err := yaml.Marshal(object.Object)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(got, objectsOf(t, folder, string(text)))
		}
		want := inFiles(t, files, func(file string) bool {
			return !isOfPods(file) && (filepath.Dir(file) == folder || folder == filepath.Clean(root) && folders[filepath.Dir(file)])
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-files +built):\n%s", folder, diff)
		}
	}
}

// TestSamplesPlan: the folder of each job has a plan on a server, whose 80 CPUs are those that performance-profile names, and so has each folder
// in it with the profile of the job, and the LatencyTests for any node with that of trading.
func TestSamplesPlan(t *testing.T) {
	const cores = 20
	machine := hosttree.Xeon()
	machine.CoresPerNUMANode, machine.CoresPerL3 = cores, cores
	host := t.TempDir()
	if err := machine.Write(host); err != nil {
		t.Fatal(err)
	}
	plans := 0
	plan := func(files ...string) {
		t.Helper()
		plans++
		args := slices.Concat([]string{"plan", "--root", "worker-1=" + host, "-o", "jsonpath={[*].planHash}", "-f"},
			strings.Split(strings.Join(files, "\x00-f\x00"), "\x00"))
		var out, said strings.Builder
		code := cli.Run(t.Context(), "", args, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &said})
		if code != cli.ExitOK || out.Len() == 0 {
			t.Errorf("plan %v: exit code %d, hash %q\n%s", files, code, out.String(), said.String())
		}
	}
	for _, folder := range sampleJobs(t) {
		plan(folder)
		variants, err := filepath.Glob(filepath.Join(folder, "*", "kustomization.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, variant := range variants {
			plan(filepath.Join(folder, "profile.yaml"), filepath.Dir(variant))
		}
	}
	root := filepath.Join(repository, "config/samples")
	plan(filepath.Join(root, "tick-to-trade"), filepath.Join(root, "qualification"))
	plan(filepath.Join(root, "minimal.yaml"))
	const few = 12
	if plans < few {
		t.Errorf("made %d plans only", plans)
	}
}
