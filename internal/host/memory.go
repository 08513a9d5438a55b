// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
)

// memoryTree is a host that was read from an archive. Once filled it does not change.
type memoryTree struct {
	nodes map[string]*memoryNode
}

type memoryNode struct {
	node

	content string
	// oversized is the limit beyond which the content was not kept; 0 if it was.
	oversized int
	children  []string
}

func newMemoryTree() *memoryTree {
	return &memoryTree{map[string]*memoryNode{".": {node: node{kind: kindDirectory}}}}
}

// add puts a node under a clean relative name, and directories on the way to it. As in tar, a later entry
// replaces an earlier one; but a directory stays a directory.
func (t *memoryTree) add(name string, added *memoryNode) error {
	if existing, ok := t.nodes[name]; ok {
		if (existing.kind == kindDirectory) != (added.kind == kindDirectory) {
			return fmt.Errorf("%s is both a directory and something else", name)
		}
		if added.kind != kindDirectory {
			t.nodes[name] = added
		}
		return nil
	}
	parent := path.Dir(name)
	if err := t.add(parent, &memoryNode{node: node{kind: kindDirectory}}); err != nil {
		return err
	}
	t.nodes[name] = added
	t.nodes[parent].children = append(t.nodes[parent].children, path.Base(name))
	return nil
}

func (t *memoryTree) view() view { return t }

func (t *memoryTree) release() {}

// Close does nothing: the tree holds no files.
func (t *memoryTree) Close() error { return nil }

func (t *memoryTree) lstat(name string) (node, error) {
	found, ok := t.nodes[name]
	if !ok {
		return node{}, fs.ErrNotExist
	}
	return found.node, nil
}

func (t *memoryTree) readFile(name string, limit int) (string, error) {
	found, ok := t.nodes[name]
	switch {
	case !ok:
		return "", fs.ErrNotExist
	case found.kind != kindFile:
		return "", found.notRegular()
	case found.oversized > 0:
		return "", tooLargeError{min(limit, found.oversized)}
	case len(found.content) > limit:
		return "", tooLargeError{limit}
	}
	return found.content, nil
}

func (t *memoryTree) copyFile(name string, limit int, to io.Writer) error {
	content, err := t.readFile(name, limit)
	if err != nil {
		return err
	}
	_, err = io.WriteString(to, content)
	return err
}

func (t *memoryTree) readDir(name string, limit int) ([]entry, error) {
	found, ok := t.nodes[name]
	switch {
	case !ok:
		return nil, fs.ErrNotExist
	case found.kind != kindDirectory:
		return nil, errNotDirectory
	case len(found.children) > limit:
		return nil, tooManyError{limit}
	}
	entries := make([]entry, len(found.children))
	for i, base := range found.children {
		entries[i] = entry{base, t.nodes[path.Join(name, base)].kind}
	}
	return entries, nil
}

// below makes a directory the root of the tree.
func (t *memoryTree) below(dir string) *memoryTree {
	moved := &memoryTree{make(map[string]*memoryNode, len(t.nodes))}
	for name, found := range t.nodes {
		if name == dir {
			moved.nodes["."] = found
		} else if len(name) > len(dir) && name[:len(dir)] == dir && name[len(dir)] == '/' {
			moved.nodes[name[len(dir)+1:]] = found
		}
	}
	return moved
}

// directories returns the names of the directories at the root.
func (t *memoryTree) directories() []string {
	return slices.DeleteFunc(slices.Clone(t.nodes["."].children), func(name string) bool {
		return t.nodes[name].kind != kindDirectory
	})
}
