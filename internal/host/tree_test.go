// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// files describe a host tree: contents by path. A content that begins with linkTo makes a symbolic link,
// a path that ends in a slash a directory.
type files map[string]string

const linkTo = "-> "

// with returns the files and others.
func (f files) with(others ...files) files {
	all := files{}
	maps.Copy(all, f)
	for _, other := range others {
		maps.Copy(all, other)
	}
	return all
}

// write makes the tree below a new directory.
func (f files) write(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range f {
		full := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch target, isLink := strings.CutPrefix(content, linkTo); {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(full, 0o755))
		case isLink:
			must(t, os.Symlink(target, full))
		default:
			must(t, os.WriteFile(full, []byte(content), 0o644))
		}
	}
	return root
}

// pack makes an uncompressed archive of the tree, with a prefix before each name.
func (f files) pack(t testing.TB, prefix string) []byte {
	t.Helper()
	headers := make([]tar.Header, 0, len(f))
	for _, name := range slices.Sorted(maps.Keys(f)) {
		header := tar.Header{Name: prefix + name, Mode: 0o644, Typeflag: tar.TypeReg, Size: int64(len(f[name]))}
		switch target, isLink := strings.CutPrefix(f[name], linkTo); {
		case strings.HasSuffix(name, "/"):
			header.Typeflag, header.Size = tar.TypeDir, 0
		case isLink:
			header.Typeflag, header.Size, header.Linkname = tar.TypeSymlink, 0, target
		}
		headers = append(headers, header)
	}
	return packHeaders(t, headers, func(name string) string { return f[strings.TrimPrefix(name, prefix)] })
}

// packHeaders makes an archive of any entries. Those that have a size get the content of their name.
func packHeaders(t testing.TB, headers []tar.Header, content func(name string) string) []byte {
	t.Helper()
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	for _, header := range headers {
		must(t, archive.WriteHeader(&header))
		if header.Size > 0 {
			_, err := archive.Write([]byte(content(header.Name)))
			must(t, err)
		}
	}
	must(t, archive.Close())
	return packed.Bytes()
}

// writeFile puts a file into a new directory.
func writeFile(t testing.TB, content []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "host")
	must(t, os.WriteFile(name, content, 0o644))
	return name
}

func zip(t testing.TB, content []byte) []byte {
	t.Helper()
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err := writer.Write(content)
	must(t, err)
	must(t, writer.Close())
	return packed.Bytes()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open opens a host for the time of a test.
func open(t testing.TB, path string) *Host {
	t.Helper()
	opened, err := Open(path)
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	return opened
}

// openAsCopy opens a directory as it is opened on a machine that runs another system than Linux.
func openAsCopy(t testing.TB, dir string) *Host {
	t.Helper()
	opened, err := openCopy(dir)
	must(t, err)
	t.Cleanup(func() { must(t, opened.Close()) })
	return &Host{path: dir, tree: opened}
}

// readPath opens and reads a host.
func readPath(t testing.TB, path string) (*Facts, error) {
	t.Helper()
	return open(t, path).Read(t.Context())
}

// snapshot writes a snapshot of a host into a new file.
func snapshot(t testing.TB, path string) string {
	t.Helper()
	var taken bytes.Buffer
	must(t, open(t, path).Snapshot(t.Context(), &taken))
	return writeFile(t, taken.Bytes())
}

// readAll reads a tree in every form in which a host may come, a directory, an archive with and without a
// top folder, and a snapshot of each, and makes sure that all give the same facts.
func readAll(t *testing.T, tree files) *Facts {
	t.Helper()
	return readAllWith(t, tree, Request{})
}

// readAllWith does so with further requests.
func readAllWith(t *testing.T, tree files, request Request) *Facts {
	t.Helper()
	// A tree without proc and sys is no host.
	tree = tree.with(files{"proc/": "", "sys/": ""})
	dir := tree.write(t)
	facts, err := open(t, dir).ReadWith(t.Context(), request)
	must(t, err)
	forms := map[string]string{
		"archive":                        writeFile(t, tree.pack(t, "")),
		"compressed archive":             writeFile(t, zip(t, tree.pack(t, "./"))),
		"archive with a top folder":      writeFile(t, tree.pack(t, "worker-1/")),
		"archive with fsroot":            writeFile(t, tree.pack(t, "worker-1/fsroot/")),
		"archive with a ./top folder":    writeFile(t, zip(t, tree.pack(t, "./worker-1/"))),
		"snapshot":                       snapshot(t, dir),
		"snapshot of an archive":         snapshot(t, writeFile(t, tree.pack(t, ""))),
		"snapshot of the same snapshot":  snapshot(t, snapshot(t, dir)),
		"archive with absolute names":    writeFile(t, tree.pack(t, "/")),
		"directory with symbolic parent": linkedTo(t, dir),
	}
	hosts := map[string]*Host{"directory as systems but Linux read it": openAsCopy(t, dir)}
	for name, path := range forms {
		hosts[name] = open(t, path)
	}
	for name, other := range hosts {
		t.Run("as "+name, func(t *testing.T) {
			again, err := other.ReadWith(t.Context(), request)
			must(t, err)
			if diff := cmp.Diff(facts, again); diff != "" {
				t.Errorf("other facts than from the directory (-directory +%s):\n%s", name, diff)
			}
		})
	}
	return facts
}

func linkedTo(t *testing.T, dir string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "root")
	must(t, os.Symlink(dir, link))
	return link
}

// facts that are compared by value, in the words of the tests.

func shown[T any](fact Fact[T]) string {
	if value, known := fact.Get(); known {
		return fmt.Sprint(value)
	}
	return "absent: " + fact.Reason
}

func expect[T any](t *testing.T, what string, fact Fact[T], want string) {
	t.Helper()
	if got := shown(fact); got != want {
		t.Errorf("%s is %q, want %q", what, got, want)
	}
	if fact.Source == "" || !strings.HasPrefix(fact.Source, "/") {
		t.Errorf("%s has the source %q, want an absolute path", what, fact.Source)
	}
}
