// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
)

// TestDockerfilesNotices runs what the Dockerfiles do for the licences of third-party modules, with the files that they copy and no others:
// images that an engine builds carry the same text as those of this program.
func TestDockerfilesNotices(t *testing.T) {
	operator, err := recipeOf(operatorImage)
	must(t, err)
	for name, packages := range map[string][]string{
		"Dockerfile":                    operator.packages(),
		"traffic.Dockerfile":            {"./cmd/kubectl-lowlatency"},
		"config/must-gather/Dockerfile": {"./cmd/kubectl-lowlatency"},
	} {
		t.Run(name, func(t *testing.T) {
			root, err := filepath.Abs("../..")
			must(t, err)
			instructions := instructionsOf(t, filepath.Join(root, name))
			step := slices.IndexFunc(instructions, func(one []string) bool { return one[0] == "RUN" && slices.Contains(one, "./thirdparty") })
			if step < 0 || !carriesNotices(instructions) {
				t.Fatalf("%s does not write /licenses/THIRD-PARTY", name)
			}
			workspace := t.TempDir()
			for _, one := range instructions[:step] {
				if one[0] == "COPY" {
					copyAll(t, root, workspace, one[1:])
				}
			}
			on := "linux/" + runtime.GOARCH
			command := exec.Command("sh", "-c", strings.ReplaceAll(strings.Join(instructions[step][1:], " "), "/workspace", workspace))
			command.Dir = workspace
			command.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH="+runtime.GOARCH, "GOFLAGS=")
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", command, err, text)
			}
			got, err := os.ReadFile(filepath.Join(workspace, "THIRD-PARTY"))
			must(t, err)
			modules, err := licences.Of(t.Context(), root, []string{on}, packages...)
			must(t, err)
			if want := licences.Texts(modules); !bytes.Equal(got, want) || len(modules) < 10 {
				t.Errorf("%s writes %d bytes, make image %d for %d modules", name, len(got), len(want), len(modules))
			}
		})
	}
}

// TestDockerfileOfTraffic runs what traffic.Dockerfile does for the C program and its library, and compares what the last stage is made of
// with the image of this program: file by file, with their contents where both are built here, and how a container of it begins.
func TestDockerfileOfTraffic(t *testing.T) {
	s := newTrafficSource(t)
	debianLibrary(t, s)
	shipped := t.TempDir()
	_, want, _ := buildTraffic(t, s, shipped)
	stages := stagesOf(instructionsOf(t, "../../traffic.Dockerfile"))
	expectLibrary(t, stages["traffic"])
	workspace := runStage(t, stages["traffic"])
	last, built := stages[""], t.TempDir()
	assemble(t, last, workspace, built)
	got := modesBelow(t, built)
	if diff := cmp.Diff(slices.Sorted(slices.Values(want)), got); diff != "" {
		t.Errorf("files (-make traffic-image +traffic.Dockerfile):\n%s", diff)
	}
	// The repository that is shipped here has a stand-in for the command line, and another licence; for the notices, see TestDockerfilesNotices.
	compareContents(t, shipped, built, "kubectl-lowlatency", "licenses/THIRD-PARTY", "licenses/LICENSE")
	recipe, err := recipeOf(trafficImage)
	must(t, err)
	expectConfiguration(t, last, recipe, s)
}

// expectLibrary compares version and sums of the library for all architectures.
func expectLibrary(t *testing.T, stage [][]string) {
	t.Helper()
	architectures := []string{"amd64", "arm64"}
	want := append(make([][]string, 0, 1+len(architectures)), []string{"ARG", "LIBRARY_VERSION=" + libraryVersion})
	for _, architecture := range architectures {
		on, err := targetOf(architecture)
		must(t, err)
		want = append(want, []string{"ARG", "LIBRARY_SHA256_" + strings.ToUpper(architecture) + "=" + on.librarySum})
	}
	got := slices.DeleteFunc(slices.Clone(stage), func(one []string) bool { return !strings.HasPrefix(one[1], "LIBRARY_") })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the library (-hack/image +traffic.Dockerfile):\n%s", diff)
	}
}

// stagesOf are the instructions of each stage of a Dockerfile by its name; "" is the last one's.
func stagesOf(instructions [][]string) map[string][][]string {
	stages, name := map[string][][]string{}, "arguments"
	for _, one := range instructions {
		if one[0] == "FROM" {
			if name = one[len(one)-1]; !slices.Contains(one, "AS") {
				name = ""
			}
		}
		stages[name] = append(stages[name], one)
	}
	return stages
}

// runStage does what a stage says in a folder, for this machine's architecture, but for installing packages.
func runStage(t *testing.T, stage [][]string) (workspace string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	workspace = t.TempDir()
	environment := append(os.Environ(), "TARGETARCH="+runtime.GOARCH)
	for _, one := range stage {
		words := strings.Join(one[1:], " ")
		switch {
		case one[0] == "ARG" && strings.Contains(words, "="):
			environment = append(environment, words)
		case one[0] == "COPY":
			copyAll(t, root, workspace, one[1:])
		case one[0] == "RUN" && !strings.HasPrefix(words, "apt-get "):
			command := exec.CommandContext(t.Context(), "sh", "-c", words)
			command.Dir, command.Env = workspace, environment
			if text, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", words, err, text)
			}
		}
	}
	return workspace
}

