// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/grub"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/kubeletservice"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/systemdboot"
)

// survival says what a power cut leaves of names that were not synced.
type survival int

const (
	// nothingUnsynced survives.
	nothingUnsynced survival = iota
	// everything survives, as if the disk had written it just before.
	everything
	// firstHalf of what was not synced survives.
	firstHalf
)

// errCut is the power cut.
var errCut = errors.New("the power was cut")

// pending is a change of a name that was not synced.
type pending struct {
	folder string
	apply  func(map[string]hostfile.State)
}

// world is a simulated host: a disk that loses what was not synced, GRUB with its environment, and a kernel.
type world struct {
	t *testing.T
	// seen is what programs see, kept what a power cut leaves.
	seen, kept map[string]hostfile.State
	unsynced   []pending
	// live are the values of the running kernel, firmware what it starts with.
	live, firmware map[string]string
	boots          int
	// steps counts what was done to the disk; at the step cut the power goes, after part of the bytes of an append.
	steps, cut, part int
	// appended are the lengths of what was appended, by step.
	appended map[int]int
	survival survival
	// hangs tells that the kernel does not come up with the arguments of a trial.
	hangs bool
	// full tells that from this step on no record fits on the disk whole; 0 for a disk with room.
	full int
	// noFiles tells that the disk has no room for another file.
	noFiles bool
	// stuck tells that no value of the running kernel can be set.
	stuck bool
	// broken makes grub-mkconfig fail.
	broken error
	tools  []string
	// ran is told of each program; nil for nobody.
	ran func(text string)
	// stubborn is a program that fails; "" for none.
	stubborn string
	// linked is a folder that is a link, below which nothing is looked at; "" for none.
	linked string
	// unreadable is a path that gives an error of the disk; "" for none.
	unreadable string
	// kubelet is nil on a host without one.
	kubelet *kubeletservice.Service
	// tuned is nil on a host without TuneD.
	tuned *tunedDaemon
	// loader starts the line of the default entry, or once that of the trial, "" where none is to be tried.
	loader func(w *world) (line, trial string)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, startGRUB, map[string]hostfile.State{
		"/etc/default/grub":   hostfile.File("GRUB_DEFAULT=0\n", 0o644),
		"/boot/grub/grub.cfg": hostfile.File(grub.Config(baseLine), 0o444),
		"/boot/grub/grubenv":  environment(""),
		"/proc/1/mounts":      hostfile.File("/dev/vda1 / ext4 rw 0 0\n", 0o444),
		"/dev/vda1":           {Type: hostfile.Other},
	})
}

// newWorldWith is a host with the files of a boot loader.
func newWorldWith(t *testing.T, loader func(w *world) (line, trial string), files map[string]hostfile.State) *world {
	t.Helper()
	w := &world{t: t, cut: -1, appended: map[int]int{}, firmware: map[string]string{"/proc/sys/vm/stat_interval": "1"}, loader: loader, seen: files}
	w.seen["/etc/sysctl.d/60-a.conf"] = hostfile.File("a", 0o600)
	// Somebody has put a file there before us.
	w.seen["/etc/modprobe.d/lowlatency-trading.conf"] = hostfile.State{Type: hostfile.Regular, Mode: 0o640, UID: 3, GID: 4, Label: "etc_t", Content: []byte("old")}
	for name := range maps.Clone(w.seen) {
		for folder := path.Dir(name); folder != "/"; folder = path.Dir(folder) {
			w.seen[folder] = hostfile.NewFolder()
		}
	}
	for _, folder := range []string{"/", "/var", "/var/lib", "/proc", "/run", "/etc/systemd", "/etc/systemd/system"} {
		w.seen[folder] = hostfile.NewFolder()
	}
	w.start(baseLine)
	w.kept = maps.Clone(w.seen)
	return w
}

// baseLine is the line of the host before anything is added.
const baseLine = "root=UUID=1 ro quiet"

func environment(variables string) hostfile.State {
	return hostfile.File(grub.Environment(variables), 0o600)
}

// start boots a kernel.
func (w *world) start(line string) {
	w.boots++
	maps.DeleteFunc(w.seen, func(name string, _ hostfile.State) bool { return strings.HasPrefix(name, "/run/") })
	w.seen["/proc/cmdline"] = hostfile.File("BOOT_IMAGE=/boot/vmlinuz-6.1 "+line+"\n", 0o444)
	w.seen["/proc/sys/kernel/random/boot_id"] = hostfile.File("boot-"+strconv.Itoa(w.boots)+"\n", 0o444)
	w.live = maps.Clone(w.firmware)
	if w.kubelet != nil {
		w.kubelet.Stop()
	}
	if w.tuned != nil {
		w.tuned.found = nil
	}
}

