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

// regular follows every link of a path to a regular file. A directory that was just listed has told what its names are.
func (w *walk) regular(name string) (string, error) {
	links := 0
	parent, err := w.directory(dirOf(name), &links)
	if err != nil {
		return "", err
	}
	base := path.Base(name)
	if lister, ok := w.view.(directoryLister); ok && lister.kindListed(parent, base) == kindFile {
		return join(parent, base), nil
	}
	found, err := w.resolve(name)
	switch {
	case err != nil:
		return "", err
	case found.node.kind != kindFile:
		return "", found.node.notRegular()
	}
	return found.name, nil
}

// list follows every link of a directory's path and lists it, or fails if it holds more than limit names. Most are no links:
// what can be listed without following one need not be looked at before.
func (w *walk) list(name string, limit int) ([]entry, error) {
	if _, known := w.dirs[name]; !known {
		if entries, err := w.listAtOnce(name, limit); err == nil || errors.Is(err, fs.ErrNotExist) {
			return entries, err
		}
	}
	found, err := w.folder(name)
	if err != nil {
		return nil, err
	}
	return w.view.readDir(found, limit)
}

// listAtOnce lists what is certainly a directory and remembers it; any error but that nothing is there means that the name must be
// looked at.
func (w *walk) listAtOnce(name string, limit int) ([]entry, error) {
	if _, ok := w.view.(directoryLister); !ok || w.visit != nil {
		return nil, errors.ErrUnsupported
	}
	parent, err := w.parentOf(name)
	if err != nil {
		return nil, err
	}
	found := join(parent, path.Base(name))
	if strings.Count(found, "/") > maxDepth {
		return nil, errTooDeep
	}
	entries, err := w.view.readDir(found, limit)
	switch {
	case err == nil:
		w.dirs[name] = found
	case errors.Is(err, fs.ErrNotExist):
		w.missing[name] = err
	}
	return entries, err
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

// directoryLister is a view whose readDir follows no link, and which remembers what the directory listed latest holds.
type directoryLister interface {
	// kindListed is what a name of that directory stands for, 0 when the view cannot tell.
	kindListed(dir, base string) kind
}

// dirOf is path.Dir for names that are clean and relative.
func dirOf(name string) string {
	if slash := strings.LastIndexByte(name, '/'); slash >= 0 {
		return name[:slash]
	}
	return "."
}

// baseOf is the last component of a name, which must not lead upwards.
func baseOf(name string) (string, error) {
	base := path.Base(name)
	if base == ".." {
		return "", errOutside
	}
	return base, nil
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
	found := place{name, node{kind: kindDirectory}}
	err := w.openDirectory(at, component)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		found, err = w.step(at, component, links)
	}
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
