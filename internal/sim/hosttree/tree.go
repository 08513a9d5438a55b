// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// tree writes files below a root directory and keeps the first error.
type tree struct {
	root string
	made map[string]bool
	err  error
}

func newTree(root string) *tree { return &tree{root: root, made: map[string]bool{}} }

// directory makes a directory and its parents.
func (t *tree) directory(path string) {
	full := filepath.Join(t.root, path)
	if t.err != nil || t.made[full] {
		return
	}
	t.err = os.MkdirAll(full, 0o755)
	t.made[full] = true
}

// file writes a value and a line feed, as the kernel ends its files.
func (t *tree) file(path string, value any) { t.text(path, fmt.Sprintln(value)) }

// text writes a file as it is, in place of an old one.
func (t *tree) text(path, content string) {
	t.directory(filepath.Dir(path))
	if t.err == nil {
		t.err = writeNew(filepath.Join(t.root, path), []byte(content))
	}
}

// link makes a symbolic link with a target relative to the folder of the link, as sysfs has them.
func (t *tree) link(path, target string) {
	t.directory(filepath.Dir(path))
	if t.err != nil {
		return
	}
	relative, err := filepath.Rel(filepath.Dir(path), target)
	if err != nil {
		t.err = err
		return
	}
	t.err = os.Symlink(relative, filepath.Join(t.root, path))
}

// masks writes a set of CPUs in both notations of the kernel: to name in mask format, and to listName.
func (t *tree) masks(dir, name, listName string, set notation) {
	t.file(filepath.Join(dir, name), set.mask)
	t.file(filepath.Join(dir, listName), set.list)
}

// notation is a set of CPUs as the kernel writes it.
type notation struct{ mask, list string }

func notationOf(set cpus.Set) notation { return notation{set.Mask(), set.String()} }
