// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build release

package release

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// krew is the real krew with a folder of its own, as on a machine of some system.
type krew struct {
	root        string
	environment []string
}

// newKrew is krew on a machine on which nothing was installed.
func newKrew(t *testing.T, system, architecture string) krew {
	t.Helper()
	root := t.TempDir()
	// It would look for newer releases of itself.
	return krew{root, []string{"KREW_ROOT=" + root, "KREW_OS=" + system, "KREW_ARCH=" + architecture, "KREW_NO_UPGRADE_CHECK=1"}}
}

// install installs the plugin from an archive that lies beside the manifest.
func (k krew) install(t *testing.T, manifest, archive string) (string, error) {
	t.Helper()
	return run(t, k.environment, os.Getenv("KREW"), "install", "--manifest="+manifest, "--archive="+archive)
}

// manifest is the file for krew under the name that it has in krew's index, with one text replaced by another.
func manifest(t *testing.T, old, replaced string) string {
	t.Helper()
	content, err := os.ReadFile(released(t, "lowlatency.krew.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), old) {
		t.Fatalf("the manifest has no %q", old)
	}
	file := filepath.Join(t.TempDir(), "lowlatency.yaml")
	if err := os.WriteFile(file, []byte(strings.Replace(string(content), old, replaced, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestKrewAcceptsTheManifest: its judge, by which manifests are taken into its index, accepts ours and no other.
func TestKrewAcceptsTheManifest(t *testing.T) {
	judge := filepath.Join(filepath.Dir(os.Getenv("KREW")), "validate-krew-manifest")
	for name, fault := range map[string]struct{ old, new, want string }{
		"as it is":            {"kind: Plugin", "kind: Plugin", ""},
		"another name":        {"name: lowlatency", "name: highlatency", "should be named"},
		"a version without v": {"version: v", "version: ", "version"},
		"a sum that is none":  {"sha256: ", "sha256: x", "sha256"},
		"two for one machine": {"os: darwin", "os: linux", "overlapping"},
		"an unknown machine":  {"os: darwin", "os: macos", "match any supported platform"},
		"no program":          {"bin: kubectl-lowlatency\n", "bin: \"\"\n", "bin"},
	} {
		t.Run(name, func(t *testing.T) {
			said, err := run(t, nil, judge, "-skip-install", "-manifest", manifest(t, fault.old, fault.new))
			if (err == nil) != (fault.want == "") || err != nil && !strings.Contains(said, fault.want) {
				t.Errorf("krew says %v, %s", err, said)
			}
		})
	}
}

// TestKrewInstalls the archive of every system, whose files are then all there, and none that was changed.
func TestKrewInstalls(t *testing.T) {
	file := manifest(t, "", "")
	for _, system := range []struct{ os, architecture, program string }{
		{"linux", "amd64", "kubectl-lowlatency"}, {"linux", "arm64", "kubectl-lowlatency"},
		{"darwin", "amd64", "kubectl-lowlatency"}, {"darwin", "arm64", "kubectl-lowlatency"}, {"windows", "amd64", "kubectl-lowlatency.exe"},
	} {
		t.Run(system.os+"/"+system.architecture, func(t *testing.T) {
			archive := released(t, "kubectl-lowlatency-*-"+system.os+"-"+system.architecture+".tar.gz")
			k := newKrew(t, system.os, system.architecture)
			if said, err := k.install(t, file, archive); err != nil {
				t.Fatalf("krew says %v, %s", err, said)
			}
			for _, name := range []string{system.program, "LICENSE", "THIRD-PARTY", "kubectl_complete-lowlatency"} {
				if found, err := filepath.Glob(filepath.Join(k.root, "store", "lowlatency", "v*", name)); err != nil || len(found) != 1 {
					t.Errorf("krew has installed %d files %s, %v", len(found), name, err)
				}
			}
			content, err := os.ReadFile(archive)
			if err != nil {
				t.Fatal(err)
			}
			changed := filepath.Join(t.TempDir(), filepath.Base(archive))
			if err := os.WriteFile(changed, append(bytes.Clone(content), 0), 0o600); err != nil {
				t.Fatal(err)
			}
			if said, err := newKrew(t, system.os, system.architecture).install(t, file, changed); err == nil || !strings.Contains(said, "checksum") {
				t.Errorf("of a changed archive krew says %v, %s", err, said)
			}
		})
	}
}

// TestPluginByKrew: installed by krew for this machine the plugin runs below kubectl, its completion too when it is copied as krew says.
func TestPluginByKrew(t *testing.T) {
	k := newKrew(t, runtime.GOOS, runtime.GOARCH)
	archive := released(t, "kubectl-lowlatency-*-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz")
	said, err := k.install(t, manifest(t, "", ""), archive)
	if err != nil {
		t.Fatalf("krew says %v, %s", err, said)
	}
	var copying string
	for line := range strings.Lines(said) {
		if _, command, found := strings.Cut(line, "cp ${KREW_ROOT"); found {
			copying = "cp ${KREW_ROOT" + command
		}
	}
	if copying == "" {
		t.Fatalf("krew does not say how kubectl completes: %s", said)
	}
	must(t, k.environment, "sh", "-ec", copying)
	kubectl := os.Getenv("KUBECTL")
	environment := slices.Concat(k.environment, []string{"PATH=" + filepath.Join(k.root, "bin") + string(os.PathListSeparator) + os.Getenv("PATH")})
	version, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(archive), "kubectl-lowlatency-"), "-"+runtime.GOOS)
	if said := must(t, environment, kubectl, "lowlatency", "version", "--client"); !strings.HasPrefix(said, "kubectl-lowlatency v"+version+" (commit ") {
		t.Errorf("the plugin says %q, want version %s", said, version)
	}
	expectCompletion(t, kubectl, environment)
}
