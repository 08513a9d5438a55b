// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package licences finds the licences of the modules that programs contain: for each of their packages the licence file that is
// nearest to it on the way up to the root of its module, as a module may hold code of others with terms of their own.
package licences

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// StandardLibrary is the path under which Go's own packages are listed. They have no version of their own: it is the compiler's.
const StandardLibrary = "stdlib"

// leastCovered is the part of a licence file, in percent, that must be a licence's known text. Less is somebody's own terms.
const leastCovered = 75

// Module is a module whose packages are in a program.
type Module struct {
	Path, Version string
	// Licences are SPDX identifiers, sorted.
	Licences []string
	// Files are its licence files and notices, sorted by name.
	Files []File
}

// File is a licence file or a notice.
type File struct {
	// Name of the file, relative to the root of its module.
	Name string
	Text []byte
}

// goPackage is what "go list -json" says of a package.
type goPackage struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// Of returns the modules of the packages below the folder and all that these import on one of the platforms ("linux/amd64"),
// sorted by path, without the module of the folder itself. A package without a licence file, and a file with a text that is no
// known licence, is an error that names it.
func Of(ctx context.Context, folder string, platforms []string, patterns ...string) ([]Module, error) {
	root, err := goRoot(ctx, folder)
	if err != nil {
		return nil, err
	}
	found := map[string]*collection{}
	for _, platform := range platforms {
		packages, err := list(ctx, folder, platform, patterns)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			if err := add(found, p, root); err != nil {
				return nil, err
			}
		}
	}
	modules := make([]Module, 0, len(found))
	for _, path := range slices.Sorted(maps.Keys(found)) {
		module, err := found[path].module()
		if err != nil {
			return nil, err
		}
		modules = append(modules, module)
	}
	return modules, nil
}

// collection are the files of a module that were found so far.
type collection struct {
	path, version, root string
	// files by whether they are licences; what is no licence is a notice.
	files map[string]bool
}

func add(found map[string]*collection, p goPackage, goRoot string) error {
	path, version, root := StandardLibrary, "", goRoot
	if !p.Standard {
		if p.Module == nil || p.Module.Main {
			return nil
		}
		path, version, root = p.Module.Path, p.Module.Version, p.Module.Dir
	}
	c := found[path]
	if c == nil {
		c = &collection{path: path, version: version, root: root, files: map[string]bool{}}
		found[path] = c
	}
	if p.Standard {
		// Go's distribution has one licence. That of crypto/internal/boring is for objects that only a build with
		// GOEXPERIMENT=boringcrypto links.
		return c.nearest(root)
	}
	return c.nearest(p.Dir)
}

// licenceNames and noticeNames are how such files are called.
var (
	licenceNames = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense)([-._].*)?$`)
	noticeNames  = regexp.MustCompile(`(?i)^notices?([-._].*)?$`)
	// noText are files that are called so and are code.
	noText = regexp.MustCompile(`(?i)\.(go|py|sh|json|ya?ml)$`)
)

// nearest adds the files of the package's folder, or of the next one above that has a licence.
func (c *collection) nearest(start string) error {
	for folder := start; strings.HasPrefix(folder, c.root); folder = filepath.Dir(folder) {
		has, err := c.addFiles(folder)
		if err != nil || has {
			return err
		}
	}
	return fmt.Errorf("%s has no licence file between %s and the root of its module", c.path, start)
}

// addFiles adds the licence files and notices of a folder, and reports whether it has a licence.
func (c *collection) addFiles(folder string) (has bool, err error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false, err
	}
	for _, entry := range entries {
		name := entry.Name()
		licence := licenceNames.MatchString(name)
		if entry.IsDir() || noText.MatchString(name) || !licence && !noticeNames.MatchString(name) {
			continue
		}
		relative, err := filepath.Rel(c.root, filepath.Join(folder, name))
		if err != nil {
			return false, err
		}
		c.files[relative] = licence
		has = has || licence
	}
	return has, nil
}

// module reads the files.
func (c *collection) module() (Module, error) {
	module := Module{Path: c.path, Version: c.version}
	known := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		text, err := os.ReadFile(filepath.Join(c.root, name))
		if err != nil {
			return Module{}, err
		}
		module.Files = append(module.Files, File{Name: filepath.ToSlash(name), Text: text})
		if !c.files[name] {
			continue
		}
		identifiers, err := Identify(text)
		if err != nil {
			return Module{}, fmt.Errorf("%s: %s: %w", c.path, name, err)
		}
		for _, identifier := range identifiers {
			known[identifier] = true
		}
	}
	module.Licences = slices.Sorted(maps.Keys(known))
	return module, nil
}

// Texts are the licences and notices of all modules in one text, each below the names of its module and file.
func Texts(modules []Module) []byte {
	var text bytes.Buffer
	for _, module := range modules {
		for _, file := range module.Files {
			fmt.Fprintf(&text, "==== %s %s\n\n%s\n\n", strings.TrimSpace(module.Path+" "+module.Version), file.Name, bytes.TrimSpace(file.Text))
		}
	}
	return text.Bytes()
}

// Identify returns the SPDX identifiers of the licences in a text, sorted. A text of which too much is no known licence is an error.
func Identify(text []byte) ([]string, error) {
	coverage := licensecheck.Scan(text)
	if len(coverage.Match) == 0 || coverage.Percent < leastCovered {
		return nil, fmt.Errorf("only %.0f %% of the text are a known licence, of %d %% that must be", coverage.Percent, leastCovered)
	}
	identifiers := make([]string, 0, len(coverage.Match))
	for _, match := range coverage.Match {
		identifiers = append(identifiers, match.ID)
	}
	slices.Sort(identifiers)
	return slices.Compact(identifiers), nil
}

func list(ctx context.Context, folder, platform string, patterns []string) ([]goPackage, error) {
	system, architecture, _ := strings.Cut(platform, "/")
	command := exec.CommandContext(ctx, "go", append([]string{"list", "-deps", "-json=Dir,Standard,Module"}, patterns...)...)
	command.Dir = folder
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+architecture)
	text, err := run(command)
	if err != nil {
		return nil, err
	}
	packages := []goPackage{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	for {
		var p goPackage
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages, nil
		case err != nil:
			return nil, fmt.Errorf("reading what go list prints: %w", err)
		}
		packages = append(packages, p)
	}
}

// goRoot is where Go's own packages and their licence are.
func goRoot(ctx context.Context, folder string) (string, error) {
	command := exec.CommandContext(ctx, "go", "env", "GOROOT")
	command.Dir = folder
	text, err := run(command)
	return strings.TrimSpace(string(text)), err
}

func run(command *exec.Cmd) ([]byte, error) {
	text, err := command.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: %w: %s", command, err, failed.Stderr)
	}
	return text, err
}