// reboot switches the machine off and on: what was not synced is lost as the survival says, or all is there after an
// orderly shutdown. GRUB reads its environment and its configuration.
func (w *world) reboot(orderly bool) {
	keep := map[survival]int{nothingUnsynced: 0, everything: len(w.unsynced), firstHalf: len(w.unsynced) / 2}[w.survival]
	if orderly {
		keep = len(w.unsynced)
	}
	for _, p := range w.unsynced[:keep] {
		p.apply(w.kept)
	}
	w.unsynced = nil
	if !orderly {
		// A cut that is still to come comes after an orderly start, too.
		w.cut = -1
	}
	w.seen = maps.Clone(w.kept)
	line, trial := w.loader(w)
	if trial != "" && !w.hangs {
		line = trial
	}
	w.start(line)
	w.kept = maps.Clone(w.seen)
}

// startGRUB plays GRUB, which clears its variable before it starts anything.
func startGRUB(w *world) (line, trial string) {
	read := func(name string) string { return string(w.seen[name].Content) }
	line, trial, left := grub.Start(read(grub.ConfigFile), read(grub.CustomFile), read(grub.EnvironmentFile))
	if left != read(grub.EnvironmentFile) {
		w.seen[grub.EnvironmentFile] = hostfile.File(left, 0o600)
	}
	return line, trial
}

// step is one thing that is done to the disk. It panics with the power cut, as a process does not go on after one.
func (w *world) step() {
	w.steps++
	if w.steps == w.cut {
		panic(errCut)
	}
}

// Read returns what is at a path.
// Nothing is read below a link. Read fails for values of the kernel, as the disk does for many of them: /sys/bus is full of links, which it does not follow.
func (w *world) Read(name string) (hostfile.State, error) {
	if _, isValue := w.live[name]; isValue {
		return hostfile.State{}, fmt.Errorf("opening %s: %w", name, unix.ENOTDIR)
	}
	if w.linked != "" && strings.HasPrefix(name, w.linked+"/") {
		return hostfile.State{}, fmt.Errorf("opening %s: %w", name, unix.ENOTDIR)
	}
	if name == w.unreadable && name != "" {
		return hostfile.State{}, fmt.Errorf("opening %s: %w", name, unix.EIO)
	}
	return w.seen[name], nil
}

func (w *world) do(folder string, apply func(map[string]hostfile.State)) error {
	w.step()
	apply(w.seen)
	w.unsynced = append(w.unsynced, pending{folder, apply})
	return nil
}

// Create puts a file where none is.
func (w *world) Create(name string, s hostfile.State) error {
	if w.seen[name].Type != hostfile.Absent {
		return unix.EEXIST
	}
	if w.noFiles {
		return unix.ENOSPC
	}
	if w.seen[path.Dir(name)].Type != hostfile.Folder {
		return unix.ENOENT
	}
	if strings.HasPrefix(name, systemdboot.Partition+"/") {
		// FAT has one owner, mode and label for all files, and refuses another label.
		if s.Label != "" && s.Label != fatLabel {
			return unix.ENOTSUP
		}
		s.Mode, s.Label = fatMode, fatLabel
	}
	return w.do(path.Dir(name), func(files map[string]hostfile.State) { files[name] = s })
}

// Rename replaces a file.
func (w *world) Rename(from, to string) error {
	s := w.seen[from]
	return w.do(path.Dir(to), func(files map[string]hostfile.State) {
		delete(files, from)
		files[to] = s
	})
}

// Remove removes a file or an empty folder.
func (w *world) Remove(name string) error {
	if w.seen[name].Type == hostfile.Absent {
		return unix.ENOENT
	}
	for other := range w.seen {
		if strings.HasPrefix(other, name+"/") {
			return unix.ENOTEMPTY
		}
	}
	return w.do(path.Dir(name), func(files map[string]hostfile.State) { delete(files, name) })
}

// Sync makes names survive. A file system that keeps its order keeps what was done before in other folders, too; this one
// does not.
func (w *world) Sync(folder string) error {
	w.step()
	w.unsynced = slices.DeleteFunc(w.unsynced, func(p pending) bool {
		if p.folder == folder {
			p.apply(w.kept)
		}
		return p.folder == folder
	})
	return nil
}

// Append adds bytes; a power cut may leave the first of them.
func (w *world) Append(name string, content []byte) error {
	w.steps++
	w.appended[w.steps] = len(content)
	isFull := w.full > 0 && w.steps >= w.full
	if w.steps == w.cut || isFull {
		content = content[:min(w.part, len(content))]
	}
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		s := files[name]
		s.Content = append(slices.Clone(s.Content), content...)
		files[name] = s
	}
	if w.steps == w.cut {
		panic(errCut)
	}
	if isFull {
		return unix.ENOSPC
	}
	return nil
}

// Truncate cuts a file.
func (w *world) Truncate(name string, size int64) error {
	w.step()
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		s := files[name]
		s.Content = slices.Clone(s.Content[:size])
		files[name] = s
	}
	return nil
}

