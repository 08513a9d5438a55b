// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	spdx "github.com/spdx/tools-golang/json"
)

// newSource makes a repository with the programs of the image, and commits it at a certain time.
func newSource(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	files := map[string]string{
		"go.mod": "module example.com/programs\n\ngo 1.26\n", "LICENSE": "Apache License\n",
		"cmd/lowlatency-operator/main.go": "package main\n\nvar release string\n\nfunc main() { println(release) }\n",
		"cmd/lowlatency-agent/main.go":    "package main\n\nvar release string\n\nfunc main() { println(release) }\n",
		"cmd/lowlatency-guard/main.go":    "package main\n\nvar release string\n\nfunc main() { println(release) }\n",
	}
	for path, content := range files {
		path = filepath.Join(folder, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(content), 0o644))
	}
	for _, arguments := range [][]string{{"init", "-q"}, {"add", "."}, {"commit", "-q", "-m", "programs"}} {
		command := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, arguments...)...)
		command.Dir = folder
		command.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-11-22T10:00:00Z", "GIT_AUTHOR_DATE=2026-11-22T10:00:00Z")
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, text)
		}
	}
	return folder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// build builds an image and returns the bytes of its archive.
func build(t *testing.T, source, version string) []byte {
	t.Helper()
	folder := t.TempDir()
	must(t, run(t.Context(), options{
		image: operatorImage, source: source, folder: folder, reference: "example.com/operator:1", platforms: "linux/amd64,linux/arm64", version: version,
	}))
	archive, err := os.ReadFile(filepath.Join(folder, "image.tar"))
	must(t, err)
	for _, architecture := range []string{"amd64", "arm64"} {
		expectMaterials(t, filepath.Join(folder, "image-"+architecture+".spdx.json"))
	}
	return archive
}

