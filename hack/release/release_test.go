// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// repositoryFolder is that of the repository.
const repositoryFolder = "../.."

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
	sums := map[platform]string{}
	for _, one := range platforms() {
		sums[one] = packPlugin(t, r, one)
	}
	for _, step := range []func() error{
		func() error { return r.writeKrew(sums) }, func() error { return makeMustGatherHere(t, r) },
		func() error { return r.makeProvenance(t.Context()) }, func() error { return r.makeSums(t.Context()) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// packPlugin writes an archive of the plugin, with stand-ins for its files, and returns its sum.
func packPlugin(t *testing.T, r *release, on platform) string {
	t.Helper()
	texts := []string{"LICENSE", "THIRD-PARTY"}
	names := append(append(on.programs(plugin), kubectlCompletion), texts...)
	entries := make([]entry, 0, len(names))
	for _, name := range names {
		mode := fs.FileMode(0o755)
		if slices.Contains(texts, name) {
			mode = 0o644
		}
		entries = append(entries, entry{name, []byte(name), mode})
	}
	name := on.archive(plugin, r.version)
	content, err := archive(name, entries, r.source.committed)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.path(name), content, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// makeMustGatherHere packs it in the folder of the repository.
func makeMustGatherHere(t *testing.T, r *release) error {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	defer t.Chdir(here)
	t.Chdir(repositoryFolder)
	return r.makeMustGather(t.Context())
}

// TestMustGather: the archive has what its Dockerfile copies, for each architecture, and nothing else; and the image is made as from a checkout.
func TestMustGather(t *testing.T) {
	content, err := os.ReadFile(made(t).path("must-gather-1.2.3.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := unpack(content)
	if err != nil {
		t.Fatal(err)
	}
	got, dockerfile := map[string]fs.FileMode{}, ""
	for _, one := range entries {
		name := strings.TrimPrefix(one.name, "must-gather-1.2.3/")
		if got[name] = one.mode; name == "Dockerfile" {
			dockerfile = string(one.content)
		}
	}
	copies := lastStage(dockerfile)
	want := map[string]fs.FileMode{"Dockerfile": 0o644}
	for _, architecture := range []string{"amd64", "arm64"} {
		for to, from := range copies {
			want[strings.ReplaceAll(from, "${TARGETARCH}", architecture)] = 0o644
			if strings.HasPrefix(to, "/usr/bin/") {
				want[strings.ReplaceAll(from, "${TARGETARCH}", architecture)] = 0o755
			}
		}
	}
	delete(want, entrypoint)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-copied +packed):\n%s", diff)
	}
	checkout, err := os.ReadFile(filepath.Join(repositoryFolder, "config", "must-gather", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	// From where each file comes is another matter.
	if diff := cmp.Diff(slices.Sorted(maps.Keys(lastStage(string(checkout)))), slices.Sorted(maps.Keys(copies))); diff != "" {
		t.Errorf("the image (-from a checkout +of a release):\n%s", diff)
	}
}

// entrypoint is what lastStage tells of it.
const entrypoint = `ENTRYPOINT ["/usr/bin/gather"]`

// lastStage are what the last stage of a Dockerfile copies, by where it goes, and its entrypoint.
func lastStage(dockerfile string) map[string]string {
	_, stage, _ := strings.Cut(dockerfile, "\nFROM ${BASE_IMAGE}\n")
	found := map[string]string{}
	for line := range strings.Lines(stage) {
		words := strings.Fields(line)
		switch {
		case len(words) > 2 && words[0] == "COPY":
			found[words[len(words)-1]] = words[len(words)-2]
		case len(words) > 0 && words[0] == "ENTRYPOINT":
			found[strings.TrimSpace(line)] = entrypoint
		}
	}
	return found
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

// TestKrew: what krew refuses or does not find is found before a release. The wanted manifest is that of a whole release.
func TestKrew(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"whole":                  {"", "", ""},
		"another order of words": {"kind: Plugin\n", "kind: \"Plugin\"\n", ""},
		"another API":            {"v1alpha2", "v1alpha3", "apiVersion is"},
		"another kind":           {"kind: Plugin", "kind: Plugins", "kind is"},
		"a name with a dot":      {"name: lowlatency", "name: low.latency", "the plugin's name is"},
		"an unknown field":       {"  homepage:", "  website: x\n  homepage:", "unknown field"},
		"no v":                   {"version: v1.2.3", "version: 1.2.3", "is not a v with three numbers"},
		"two numbers":            {"version: v1.2.3", "version: v1.2", "is not a v with three numbers"},
		"two lines":              {"shortDescription: Plan", "shortDescription: |-\n    a\n    Plan", "the short description"},
		"no short description":   {"shortDescription: Plan and prove nodes for low latency", "shortDescription: \"\"", "the short description"},
		"a sum of nothing":       {"sha256: ", "sha256: x", "is not that of"},
		"the sum of another":     {"linux-amd64.tar.gz", "darwin-amd64.tar.gz", "is not that of kubectl-lowlatency-1.2.3-darwin-amd64.tar.gz"},
		"another archive":        {"linux-arm64.tar.gz", "linux-arm.tar.gz", "names no archive of the release"},
		"another version":        {"kubectl-lowlatency-1.2.3-linux-arm64", "kubectl-lowlatency-1.2.4-linux-arm64", "names no archive of the release"},
		"another program":        {"bin: kubectl-lowlatency.exe", "bin: kubectl-lowlatency", `krew does not install "kubectl-lowlatency"`},
		"no program":             {"bin: kubectl-lowlatency.exe", "bin: \"\"", `krew does not install ""`},
		"a file that is missing": {"from: lowlatency-traffic", "from: traffic", `has no file "traffic"`},
		"a file to nowhere":      {"to: .", "to: \"\"", `that goes to ""`},
		"no licence":             {"from: LICENSE", "from: THIRD-PARTY", `krew does not install "LICENSE"`},
		"no completion":          {"from: kubectl_complete-lowlatency", "from: THIRD-PARTY", `krew does not install "kubectl_complete-lowlatency"`},
		"an unknown key":         {"os: linux", "system: linux", `is selected by "system"`},
		"an unknown machine":     {"os: darwin", "os: macos", "is for no machine"},
		"two for one machine":    {"arch: arm64\n        os: darwin", "arch: amd64\n        os: darwin", "2 platforms are for"},
		"no selector":            {"selector:\n      matchLabels:\n        arch: amd64\n        os: windows", "selector: {}", "has no selector"},
	} {
		t.Run(name, func(t *testing.T) {
			r := made(t)
			content, err := os.ReadFile(r.path(krewFile))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(content), tc.from) {
				t.Fatalf("there is no %q in\n%s", tc.from, content)
			}
			if err := os.WriteFile(r.path(krewFile), []byte(strings.ReplaceAll(string(content), tc.from, tc.to)), 0o600); err != nil {
				t.Fatal(err)
			}
			err = errors.Join(checkKrew(r.output)...)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("krew says %v, want %q", err, tc.want)
			}
		})
	}
}

// TestKrewInstallsTheProgramOfMeasurements where it is in the archive.
func TestKrewInstallsTheProgramOfMeasurements(t *testing.T) {
	content, err := os.ReadFile(made(t).path(krewFile))
	if err != nil {
		t.Fatal(err)
	}
	if found := strings.Count(string(content), "from: lowlatency-traffic"); found != 2 {
		t.Errorf("%d platforms have the program of measurements, want those of Linux", found)
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
