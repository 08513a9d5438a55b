// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// made is a release whose larger files are stand-ins.
func made(t *testing.T) *release {
	t.Helper()
	r := &release{
		options: options{version: "1.2.3", image: "registry.example.com/operator", trafficImage: "registry.example.com/traffic", output: t.TempDir()},
		source:  source{revision: strings.Repeat("ab", 20), committed: time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC), compiler: "go1.26.8"},
		digest:  "sha256:" + strings.Repeat("0a", 32), trafficDigest: "sha256:" + strings.Repeat("0b", 32),
	}
	for _, pattern := range contents() {
		name := strings.ReplaceAll(pattern, "*", r.version)
		if name == provenanceFile {
			continue
		}
		if err := os.WriteFile(r.path(name), []byte("content of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []func() error{
		func() error { return r.makeProvenance(t.Context()) }, func() error { return r.makeSums(t.Context()) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*release) error
		want  string
	}{
		"complete": {func(*release) error { return nil }, ""},
		"a file is missing": {func(r *release) error { return os.Remove(r.path("install.yaml")) },
			"install.yaml is missing\nthere is no install.yaml"},
		"a file is another": {func(r *release) error { return os.WriteFile(r.path("crds.yaml"), []byte("another"), 0o600) },
			"crds.yaml is not what SHA256SUMS says"},
		"a file without a sum": {func(r *release) error { return os.WriteFile(r.path("more.yaml"), nil, 0o600) },
			"more.yaml has no checksum"},
		"no sums": {func(r *release) error { return os.Remove(r.path(sumsFile)) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := made(t)
			if err := tc.spoil(r); err != nil {
				t.Fatal(err)
			}
			err := checkFolder(r.output)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// TestArchive: the same bytes again, with the modes and times that are given.
func TestArchive(t *testing.T) {
	when := time.Date(2026, 11, 22, 1, 2, 3, 0, time.UTC)
	entries := []entry{{"program", []byte("binary"), 0o755}, {"LICENSE", []byte("text"), 0o644}}
	first, err := archive("a.tar.gz", entries, when)
	if err != nil {
		t.Fatal(err)
	}
	second, err := archive("a.tar.gz", entries, when)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("two archives of the same differ, %v", err)
	}
	if diff := cmp.Diff(map[string]int64{"program": 0o755, "LICENSE": 0o644}, modes(t, first, when)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// modes are the modes of the files of an archive, which are all of a time and owned by root.
func modes(t *testing.T, content []byte, when time.Time) map[string]int64 {
	t.Helper()
	uncompressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for reader := tar.NewReader(uncompressed); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header.Mode
		if !header.ModTime.Equal(when) || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s is of %s, owner %d %q", header.Name, header.ModTime, header.Uid, header.Uname)
		}
	}
}

func TestNotes(t *testing.T) {
	const changes = "# Changes\n\n## Unreleased\n\n- later\n\n## 0.2.0\n\n- now\n\n### More\n\n- still now\n\n## 0.1.0\n\n- before\n"
	for version, want := range map[string]string{
		"0.2.0": "# Low Latency Node Operator 0.2.0\n\n- now\n\n### More\n\n- still now\n",
		"0.1.0": "# Low Latency Node Operator 0.1.0\n\n- before\n",
		"0.3.0": "# Low Latency Node Operator 0.3.0\n\n- later\n",
	} {
		got, err := notesOf(changes, version)
		if err != nil || got != want {
			t.Errorf("notes of %s are %q, %v, want %q", version, got, err, want)
		}
	}
	if _, err := notesOf("# Changes\n", "0.1.0"); err == nil {
		t.Error("there are notes of nothing")
	}
	content, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notesOf(string(content), "0.1.0"); err != nil {
		t.Error(err)
	}
}

func TestVersion(t *testing.T) {
	for version, want := range map[string]bool{"0.1.0": true, "1.0.0-rc.1": true, "v0.1.0": false, "1.0": false, "01.0.0": false, "1.0.0+x": false, "": false} {
		if versions.MatchString(version) != want {
			t.Errorf("%q is a version: %t", version, !want)
		}
	}
}

// TestProvenanceNamesEveryFile but those that name it.
func TestProvenanceNamesEveryFile(t *testing.T) {
	r := made(t)
	content, err := os.ReadFile(r.path(provenanceFile))
	if err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest map[string]string
		}
	}
	if err := json.Unmarshal(content, &statement); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, subject := range statement.Subject {
		got[subject.Name] = subject.Digest["sha256"]
	}
	want, err := sums(r.output, sumsFile, provenanceFile)
	if err != nil {
		t.Fatal(err)
	}
	want[r.image], want[r.trafficImage] = strings.Repeat("0a", 32), strings.Repeat("0b", 32)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("subjects (-want +got):\n%s", diff)
	}
}

// TestSignatures: openssl verifies each file that is to have a signature, as the documentation says, and no other key or content.
func TestSignatures(t *testing.T) {
	r := made(t)
	t.Chdir(filepath.Join("..", ".."))
	keys := t.TempDir()
	for _, key := range []string{"ours", "another"} {
		r.key = filepath.Join(keys, key)
		openssl(t, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", r.key)
		openssl(t, "ec", "-in", r.key, "-pubout", "-out", r.key+".public")
	}
	r.key = filepath.Join(keys, "ours")
	if err := r.sign(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range signedFiles() {
		signature, file := filepath.Join(keys, "signature"), r.path(name)
		openssl(t, "base64", "-d", "-A", "-in", file+signatureEnd, "-out", signature)
		openssl(t, "dgst", "-sha256", "-verify", r.key+".public", "-signature", signature, file)
		for what, arguments := range map[string][]string{
			"another key":     {filepath.Join(keys, "another.public"), "-signature", signature, file},
			"another content": {r.key + ".public", "-signature", signature, r.path("install.yaml")},
		} {
			if exec.Command("openssl", append([]string{"dgst", "-sha256", "-verify"}, arguments...)...).Run() == nil {
				t.Errorf("%s verifies the signature of %s", what, name)
			}
		}
	}
	if err := checkFolder(r.output); err != nil {
		t.Errorf("with signatures: %v", err)
	}
}

// openssl runs it, and it must succeed.
func openssl(t *testing.T, arguments ...string) {
	t.Helper()
	if output, err := exec.Command("openssl", arguments...).CombinedOutput(); err != nil {
		t.Fatalf("openssl %s: %v: %s", strings.Join(arguments, " "), err, output)
	}
}

// TestKrew: every archive with its sum.
func TestKrew(t *testing.T) {
	r := made(t)
	sums := map[platform]string{}
	for _, one := range platforms() {
		sums[one] = "sum of " + one.architecture
	}
	text, err := json.Marshal(r.krew(sums))
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(string(text), `"from":"lowlatency-traffic"`); found != 2 {
		t.Errorf("%d platforms have the program of measurements, want those of Linux", found)
	}
	for _, one := range platforms() {
		for _, want := range []string{`"sha256":"sum of ` + one.architecture, "/v1.2.3/" + one.archive(plugin, "1.2.3"), `"os":"linux"`, `"from":"LICENSE"`} {
			if !strings.Contains(string(text), want) {
				t.Errorf("there is no %s in %s", want, text)
			}
		}
	}
}

// TestOnlyReleasesAreRemoved: whatever folder is named by mistake, nothing of it is lost.
func TestOnlyReleasesAreRemoved(t *testing.T) {
	put := func(names ...string) string {
		folder := t.TempDir()
		for _, name := range names {
			if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	withFolder := put("install.yaml")
	if err := os.Mkdir(filepath.Join(withFolder, "crds.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ folder, want string }{
		"a release":        {put("SHA256SUMS", "SHA256SUMS.sig", "install.yaml", "bundle-0.1.0.tar.gz"), ""},
		"half a release":   {put("image.tar"), ""},
		"an empty folder":  {put(), ""},
		"no folder":        {filepath.Join(t.TempDir(), "none"), ""},
		"somebody's files": {put("install.yaml", "thesis.txt"), "holds thesis.txt, which is of no release"},
		"a folder in it":   {withFolder, "holds crds.yaml, which is no file of a release"},
		"a file":           {filepath.Join(put("x"), "x"), "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			err := removeRelease(tc.folder)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("error is %v, want %q", err, tc.want)
			}
			if _, err := os.Lstat(tc.folder); (err == nil) != (tc.want != "") {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}
