// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build engine

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The images that stand for those of a registry: Debian's packages, and the compiler that runs this test.
const (
	debianBase  = "localhost/debian:bookworm"
	builderBase = "localhost/golang:here"
)

// trusted are the certificates that Debian's programs and Go trust.
const trusted = "/etc/ssl/certs/ca-certificates.crt"

// engine is buildah with a storage of its own.
type engine struct{ storage string }

// words are the command with the flags that say where images are kept.
func (e engine) words() []string {
	return []string{"buildah", "--root", filepath.Join(e.storage, "root"), "--runroot", filepath.Join(e.storage, "run"), "--storage-driver", "vfs"}
}

// run runs a command of buildah and gives what it prints, such as the name of a container.
func (e engine) run(t *testing.T, arguments ...string) string {
	t.Helper()
	all := append(e.words(), arguments...)
	text, err := output(t.Context(), ".", nil, all[0], all[1:]...)
	must(t, err)
	return strings.TrimSpace(text)
}

// newEngine is an engine with the two bases.
func newEngine(t *testing.T) engine {
	t.Helper()
	e := engine{storage: t.TempDir()}
	root := filepath.Join(t.TempDir(), "debian.tar")
	_, err := output(t.Context(), ".", nil, "mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", root)
	must(t, err)
	// What this machine trusts, the containers trust: a company's proxy has a certificate of its own.
	debian := func(container string) {
		e.run(t, "add", container, root, "/")
		e.run(t, "copy", container, trusted, trusted)
	}
	e.base(t, debianBase, debian)
	e.base(t, builderBase, func(container string) {
		debian(container)
		e.run(t, "copy", container, runtime.GOROOT(), "/usr/local/go") //nolint:staticcheck // The compiler that runs this test.
		e.run(t, "config", "--env", "PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "--env", "GOTOOLCHAIN=local", container)
		// Whoever has another proxy for modules has it in the container, too.
		for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOSUMDB"} {
			value, err := output(t.Context(), ".", nil, "go", "env", name)
			must(t, err)
			if value = strings.TrimSpace(value); value != "" {
				e.run(t, "config", "--env", name+"="+value, container)
			}
		}
	})
	return e
}

func (e engine) base(t *testing.T, image string, fill func(container string)) {
	t.Helper()
	container := e.run(t, "from", "scratch")
	fill(container)
	e.run(t, "commit", "--quiet", container, image)
	e.run(t, "rm", container)
}

// filesOf is the folder with the files of an image. Under this storage driver it is a plain one, which goes with the storage.
func (e engine) filesOf(t *testing.T, image string) string {
	t.Helper()
	return e.run(t, "mount", e.run(t, "from", "--pull-never", image))
}

// TestEngine lets an engine build the images by make docker-build and make must-gather, as whoever has one does, and compares their files with
// those of make image and make traffic-image: names, modes and contents, programs included. The engine is buildah, without a daemon. Registries
// have no part in it: the images that the Dockerfiles begin with are made of Debian's packages and of the compiler that is here. It needs root.
func TestEngine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("an engine without a daemon needs root here")
	}
	source := cloned(t)
	e := newEngine(t)
	e.make(t, source, "docker-build", "IMG=localhost/operator:v1", "TRAFFIC_IMG=localhost/traffic:v1")
	e.make(t, source, "must-gather", "IMG=localhost/must-gather:v1", "BASE_IMAGE="+debianBase)
	operator, traffic := e.filesOf(t, "localhost/operator:v1"), e.filesOf(t, "localhost/traffic:v1")
	for name, got := range map[string]string{operatorImage: operator, trafficImage: traffic} {
		t.Run(name, func(t *testing.T) {
			recipe, err := recipeOf(name)
			must(t, err)
			shipped := t.TempDir()
			_, want, _ := buildRecipe(t, source, recipe, shipped)
			if diff := cmp.Diff(slices.Sorted(slices.Values(want)), modesBelow(t, got)); diff != "" {
				t.Errorf("files (-without an engine +by the Dockerfile):\n%s", diff)
			}
			compareContents(t, shipped, got)
			text, err := output(t.Context(), ".", nil, filepath.Join(got, recipe.programs[0]), "version")
			must(t, err)
			if !strings.Contains(text, "v1") || !strings.Contains(text, source.revision[:7]) {
				t.Errorf("the program says of itself: %s", text)
			}
		})
	}
	t.Run("must-gather", func(t *testing.T) {
		got := e.filesOf(t, "localhost/must-gather:v1")
		for file, same := range map[string]string{
			"usr/bin/kubectl-lowlatency": filepath.Join(traffic, "kubectl-lowlatency"),
			"usr/bin/gather":             filepath.Join(source.folder, "config/must-gather/gather"),
			"licenses/THIRD-PARTY":       filepath.Join(traffic, "licenses/THIRD-PARTY"),
			"licenses/LICENSE":           filepath.Join(source.folder, "LICENSE"),
		} {
			wanted, err := os.ReadFile(same)
			must(t, err)
			found, err := os.ReadFile(filepath.Join(got, file))
			must(t, err)
			if !bytes.Equal(wanted, found) {
				t.Errorf("%s has other contents than %s: %d bytes, want %d", file, same, len(found), len(wanted))
			}
		}
	})
}

// make lets the engine build by a target of the Makefile. Its builds share what Go downloads and compiles.
func (e engine) make(t *testing.T, s source, target string, variables ...string) {
	t.Helper()
	shared := filepath.Join(e.storage, "shared")
	downloaded, compiled := filepath.Join(shared, "mod"), filepath.Join(shared, "build")
	must(t, os.MkdirAll(downloaded, 0o700))
	must(t, os.MkdirAll(compiled, 0o700))
	flags := []string{
		"--isolation", "chroot", "--layers=false", "--pull-never", "--volume", downloaded + ":/root/go/pkg/mod", "--volume", compiled + ":/root/.cache/go-build",
		"--build-arg", "VERSION=" + s.version, "--build-arg", "COMMIT=" + s.revision + "," + s.committed.Format(time.RFC3339),
		"--build-arg", "BUILDER_IMAGE=" + builderBase, "--build-arg", "DEBIAN_IMAGE=" + debianBase,
	}
	arguments := append([]string{target, "CONTAINER_TOOL=" + strings.Join(e.words(), " "), "BUILD_ARGS=" + strings.Join(flags, " ")}, variables...)
	_, err := output(t.Context(), s.folder, nil, "make", arguments...)
	must(t, err)
}

// cloned is the commit of this repository in a folder of its own, without what lies about beside it.
func cloned(t *testing.T) source {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "clone")
	_, err := output(t.Context(), "../..", nil, "git", "clone", "--quiet", ".", folder)
	must(t, err)
	described, err := describeSource(t.Context(), folder, "v1")
	must(t, err)
	return described
}