func expectMaterials(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	document, err := spdx.Read(bytes.NewReader(text))
	must(t, err)
	names := make([]string, 0, len(document.Packages))
	for _, part := range document.Packages {
		names = append(names, part.PackageName+": "+part.PackageLicenseDeclared)
	}
	if diff := cmp.Diff([]string{"lowlatency-operator: Apache-2.0", "lowlatency-agent: Apache-2.0", "lowlatency-guard: Apache-2.0", "stdlib: BSD-3-Clause"}, names); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestOneCommitOneDigest builds from a clone and a work tree besides: neither the folder, nor how it was made, nor its tags, nor the
// hour may be seen in the image.
func TestOneCommitOneDigest(t *testing.T) {
	source := newSource(t)
	clone, tree := filepath.Join(t.TempDir(), "elsewhere"), filepath.Join(t.TempDir(), "tree")
	for _, arguments := range [][]string{
		{"clone", "-q", source, clone}, {"-C", clone, "tag", "v7.7.7"}, {"-C", source, "worktree", "add", "-q", tree},
	} {
		if text, err := exec.Command("git", arguments...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	first, other := build(t, source, "v1"), build(t, source, "v2")
	for _, folder := range []string{clone, tree} {
		if !bytes.Equal(first, build(t, folder, "v1")) {
			t.Errorf("a build of the same commit in %s differs", folder)
		}
	}
	if bytes.Equal(first, other) {
		t.Error("another version gives the same image")
	}
}

// unpack unpacks an archive that has files only.
func unpack(t *testing.T, archive []byte) string {
	t.Helper()
	folder := t.TempDir()
	reader := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		must(t, err)
		path := filepath.Join(folder, header.Name) //nolint:gosec // Our own archive.
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		content, err := io.ReadAll(reader)
		must(t, err)
		must(t, os.WriteFile(path, content, 0o644))
	}
}

func TestArchive(t *testing.T) {
	index, err := layout.ImageIndexFromPath(unpack(t, build(t, newSource(t), "v1")))
	must(t, err)
	top, err := index.IndexManifest()
	must(t, err)
	if diff := cmp.Diff(map[string]string{
		"io.containerd.image.name": "example.com/operator:1", "org.opencontainers.image.ref.name": "1",
	}, top.Manifests[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	images, err := index.ImageIndex(top.Manifests[0].Digest)
	must(t, err)
	must(t, validate.Index(images))
	manifest, err := images.IndexManifest()
	must(t, err)
	platforms := make([]string, 0, len(manifest.Manifests))
	for _, descriptor := range manifest.Manifests {
		platforms = append(platforms, descriptor.Platform.String())
		image, err := images.Image(descriptor.Digest)
		must(t, err)
		config, err := image.ConfigFile()
		must(t, err)
		if config.Architecture != descriptor.Platform.Architecture {
			t.Errorf("the image for %s says that it is for %s", descriptor.Platform, config.Architecture)
		}
		if diff := cmp.Diff([]string{"/lowlatency-operator"}, config.Config.Entrypoint); diff != "" || config.Config.User != nobody {
			t.Errorf("user %q, entry point (-want +got):\n%s", config.Config.User, diff)
		}
		extracted := mutate.Extract(image)
		expectFiles(t, extracted)
		must(t, extracted.Close())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
}

// expectFiles reads the files of an image.
func expectFiles(t *testing.T, archive io.Reader) {
	t.Helper()
	var found []string
	for reader := tar.NewReader(archive); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		found = append(found, strings.TrimSuffix(header.Name, "/")+" "+header.FileInfo().Mode().String()+" "+header.ModTime.UTC().Format("15:04:05"))
	}
	slices.Sort(found)
	want := []string{
		"licenses drwxr-xr-x 10:00:00", "licenses/LICENSE -rw-r--r-- 10:00:00", "licenses/THIRD-PARTY -rw-r--r-- 10:00:00",
		"lowlatency-agent -rwxr-xr-x 10:00:00", "lowlatency-guard -rwxr-xr-x 10:00:00", "lowlatency-operator -rwxr-xr-x 10:00:00",
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// TestReferrer reads the bill of materials as a registry gives it to those who ask what refers to an image.
func TestReferrer(t *testing.T) {
	source, err := describeSource(t.Context(), newSource(t), "v1")
	must(t, err)
	platforms, err := parsePlatforms("linux/arm64")
	must(t, err)
	recipe, err := recipeOf(operatorImage)
	must(t, err)
	image, err := buildImage(t.Context(), source, recipe, platforms[0], t.TempDir())
	must(t, err)
	referrer, err := image.referrer()
	must(t, err)
	manifest, err := referrer.Manifest()
	must(t, err)
	digest, err := image.image.Digest()
	must(t, err)
	if manifest.Subject == nil || manifest.Subject.Digest != digest {
		t.Errorf("it refers to %v, not to %s", manifest.Subject, digest)
	}
	layers, err := referrer.Layers()
	must(t, err)
	content, err := layers[0].Compressed()
	must(t, err)
	text, err := io.ReadAll(content)
	must(t, err)
	if !bytes.Equal(text, image.materials) {
		t.Errorf("its content is\n%s", text)
	}
}

// TestRelease is what the programs say of their source.
func TestRelease(t *testing.T) {
	folder := newSource(t)
	for range 2 {
		source, err := describeSource(t.Context(), folder, "v1")
		must(t, err)
		want := "v1," + source.revision + ",2026-11-22T10:00:00Z"
		if source.modified {
			want = "v1," + source.revision + "-dirty,2026-11-22T10:00:00Z"
		}
		_, err = os.Stat(filepath.Join(folder, "more"))
		if got := source.release(); got != want || source.modified != (err == nil) {
			t.Errorf("the release is %q, modified %t, want %q", got, source.modified, want)
		}
		must(t, os.WriteFile(filepath.Join(folder, "more"), nil, 0o644))
	}
}

// TestBillOfAProgram: the file of a program has an ending on Windows, and its package has none.
func TestBillOfAProgram(t *testing.T) {
	folder := newSource(t)
	for platform, name := range map[string]string{"windows/amd64": "lowlatency-agent.exe", "darwin/arm64": "lowlatency-agent"} {
		into := t.TempDir()
		program := filepath.Join(into, name)
		system, architecture, _ := strings.Cut(platform, "/")
		command := exec.Command("go", "build", "-o", program, "./cmd/lowlatency-agent")
		command.Dir = folder
		command.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+architecture, "CGO_ENABLED=0", "GOFLAGS=")
		if text, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		bill := filepath.Join(into, "bill.spdx.json")
		must(t, describeProgram(t.Context(), options{
			source: folder, platforms: platform, version: "v1", program: program, materials: bill, texts: filepath.Join(into, "THIRD-PARTY"),
		}))
		text, err := os.ReadFile(bill)
		must(t, err)
		document, err := spdx.Read(bytes.NewReader(text))
		must(t, err)
		if found := document.Packages[0]; found.PackageName != "lowlatency-agent" || found.PackageFileName != "/"+name {
			t.Errorf("the bill for %s names %s, file %s", platform, found.PackageName, found.PackageFileName)
		}
	}
}

func TestBadOptions(t *testing.T) {
	for _, c := range []struct{ name, image, reference, platforms, want string }{
		{"image", "lowlatency-guard", "a:1", "linux/amd64", `there is no image "lowlatency-guard", but lowlatency-operator and lowlatency-traffic`},
		{"name", operatorImage, "Not A Name", "linux/amd64", "-name: "},
		{"system", operatorImage, "a:1", "windows/amd64", "not a platform of the operator"},
		{"architecture", operatorImage, "a:1", "linux", "not a platform of the operator"},
		{"empty", operatorImage, "a:1", "linux/amd64,", "not a platform of the operator"},
		{"no repository", operatorImage, "", "linux/amd64", "git log"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := run(t.Context(), options{image: c.image, source: t.TempDir(), folder: t.TempDir(), reference: c.reference, platforms: c.platforms})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("run gives %v, want %q", err, c.want)
			}
		})
	}
}
