// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package hosttree

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// contents are the files and links below a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if entry.Type()&fs.ModeSymlink != 0 {
			found[path[len(dir):]], err = os.Readlink(path)
			return err
		}
		data, err := os.ReadFile(path)
		found[path[len(dir):]] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// What happens to a clone leaves its origin as it is.
func TestClone(t *testing.T) {
	machine := Xeon()
	machine.Onload = NewOnload()
	origin, clone := filepath.Join(t.TempDir(), "origin"), filepath.Join(t.TempDir(), "clone")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(origin, 0o755))
	must(machine.Write(origin))
	before := contents(t, origin)
	must(Clone(origin, clone))
	if diff := cmp.Diff(before, contents(t, clone)); diff != "" {
		t.Errorf("the clone differs (-origin +clone):\n%s", diff)
	}
	must(WriteSetting(clone, "/proc/sys/vm/swappiness", "10"))
	must(WriteProcess(clone, Process{PID: 1, Name: "init", AllowedCPUs: cpus.Of(1)}))
	must(SetOnloadVersion(clone, "9.9.9.9", OnloadInterfaceVersion))
	must(Tick(clone, time.Second))
	must(Boot(clone, BootOptions{CommandLine: "nosmt"}))
	if diff := cmp.Diff(before, contents(t, origin)); diff != "" {
		t.Errorf("the origin changed with its clone (-before +after):\n%s", diff)
	}
	if err := Clone(origin, clone); err == nil {
		t.Error("cloning into an existing folder: no error")
	}
}