// assemble does what the last stage says in a folder. What another stage but that of the C program has made is an empty file.
func assemble(t *testing.T, last [][]string, traffic, into string) {
	t.Helper()
	for _, one := range last {
		switch {
		case one[0] != "COPY":
		case one[1] == "--from=traffic":
			tree := filepath.Join(traffic, strings.TrimPrefix(one[2], "/workspace/"))
			text, err := exec.CommandContext(t.Context(), "cp", "--recursive", "--no-dereference", "--preserve=mode", tree+"/.", into+one[3]).CombinedOutput()
			if err != nil {
				t.Fatalf("copying %s: %v: %s", tree, err, text)
			}
		case one[1] == "--from=builder":
			mode := os.FileMode(0o755)
			if strings.HasPrefix(one[3], "/licenses/") {
				mode = 0o644
			}
			must(t, os.MkdirAll(filepath.Dir(into+one[3]), 0o755))
			must(t, os.WriteFile(into+one[3], nil, mode))
		default:
			content, err := os.ReadFile(filepath.Join("../..", one[1]))
			must(t, err)
			must(t, os.MkdirAll(filepath.Dir(into+one[2]), 0o755))
			must(t, os.WriteFile(into+one[2], content, 0o644))
		}
	}
}

// modesBelow are files, links and folders below a folder with their modes, as buildTraffic lists them.
func modesBelow(t *testing.T, folder string) []string {
	t.Helper()
	var all []string
	must(t, filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		all = append(all, info.Mode().String()+" "+name)
		return err
	}))
	slices.Sort(all)
	return all
}

// compareContents compares the regular files of two folders, but for some.
func compareContents(t *testing.T, want, got string, but ...string) {
	t.Helper()
	compared := 0
	must(t, filepath.WalkDir(want, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(want, path)
		if err != nil || slices.Contains(but, name) {
			return err
		}
		wanted, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := os.ReadFile(filepath.Join(got, name))
		if compared++; err != nil || !bytes.Equal(wanted, found) {
			t.Errorf("%s has other contents: %d bytes, want %d (%v)", name, len(found), len(wanted), err)
		}
		return nil
	}))
	if compared < 4 {
		t.Errorf("compared %d files only", compared)
	}
}

// expectConfiguration compares what begins in a container, as whom, and what registries show.
func expectConfiguration(t *testing.T, last [][]string, r recipe, s source) {
	t.Helper()
	text := map[string]string{}
	for _, one := range last {
		text[one[0]] = strings.Join(one[1:], " ")
	}
	if text["USER"] != nobody || text["ENTRYPOINT"] != `["/`+r.programs[0]+`"]` {
		t.Errorf("user %s, entry point %s", text["USER"], text["ENTRYPOINT"])
	}
	labels := r.labels(s)
	for _, name := range []string{"name", "vendor", "summary", "description", "org.opencontainers.image.licenses"} {
		if !strings.Contains(text["LABEL"], name+`="`+labels[name]+`"`) {
			t.Errorf("label %s is not %q: %s", name, labels[name], text["LABEL"])
		}
	}
}

// carriesNotices reports whether the last stage takes the text over.
func carriesNotices(instructions [][]string) bool {
	return slices.ContainsFunc(instructions, func(one []string) bool {
		return slices.Equal(one, []string{"COPY", "--from=builder", "/workspace/THIRD-PARTY", "/licenses/THIRD-PARTY"})
	})
}

// instructionsOf are the instructions of a Dockerfile, split into words.
func instructionsOf(t *testing.T, path string) [][]string {
	t.Helper()
	content, err := os.ReadFile(path)
	must(t, err)
	var instructions [][]string
	for line := range strings.Lines(strings.ReplaceAll(string(content), "\\\n", " ")) {
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			instructions = append(instructions, words)
		}
	}
	return instructions
}

// copyAll copies files and folders of the repository, as COPY does.
func copyAll(t *testing.T, root, workspace string, paths []string) {
	t.Helper()
	last := len(paths) - 1
	into := filepath.Join(workspace, paths[last])
	must(t, os.MkdirAll(into, 0o755))
	for _, path := range paths[:last] {
		from := filepath.Join(root, path)
		if strings.HasSuffix(path, "/") {
			must(t, os.CopyFS(into, os.DirFS(from)))
			continue
		}
		content, err := os.ReadFile(from)
		must(t, err)
		about, err := os.Stat(from)
		must(t, err)
		must(t, os.WriteFile(filepath.Join(into, filepath.Base(path)), content, about.Mode().Perm()))
	}
}
