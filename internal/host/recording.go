// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

// indexFile of a snapshot lists what could not be read when it was made, and why: an archive can hold
// neither the EINVAL of a link that is down nor a file without permission. Without it, what is unreadable
// on the host would seem to be missing.
const indexFile = "lowlatency-snapshot.json"

// maxIndex bounds the index: a line for each file of a host on which nothing is readable.
const maxIndex = 16 << 20

type snapshotIndex struct {
	// Unreadable are reasons by absolute path.
	Unreadable map[string]string `json:"unreadable"`
	// Missing are the settings that the host did not have. Without them, what a newer program looks for would seem to be
	// missing on the host of an older snapshot.
	Missing []string `json:"missing,omitempty"`
	// Complete tells that the copy has every file that the host had.
	Complete bool `json:"complete,omitempty"`
}

// readIndex returns what the snapshot at hand knows to be unreadable or missing; nothing if this is no snapshot of ours.
func (r *reader) readIndex() snapshotIndex {
	content, err := r.peek("/"+indexFile, maxIndex)
	if err != nil {
		if _, unmounted := errors.AsType[notMountedError](err); !unmounted && !errors.Is(err, fs.ErrNotExist) {
			r.fail("/"+indexFile, err)
		}
		return snapshotIndex{}
	}
	var index snapshotIndex
	if err := json.Unmarshal([]byte(content), &index); err != nil {
		r.fail("/"+indexFile, fmt.Errorf("not the index of a snapshot: %w", err))
	}
	return index
}

// recording remembers what a Read touches. Its methods do nothing on nil, which is a Read without a
// snapshot. Paths are absolute and as the reader asked for them, that is with links in them.
type recording struct {
	files map[string]string
	// names were listed, or asked for as links or directories.
	names map[string]bool
	// followed are directories that were asked for whatever links lead there.
	followed map[string]bool
	// replaced files get another content than they have, under exactly their name.
	replaced   map[string]string
	unreadable map[string]string
	// missing are settings that the host does not have.
	missing []string
}

func newRecording() *recording {
	return &recording{
		files: map[string]string{}, names: map[string]bool{}, followed: map[string]bool{},
		replaced: map[string]string{}, unreadable: map[string]string{},
	}
}

// problem records why something is unreadable, and returns whether it is. What is missing here will be
// missing there.
func (t *recording) problem(name string, err error) bool {
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.unreadable[name] = reasonOf(err)
	}
	return err != nil
}

func (t *recording) file(name, content string, err error) {
	if t != nil && !t.problem(name, err) {
		t.files[name] = content
	}
}

func (t *recording) link(name string, err error) {
	if t != nil && !t.problem(name, err) {
		t.names[name] = true
	}
}

func (t *recording) directory(name string) {
	if t != nil {
		t.followed[name] = true
	}
}

func (t *recording) list(dir string, names []string, err error) {
	if t == nil || t.problem(dir, err) {
		return
	}
	t.followed[dir] = true
	for _, name := range names {
		t.names[dir+"/"+name] = true
	}
}

// replace records another content than the file has.
func (t *recording) replace(name, content string) {
	if t != nil {
		t.replaced[name] = content
	}
}

// skip records a file that was left alone on purpose.
func (t *recording) skip(name, reason string) {
	if t != nil {
		t.unreadable[name] = reason
	}
}

// lack records a setting that the host does not have.
func (t *recording) lack(name string) {
	if t != nil && !slices.Contains(t.missing, name) {
		t.missing = append(t.missing, name)
	}
}

// write writes what was recorded as an archive. It looks at the host once more, for the links that lead to
// the files.
func (t *recording) write(w *walk, out io.Writer) error {
	tree, err := t.tree(w)
	if err != nil {
		return err
	}
	return tree.write(out)
}

// write writes a tree as an archive.
func (t *memoryTree) write(out io.Writer) error {
	packed := gzip.NewWriter(out)
	archive := tar.NewWriter(packed)
	for _, name := range slices.Sorted(maps.Keys(t.nodes)) {
		if name == "." {
			continue
		}
		if err := writeNode(archive, name, t.nodes[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return errors.Join(archive.Close(), packed.Close())
}

func writeNode(archive *tar.Writer, name string, n *memoryNode) error {
	// The format is fixed and the time is the zero of Unix, so that equal hosts give equal bytes.
	header := tar.Header{Name: name, ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
	switch n.kind {
	case kindDirectory:
		header.Typeflag, header.Name, header.Mode = tar.TypeDir, name+"/", 0o755
	case kindLink:
		header.Typeflag, header.Linkname, header.Mode = tar.TypeSymlink, n.target, 0o777
	default:
		header.Typeflag, header.Size, header.Mode = tar.TypeReg, int64(len(n.content)), 0o644
	}
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	_, err := io.WriteString(archive, n.content)
	return err
}

// tree lays out what was recorded: files in their real place, and the links that were crossed on the way.
func (t *recording) tree(w *walk) (*memoryTree, error) {
	layout := layout{walk: w, tree: newMemoryTree()}
	w.visit = layout.visit
	for _, name := range slices.Sorted(maps.Keys(t.files)) {
		layout.file(layout.realName(name), t.files[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.followed)) {
		layout.visit(layout.realName(name), node{kind: kindDirectory})
	}
	for _, name := range slices.Sorted(maps.Keys(t.names)) {
		layout.name(name)
	}
	for _, name := range slices.Sorted(maps.Keys(t.replaced)) {
		layout.file(relative(name), t.replaced[name])
	}
	index, err := json.MarshalIndent(snapshotIndex{Unreadable: t.unreadable, Missing: slices.Sorted(slices.Values(t.missing))}, "", " ")
	layout.file(indexFile, string(index))
	return layout.tree, errors.Join(layout.err, err)
}

// layout is the tree of a snapshot in the making.
type layout struct {
	walk *walk
	tree *memoryTree
	err  error
}

func (l *layout) add(name string, added *memoryNode) {
	if err := l.tree.add(name, added); err != nil && l.err == nil {
		l.err = err
	}
}

func (l *layout) file(name, content string) {
	l.add(name, &memoryNode{node: node{kind: kindFile}, content: content})
}

// visit adds a link or a directory on the way to something.
func (l *layout) visit(name string, found node) { l.add(name, &memoryNode{node: found}) }

// realName is where a path leads. What vanished since it was read stays under the name it had.
func (l *layout) realName(name string) string {
	if found, err := l.walk.resolve(relative(name)); err == nil {
		return found.name
	}
	return relative(name)
}

// name adds something of which only the name and the kind were of interest.
func (l *layout) name(name string) {
	dir, err := l.walk.parentOf(relative(name))
	if err != nil {
		return
	}
	real := path.Join(dir, path.Base(name))
	found, err := l.walk.view.lstat(real)
	if _, known := l.tree.nodes[real]; known || err != nil {
		return
	}
	if found.kind == kindFile {
		// The snapshot is to hold the file as it is, if it can be read at all.
		content, _ := l.walk.view.readFile(real, smallFile)
		l.file(real, content)
		return
	}
	l.visit(real, found)
}
