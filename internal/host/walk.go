// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// maxLinks is how many symbolic links one path may cross: MAXSYMLINKS of the kernel (include/linux/namei.h).
const maxLinks = 40

// maxDepth is how many directories deep a file may be; those of /sys are a dozen. A directoryView keeps
// each of them open.
const maxDepth = 128

// walk resolves the symbolic links of a tree, always within its root: an absolute target begins at the
// root, as it would for a process that was chrooted there, and a relative one that climbs above the root
// is an error. It remembers the directories that it has resolved, so it must not outlive one Read.
type walk struct {
	view view
	dirs map[string]string
	// missing are the directories that were looked for in vain. A host lacks whole folders, for whose files is asked one by
	// one.
	missing map[string]error
	// visit is told each link and directory on the way, if anybody listens.
	visit func(name string, found node)
}

func newWalk(v view) *walk {
	return &walk{view: v, dirs: map[string]string{".": "."}, missing: map[string]error{}}
}

// place is where a path leads: a name without symbolic links, and what it is.
type place struct {
	name string
	node node
}

// resolve follows every link of a path.
func (w *walk) resolve(name string) (place, error) {
	links := 0
	parent, err := w.directory(dirOf(name), &links)
	if err != nil {
		return place{}, err
	}
	if name == "." {
		return place{".", node{kind: kindDirectory}}, nil
	}
	return w.step(parent, path.Base(name), &links)
}

// folder follows every link of a directory's path.
func (w *walk) folder(name string) (string, error) {
	links := 0
	return w.directory(name, &links)
}

// parentOf follows every link but the last one.
func (w *walk) parentOf(name string) (string, error) {
	links := 0
	return w.directory(dirOf(name), &links)
}

// directory follows the links of a directory's path and remembers the outcome.
func (w *walk) directory(name string, links *int) (string, error) {
	if known, ok := w.dirs[name]; ok {
		return known, nil
	}
	if err, ok := w.missing[name]; ok {
		return "", err
	}
	found, err := w.findDirectory(name, links)
	switch {
	case err == nil:
		w.dirs[name] = found
	case errors.Is(err, fs.ErrNotExist):
		w.missing[name] = err
	}
	return found, err
}

func (w *walk) findDirectory(name string, links *int) (string, error) {
	parent, err := w.directory(dirOf(name), links)
	if err != nil {
		return "", err
	}
	err = w.openDirectory(parent, path.Base(name))
	if err == nil {
		return join(parent, path.Base(name)), nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	at, err := w.step(parent, path.Base(name), links)
	if err != nil {
		return "", err
	}
	if at.node.kind != kindDirectory {
		return "", errNotDirectory
	}
	return at.name, nil
}

// openDirectory opens what is certainly a directory, where that is cheaper than looking at it. What does not exist is
// missing; any other error means that the name must be looked at. Who is told of directories on the way must see them.
func (w *walk) openDirectory(at, base string) error {
	opener, ok := w.view.(directoryOpener)
	if !ok || w.visit != nil {
		return errors.ErrUnsupported
	}
	next := join(at, base)
	if strings.Count(next, "/") > maxDepth {
		return errTooDeep
	}
	return opener.openDirectory(next)
}

// directoryOpener is a view that opens directories to look into them. To those it opens anyway it need not look before.
type directoryOpener interface {
	openDirectory(name string) error
}

// dirOf is path.Dir for names that are clean and relative.
func dirOf(name string) string {
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		return name[:slash]
	}
	return "."
}

// join is path.Join for a clean relative directory and one component.
func join(dir, base string) string {
	switch {
	case base == "" || base == "." || base == "..":
		return path.Join(dir, base)
	case dir == ".":
		return base
	}
	return dir + "/" + base
}

// step goes from a directory to one of its names, through links if it is one.
func (w *walk) step(at, base string, links *int) (place, error) {
	next := join(at, base)
	if strings.Count(next, "/") > maxDepth {
		return place{}, errTooDeep
	}
	found, err := w.view.lstat(next)
	if w.visit != nil && err == nil && found.kind != kindFile {
		w.visit(next, found)
	}
	if err != nil || found.kind != kindLink {
		return place{next, found}, err
	}
	if *links++; *links > maxLinks {
		return place{}, errLoop
	}
	return w.follow(at, found.target, links)
}

// along goes one step on the way to a target. The directories of a device's path are crossed by thousands of links.
func (w *walk) along(at, component string, links *int) (place, error) {
	name := join(at, component)
	if w.dirs[name] == name {
		return place{name, node{kind: kindDirectory}}, nil
	}
	found, err := w.step(at, component, links)
	if err == nil && found.node.kind == kindDirectory && found.name == name {
		w.dirs[name] = name
	}
	return found, err
}

// follow goes from a directory along the target of a link.
func (w *walk) follow(at, target string, links *int) (place, error) {
	if strings.HasPrefix(target, "/") {
		at = "."
	}
	here := place{at, node{kind: kindDirectory}}
	for component := range strings.SplitSeq(target, "/") {
		var err error
		switch {
		case component == "" || component == ".":
			continue
		case here.node.kind != kindDirectory:
			return place{}, errNotDirectory
		case component == ".." && here.name == ".":
			return place{}, errOutside
		case component == "..":
			here = place{dirOf(here.name), node{kind: kindDirectory}}
		default:
			here, err = w.along(here.name, component, links)
		}
		if err != nil {
			return place{}, err
		}
	}
	return here, nil
}