// SetVariable changes a variable of the firmware, which keeps it at once.
func (w *world) SetVariable(name string, content []byte) error {
	w.step()
	for _, files := range []map[string]hostfile.State{w.seen, w.kept} {
		delete(files, name)
		if len(content) > 0 {
			files[name] = hostfile.State{Type: hostfile.Regular, Mode: 0o644, Content: content}
		}
	}
	return nil
}

// Names are the names in a folder.
func (w *world) Names(folder string) ([]string, error) {
	var names []string
	for name := range w.seen {
		if path.Dir(name) == folder {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// Unit is what systemd says of a service.
func (w *world) Unit(_ context.Context, name string) (*kubelet.Unit, error) {
	if w.kubelet == nil {
		return nil, nil //nolint:nilnil // There is no such service, and that is no error.
	}
	return w.kubelet.Unit(name), nil
}

// Health is what the kubelet says.
func (w *world) Health(context.Context, string) error { return w.kubelet.Health() }

// Tool does what GRUB's and systemd's programs do.
func (w *world) Tool(ctx context.Context, program string, arguments ...string) error {
	// As the real ones, programs do not run for whoever was interrupted.
	if err := ctx.Err(); err != nil {
		return err
	}
	text := strings.Join(append([]string{path.Base(program)}, arguments...), " ")
	if w.ran != nil {
		w.ran(text)
	}
	if w.stubborn == text {
		return unix.ETIMEDOUT
	}
	if w.kubelet != nil && path.Base(program) == "systemctl" {
		w.step()
		w.kubelet.Tool(arguments...)
	}
	w.tools = append(w.tools, strings.Join(append([]string{path.Base(program)}, arguments...), " "))
	if w.tuned != nil && slices.Equal(arguments, []string{"try-restart", "tuned.service"}) {
		w.tuned.stop(w)
		w.tuned.start(w)
	}
	if path.Base(program) != "grub-mkconfig" {
		return nil
	}
	if w.broken != nil {
		return w.broken
	}
	made := hostfile.File(grub.Made(baseLine, string(w.seen[grub.DefaultsFile].Content), string(w.seen[grub.ArgumentsFile].Content)), 0o600)
	// As the real one does, it writes beside what it was told, looks at that, and renames it.
	to, beside := arguments[1], arguments[1]+".new"
	return errors.Join(
		w.do(path.Dir(to), func(files map[string]hostfile.State) { files[beside] = made }),
		w.do(path.Dir(to), func(files map[string]hostfile.State) {
			files[to] = made
			delete(files, beside)
		}))
}

// Get reads a value of the running kernel.
func (w *world) Get(name string) (string, error) {
	value, known := w.live[name]
	if !known {
		return "", fmt.Errorf("%s: %w", name, unix.ENOENT)
	}
	return value, nil
}

// Set writes one.
func (w *world) Set(name, value string) error {
	w.steps++
	if w.steps == w.cut {
		panic(errCut)
	}
	if w.stuck {
		return unix.EIO
	}
	if w.live[name] != value {
		// What was said in other units counts no more.
		for _, units := range [][2]string{{"ratio", "bytes"}, {"bytes", "ratio"}} {
			if front, ok := strings.CutSuffix(name, units[0]); ok && strings.HasPrefix(name, "/proc/sys/vm/dirty_") {
				w.live[front+units[1]] = "0"
			}
		}
	}
	w.live[name] = value
	return nil
}

// asBefore fails the test when the host is not what it was, or has booted more or less often than that takes.
func (w *world) asBefore(t *testing.T, before map[string]hostfile.State, boots int) {
	t.Helper()
	if diff := cmp.Diff(before, w.manifest()); diff != "" || w.boots != boots {
		t.Errorf("%d boots, want %d; the host before and after (-before +after):\n%s", w.boots, boots, diff)
	}
}

// fails tries a plan whose kernel does not come up, and then lets another come up.
func (w *world) fails(t *testing.T, plan, then []operation.Operation) {
	t.Helper()
	before := w.manifest()
	w.hangs = true
	w.enact(plan)
	w.asBefore(t, before, 2)
	w.hangs = false
	next, err := w.guard().Apply(t.Context(), wanted(then))
	if err != nil {
		t.Fatal(err)
	}
	w.settle(next, false)
}

func (w *world) guard() *guard.Guard { return guard.New(w, w, func(string) {}) }

// until calls do, and tells whether the power was cut meanwhile.
func (w *world) until(do func() error) (cut bool, err error) {
	defer func() {
		if got := recover(); got != nil {
			if got != errCut { //nolint:errorlint // A value of panic is no error that anybody wraps.
				panic(got)
			}
			cut = true
		}
	}()
	return false, do()
}

// manifest is everything on the disk but what the guard remembers and the kernel shows.
func (w *world) manifest() map[string]hostfile.State {
	files := maps.Clone(w.seen)
	maps.DeleteFunc(files, func(name string, _ hostfile.State) bool {
		return strings.HasPrefix(name, "/var/lib/lowlatency") || strings.HasPrefix(name, "/proc")
	})
	return files
}
