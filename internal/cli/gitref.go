// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// gitRefPrefix says that a value of --against is a ref of git, even where a file has that name.
const gitRefPrefix = "git:"

// gitRef returns the ref of git that a value of --against means, for files in a work tree of git; "" when it means none.
func gitRef(ctx context.Context, against string, files []string) (string, error) {
	ref, forced := strings.CutPrefix(against, gitRefPrefix)
	if !forced && (against == "-" || exists(against) || len(files) == 0) {
		return "", nil
	}
	if strings.HasPrefix(ref, "-") {
		return "", fmt.Errorf("--against %q is no ref of git", against)
	}
	switch {
	case isCommit(ctx, folderOf(files), ref):
		return ref, nil
	case forced:
		return "", fmt.Errorf("--against %q: the folder of the files has no such ref of git; a shallow clone may lack it", against)
	default:
		return "", nil
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// isCommit reports whether a ref of git leads to a commit.
func isCommit(ctx context.Context, folder, ref string) bool {
	_, err := git(ctx, folder, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	return err == nil
}

// folderOf is where git is asked: the folder of the first file.
func folderOf(files []string) string {
	if len(files) == 0 || files[0] == "-" {
		return "."
	}
	if about, err := os.Stat(files[0]); err == nil && about.IsDir() {
		return files[0]
	}
	return filepath.Dir(files[0])
}

// manifestsAt reads the files as they were at a ref of git. What was not there yet is left out.
func (a *app) manifestsAt(ctx context.Context, ref string, files []string) (*manifests, error) {
	if slices.Contains(files, "-") {
		return nil, errors.New("with a ref of git in --against, every -f must be a file or a folder, because the standard input has no history")
	}
	dir, err := os.MkdirTemp("", "lowlatency-against-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the files of %s: %w", ref, err)
	}
	// Copies, which nobody needs afterwards.
	defer func() { _ = os.RemoveAll(dir) }()
	var copies []string
	for i, file := range files {
		kept, err := copyAt(ctx, ref, file, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		if kept != "" {
			copies = append(copies, kept)
		}
	}
	if len(copies) == 0 {
		return &manifests{}, nil
	}
	quiet := &app{Streams: Streams{In: a.In, Out: a.Out, Err: &bytes.Buffer{}}, release: a.release}
	read, err := quiet.readManifests(ctx, copies)
	if err != nil {
		return nil, fmt.Errorf("at %s: %s", ref, strings.ReplaceAll(err.Error(), dir+string(filepath.Separator), ""))
	}
	return read, nil
}

// copyAt writes a file or the files of a folder as they were at a ref below a folder, and returns what stands for it there; ""
// when it was not there. What is gone from the work tree was what it was at the ref.
func copyAt(ctx context.Context, ref, file, into string) (string, error) {
	where, name, folder := filepath.Dir(file), filepath.Base(file), false
	about, err := os.Stat(file)
	switch {
	case err == nil && about.IsDir():
		where, name, folder = file, "./", true
	case err != nil && isTree(ctx, where, ref+":./"+name):
		return copyTree(ctx, ref, where, name, into)
	}
	listed, err := git(ctx, where, "ls-tree", "--name-only", "-z", ref, "--", name)
	if err != nil {
		return "", err
	}
	names := slices.DeleteFunc(strings.Split(string(listed), "\x00"), func(name string) bool {
		return name == "" || folder && !slices.Contains(manifestEndings(), filepath.Ext(name))
	})
	if len(names) == 0 {
		return "", nil
	}
	if err := showAll(ctx, ref, where, names, into); err != nil {
		return "", err
	}
	if folder {
		return into, nil
	}
	return filepath.Join(into, name), nil
}

// isTree reports whether git knows a folder by this name.
func isTree(ctx context.Context, where, object string) bool {
	kind, err := git(ctx, where, "cat-file", "-t", object)
	return err == nil && strings.TrimSpace(string(kind)) == "tree"
}

// copyTree writes the files of a folder that is gone from the work tree.
func copyTree(ctx context.Context, ref, where, name, into string) (string, error) {
	listed, err := git(ctx, where, "ls-tree", "--name-only", "-z", ref+":./"+name)
	if err != nil {
		return "", err
	}
	var names []string
	for file := range strings.SplitSeq(string(listed), "\x00") {
		if slices.Contains(manifestEndings(), filepath.Ext(file)) {
			names = append(names, name+"/"+file)
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return into, showAll(ctx, ref, where, names, into)
}

// showAll writes files of a folder as they were at a ref into another one.
func showAll(ctx context.Context, ref, where string, names []string, into string) error {
	if err := os.MkdirAll(into, 0o700); err != nil {
		return fmt.Errorf("making a folder for the files of %s: %w", ref, err)
	}
	for _, name := range names {
		text, err := git(ctx, where, "show", ref+":./"+name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(name)), text, 0o600); err != nil {
			return fmt.Errorf("keeping %s of %s: %w", name, ref, err)
		}
	}
	return nil
}

// git runs git in a folder and returns what it prints.
func git(ctx context.Context, folder string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "git", append([]string{"-C", folder}, arguments...)...)
	var out, complaint bytes.Buffer
	command.Stdout, command.Stderr = &out, &complaint
	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", arguments[0], err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}
