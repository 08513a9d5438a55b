// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// killedRoot names the folder that the process which is killed changes.
const killedRoot = "GUARD_KILLED_ROOT"

// many are operations that take a while: nothing but files, of whoever runs the test.
func many() []operation.Operation {
	all := make([]operation.Operation, 0, 40)
	for i := range 40 {
		all = append(all, operation.PutFile(fmt.Sprintf("/etc/modprobe.d/lowlatency-%d.conf", i), 0o644, strings.Repeat("x", 100*i)))
	}
	return all
}

// mine has the files belong to whoever runs the test, who may not give them to root.
type mine struct{ *hostfile.Root }

func (m mine) Create(name string, s hostfile.State) error {
	s.UID, s.GID = os.Getuid(), os.Getgid()
	return m.Root.Create(name, s)
}

func (m mine) Read(name string) (hostfile.State, error) {
	s, err := m.Root.Read(name)
	s.UID, s.GID = 0, 0
	return s, err
}

// TestKilledProcess is what the process does that is killed; by itself it does nothing.
func TestKilledProcess(t *testing.T) {
	root := os.Getenv(killedRoot)
	if root == "" {
		return
	}
	if _, err := guardBelow(t, root).Apply(context.Background(), wanted(many())); err != nil {
		t.Fatal(err)
	}
}

func guardBelow(t *testing.T, root string) *guard.Guard {
	t.Helper()
	disk, err := hostfile.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	})
	return guard.New(mine{disk}, guard.Below{Root: root}, func(string) {})
}

// tree is a host with some files of others.
func tree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range map[string]string{
		"etc/modprobe.d/lowlatency-7.conf": "before", "etc/modprobe.d/other.conf": "other", "var/lib/a": "",
		"proc/cmdline": "ro\n", "proc/sys/kernel/random/boot_id": "one\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// contents are the files of a folder with their modes.
func contents(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, "etc"), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		found[strings.TrimPrefix(name, root)] = fmt.Sprint(info.Mode(), string(content))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestKillAtAnyTime kills the process while it changes a real file system, as early and as late as it comes. The next guard
// puts everything back, or finds everything there.
func TestKillAtAnyTime(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole := tree(t)
	before := contents(t, whole)
	if _, err := guardBelow(t, whole).Apply(t.Context(), wanted(many())); err != nil {
		t.Fatal(err)
	}
	after := contents(t, whole)
	outcomes := map[string]int{}
	for try := range 15 {
		root := tree(t)
		command := exec.CommandContext(t.Context(), program, "-test.run", "^TestKilledProcess$")
		command.Env = append(os.Environ(), killedRoot+"="+root)
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		awaitJournal(t, root, try*800)
		// It may have ended before.
		_ = command.Process.Kill()
		_ = command.Wait()
		outcomes[outcome(t, root, before, after)]++
	}
	t.Log(outcomes)
}

// awaitJournal waits until the journal has some bytes, or is complete.
func awaitJournal(t *testing.T, root string, size int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		content, err := os.ReadFile(filepath.Join(root, guard.StateFolder, "journal"))
		if err == nil && (len(content) >= size || strings.Contains(string(content), `"Written"`)) {
			return
		}
	}
	t.Fatal("the process writes no journal")
}

func outcome(t *testing.T, root string, before, after map[string]string) string {
	t.Helper()
	g := guardBelow(t, root)
	if err := os.WriteFile(filepath.Join(root, "proc/sys/kernel/random/boot_id"), []byte("two\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Boot(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := contents(t, root)
	if cmp.Equal(got, before) {
		return "reverted"
	}
	if diff := cmp.Diff(after, got); diff != "" {
		t.Fatalf("neither as before nor as planned (-planned +got):\n%s", diff)
	}
	return "enacted"
}
