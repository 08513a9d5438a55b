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
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	spdx "github.com/spdx/tools-golang/json"
)

// newTrafficSource is a repository with the C program of this one, and a small program in the place of the command line.
func newTrafficSource(t *testing.T) source {
	t.Helper()
	folder := newSource(t)
	files := map[string]string{"cmd/kubectl-lowlatency/main.go": "package main\n\nvar release string\n\nfunc main() { println(release) }\n"}
	for _, name := range []string{
		"hack/traffic.sh", "hack/debian-package.sh", "cmd/lowlatency-traffic/traffic.c", "cmd/lowlatency-traffic/frames.c", "cmd/lowlatency-traffic/frames.h",
		"cmd/lowlatency-traffic/stamps.c", "cmd/lowlatency-traffic/stamps.h",
	} {
		content, err := os.ReadFile(filepath.Join("../..", name))
		must(t, err)
		files[name] = string(content)
	}
	for name, content := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o755)) //nolint:gosec // Scripts among them.
	}
	described, err := describeSource(t.Context(), folder, "v1")
	must(t, err)
	return described
}

// buildTraffic makes the image of measurements for this machine, as buildRecipe does.
func buildTraffic(t *testing.T, s source, into string) (digest string, files []string, materials []byte) {
	t.Helper()
	recipe, err := recipeOf(trafficImage)
	must(t, err)
	return buildRecipe(t, s, recipe, into)
}

// buildRecipe makes an image for this machine, and lists its files with their modes. Regular files are put into the folder.
func buildRecipe(t *testing.T, s source, recipe recipe, into string) (digest string, files []string, materials []byte) {
	t.Helper()
	platforms, err := parsePlatforms("linux/" + runtime.GOARCH)
	must(t, err)
	built, err := buildImage(t.Context(), s, recipe, platforms[0], t.TempDir())
	must(t, err)
	sum, err := built.image.Digest()
	must(t, err)
	extracted := mutate.Extract(built.image)
	for reader := tar.NewReader(extracted); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		files = append(files, header.FileInfo().Mode().String()+" "+header.Name)
		if header.Typeflag != tar.TypeReg {
			continue
		}
		to := filepath.Join(into, header.Name)
		must(t, os.MkdirAll(filepath.Dir(to), 0o755))
		content, err := io.ReadAll(reader)
		must(t, err)
		must(t, os.WriteFile(to, content, header.FileInfo().Mode()))
	}
	must(t, extracted.Close())
	return sum.String(), files, built.materials
}

// debianLibrary is Debian's package with the C library for this machine's architecture.
func debianLibrary(t *testing.T, s source) (archive string) {
	t.Helper()
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Fatal("apt-get is missing: packages of Debian are got on a Debian only")
	}
	on, err := targetOf(runtime.GOARCH)
	must(t, err)
	kept, err := output(t.Context(), s.folder, nil, "hack/debian-package.sh", library, libraryVersion, runtime.GOARCH, on.librarySum)
	if err != nil && strings.Contains(err.Error(), "the mirrors have no "+library) {
		// Debian has mended the library. Who makes a release must follow, and is told so; no other change has to wait for it.
		t.Skip(err)
	}
	must(t, err)
	return kept
}

// TestTrafficImage builds the image of measurements twice, with the C program compiled each time, and has its own C library run the program.
func TestTrafficImage(t *testing.T) {
	on, err := targetOf(runtime.GOARCH)
	must(t, err)
	s := newTrafficSource(t)
	kept := debianLibrary(t, s)
	root := t.TempDir()
	digest, files, materials := buildTraffic(t, s, root)
	for _, want := range []string{
		"-rwxr-xr-x kubectl-lowlatency", "-rwxr-xr-x lowlatency-traffic", "-rw-r--r-- licenses/THIRD-PARTY", "-rw-r--r-- usr/share/doc/libc6/copyright",
		"-rw-r--r-- var/lib/dpkg/status.d/libc6", "-rwxr-xr-x lib/" + on.triple + "/libc.so.6",
	} {
		if !slices.Contains(files, want) {
			t.Errorf("the image lacks %q: %q", want, files)
		}
	}
	if i := slices.IndexFunc(files, func(name string) bool {
		return strings.Contains(name, "gconv") || strings.Contains(name, "/sh") && !strings.Contains(name, "/share")
	}); i >= 0 {
		t.Errorf("the image has %s", files[i])
	}
	expectTrafficRuns(t, root, on)
	expectTrafficMaterials(t, materials)

	other := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(other, "debian"), 0o755))
	must(t, os.Symlink(strings.TrimSpace(kept), filepath.Join(other, "debian", filepath.Base(strings.TrimSpace(kept)))))
	t.Setenv("LOWLATENCY_CACHE", other)
	if again, _, _ := buildTraffic(t, s, t.TempDir()); again != digest {
		t.Errorf("two builds give %s and %s", digest, again)
	}
}

// expectTrafficRuns runs the program by the dynamic linker of the image, with no library but the image's.
func expectTrafficRuns(t *testing.T, root string, on target) {
	t.Helper()
	linkers, err := filepath.Glob(filepath.Join(root, "lib", on.triple, "ld-linux-*.so.*"))
	must(t, err)
	if len(linkers) != 1 {
		t.Fatalf("the image has the dynamic linkers %q", linkers)
	}
	libraries := filepath.Join(root, "lib", on.triple)
	text, err := exec.Command(linkers[0], "--inhibit-cache", "--library-path", libraries, "--list", filepath.Join(root, "lowlatency-traffic")).CombinedOutput()
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if _, path, found := strings.Cut(line, "=> "); found && !strings.HasPrefix(path, root) && !strings.Contains(line, "ld-linux") {
			t.Errorf("a library of this machine is needed: %s", line)
		}
	}
	text, err = exec.Command(linkers[0], "--inhibit-cache", "--library-path", libraries, filepath.Join(root, "lowlatency-traffic")).CombinedOutput()
	if err == nil || !strings.Contains(string(text), "lowlatency-traffic") {
		t.Errorf("without arguments, the program says %q (%v)", text, err)
	}
}

func expectTrafficMaterials(t *testing.T, text []byte) {
	t.Helper()
	document, err := spdx.Read(bytes.NewReader(text))
	must(t, err)
	names := make([]string, 0, len(document.Packages))
	for _, one := range document.Packages {
		names = append(names, one.PackageName+" "+one.PackageLicenseDeclared)
		if one.PackageName == trafficImage && !strings.Contains(one.PackageSourceInfo, "gcc") {
			t.Errorf("%s was built by %s", one.PackageName, one.PackageSourceInfo)
		}
	}
	want := []string{"kubectl-lowlatency Apache-2.0", "stdlib BSD-3-Clause", "lowlatency-traffic Apache-2.0", "libc6 LGPL-2.1-or-later"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("bill of materials (-want +got):\n%s", diff)
	}
}
