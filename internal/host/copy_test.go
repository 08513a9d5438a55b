// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestNoOtherSystemIsAHost: what runs no Linux is refused in words that help.
func TestNoOtherSystemIsAHost(t *testing.T) {
	if _, err := openCopy("/"); !errors.Is(err, errNoLinux) {
		t.Errorf("the root of another system gives %v", err)
	}
}

// TestCopyOpensFilesOnly keeps every access below the root, and off what blocks.
func TestCopyOpensFilesOnly(t *testing.T) {
	root := files{"proc/file": "12345", "proc/out": linkTo + "../../secret"}.write(t)
	must(t, os.WriteFile(filepath.Join(filepath.Dir(root), "secret"), []byte("secret"), 0o600))
	must(t, syscall.Mkfifo(filepath.Join(root, "proc/pipe"), 0o600))
	view := openAsCopy(t, root).tree.view()
	for name, want := range map[string]error{"proc/pipe": errNotRegular, "proc/out": errNotRegular, "proc": errNotRegular, "..": errOutside} {
		if content, err := view.readFile(name, smallFile); !errors.Is(err, want) {
			t.Errorf("reading %s gives %q, %v, want %v", name, content, err, want)
		}
	}
	if _, err := view.readDir("proc/file", 5); !errors.Is(err, errNotDirectory) {
		t.Errorf("listing a file gives %v", err)
	}
	for limit, want := range map[int]string{4: "longer than 4 bytes", 5: "", 6: ""} {
		var to strings.Builder
		err := view.copyFile("proc/file", limit, &to)
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("copying no more than %d bytes gives %v, want %q", limit, err, want)
		}
		if err == nil && to.String() != "12345" {
			t.Errorf("copied %q", to.String())
		}
	}
	if err := view.copyFile("proc/none", 5, io.Discard); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("copying nothing gives %v", err)
	}
}
