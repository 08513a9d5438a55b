// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/bootloader"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// target is what is to be at a path.
type target struct {
	path  string
	role  journal.Role
	state hostfile.State
}

// work is everything that a change of the host writes, known before the first write.
type work struct {
	begin   journal.Begin
	targets []target
	live    []setting
	// held are notes of settings that have their values already.
	held []journal.Change
	// arguments tells that the command line changes; loader and trial are set then.
	arguments bool
	loader    bootloader.Loader
	trial     []target
	// stuck says why a kernel that does not come up would stay; "" where the loader comes back by itself.
	stuck string
	// sealed says which disk may not open with other arguments, or why that cannot be told; "" for none.
	sealed string
	reboot bool
	// kubelet tells that it reads what changes when it starts, isKubeletYoung that its process could not be judged yet.
	kubelet, isKubeletYoung bool
}

// isNothing tells that the host is as it is to be.
func (w *work) isNothing() bool { return len(w.targets)+len(w.live) == 0 && !w.arguments }

// leaving are the values that the running kernel had before those that are no longer wanted.
func (w *work) leaving() []setting {
	wanted := map[string]bool{}
	for _, s := range settings(w.begin.Operations) {
		wanted[s.path] = true
	}
	return slices.DeleteFunc(slices.Clone(w.live), func(s setting) bool { return wanted[s.path] })
}

// setting is a value of the running kernel.
type setting struct{ path, value string }

// prepare finds out what has to be written. It changes nothing.
func (g *Guard) prepare(ctx context.Context, h *history, wanted Wanted) (*work, error) {
	operations := operation.Ordered(wanted.Operations)
	w := &work{begin: journal.Begin{
		Number: h.number(), Hash: operation.Hash(operations), Operations: operations, Plan: wanted.Plan, BootID: h.bootID, DeadlineSeconds: wanted.DeadlineSeconds,
		Instruction: wanted.Instruction,
	}}
	ours, foreign, err := g.mayChange(h, operations)
	if err != nil {
		return nil, err
	}
	w.begin.Differences = foreign
	if w.targets, err = g.differing(ours, operations); err != nil {
		return nil, err
	}
	if err := g.checkStateFiles(operations); err != nil {
		return nil, err
	}
	w.live, w.held = g.liveSettings(h, operations), g.noteHeld(h, operations)
	change := h.argumentsFor(operations)
	w.arguments = len(change.Add)+len(change.Remove) > 0
	again := h.runAgain(w.targets, operations)
	w.kubelet = h.changesStateFiles(operations) || slices.ContainsFunc(w.targets, isKubelets) || len(again) > 0
	w.reboot = w.arguments || slices.ContainsFunc(w.targets, needsBootBut(again)) || g.unknownBefore(h, operations)
	if err := g.prepareKubelet(ctx, w, again); err != nil {
		return nil, err
	}
	if w.arguments {
		err = g.prepareTrial(ctx, w, change)
	}
	return w, err
}

// checkStateFiles refuses to have files removed at each start that cannot even be looked at, such as those below a link.
func (g *Guard) checkStateFiles(operations []operation.Operation) error {
	for _, name := range stateFiles(operations) {
		if _, err := g.disk.Read(name); err != nil {
			return fmt.Errorf("the kubelet's state file %s cannot be removed at each start: %w", name, err)
		}
	}
	return nil
}

// mayChange returns which changes that are in force are nobody else's, and what others have made of the rest: that is an error unless the
// host is to be as it was before, when it is left as it is.
func (g *Guard) mayChange(h *history, operations []operation.Operation) (ours []journal.Change, foreign []string, err error) {
	ours, foreign, err = g.compare(h.inForce, operations)
	if err != nil {
		return nil, nil, err
	}
	if len(foreign) > 0 && len(operations) > 0 {
		return nil, nil, &ForeignError{Differences: foreign}
	}
	for _, difference := range foreign {
		g.tell("Left as it is: " + difference)
	}
	return ours, foreign, nil
}

// prepareTrial finds out how arguments are tried.
func (g *Guard) prepareTrial(ctx context.Context, w *work, change bootloader.Arguments) error {
	var err error
	if w.loader, err = bootloader.Find(g.bootHost()); err != nil {
		return withArguments(err, change)
	}
	writes, err := w.loader.Trial(change)
	if err != nil {
		return withArguments(err, change)
	}
	if err := w.loader.Check(ctx, change); err != nil {
		return withArguments(err, change)
	}
	w.sealed = bootloader.Sealed(g.bootHost())
	if err := bootloader.CheckSealed(w.sealed, change); err != nil {
		return withArguments(err, change)
	}
	for _, write := range writes {
		w.trial = append(w.trial, target{path: write.Path, role: journal.Trial, state: write.State})
	}
	w.stuck, err = w.loader.Stuck()
	return err
}

// withArguments says which arguments a boot loader does not get: whoever adds them by hand needs them, and on a cluster nothing else tells.
func withArguments(err error, change bootloader.Arguments) error {
	if len(change.Add) == 0 {
		return fmt.Errorf("%w (the arguments to take away are: %s)", err, strings.Join(change.Remove, " "))
	}
	return fmt.Errorf("%w (the arguments are: %s)", err, strings.Join(change.Add, " "))
}

// differing are the targets that are not as they are to be.
func (g *Guard) differing(ours []journal.Change, operations []operation.Operation) ([]target, error) {
	all, err := g.targets(ours, operations)
	if err != nil {
		return nil, err
	}
	var differing []target
	for _, t := range all {
		now, err := g.disk.Read(t.path)
		if err != nil {
			return nil, err
		}
		if !now.Equal(t.state) {
			differing = append(differing, t)
		}
	}
	return differing, nil
}

// needsBootBut is needsBoot for all but the files of some units.
func needsBootBut(units []string) func(target) bool {
	return func(t target) bool {
		return needsBoot(t) && (path.Dir(t.path) != systemdFolder || !slices.Contains(units, path.Base(t.path)))
	}
}

// runAgain are our own units with another content than the one in force, that the kubelet needs and that set what they set whatever was
// before: their operations have them restarted. They run once more while the kubelet is stopped.
func (h *history) runAgain(targets []target, operations []operation.Operation) []string {
	if h.inForce == nil {
		return nil
	}
	inForce := files(h.inForce.begin.Operations)
	var again []string
	for _, t := range targets {
		before := inForce[t.path]
		if before.Type == hostfile.Regular && t.state.Type == hostfile.Regular && isRepeated(operations, path.Base(t.path)) {
			again = append(again, path.Base(t.path))
		}
	}
	return again
}

// isRepeated reports whether a unit is one of the operations' own and restarted by them. It is no service that runs on: it has nothing to
// do but where it has changed.
func isRepeated(operations []operation.Operation, unit string) bool {
	has := func(kind operation.Kind, state operation.State) bool {
		return slices.ContainsFunc(operations, func(o operation.Operation) bool { return o.Kind == kind && o.Name == unit && o.State == state })
	}
	return has(operation.Unit, operation.Enabled) && has(operation.Service, operation.Restarted)
}

// needsBoot reports whether a file is read by something that starts at boot only. The kubelet can be started alone.
func needsBoot(t target) bool {
	if t.state.Type == hostfile.Folder || isKubelets(t) {
		return false
	}
	for _, folder := range []string{"/etc/systemd/", "/etc/modules-load.d/", "/etc/udev/", "/etc/containerd/", "/etc/crio/", "/etc/kubernetes/", "/etc/rancher/", "/var/lib/"} {
		if strings.HasPrefix(t.path, folder) {
			return true
		}
	}
	return false
}

// targets are the files of the operations, and what was before at the paths of ours that they leave.
func (g *Guard) targets(ours []journal.Change, operations []operation.Operation) ([]target, error) {
	wanted := files(operations)
	var left []target
	for _, c := range ours {
		if _, stays := wanted[c.Path]; !stays && !keptUntilVerified(c) {
			left = append(left, target{path: c.Path, state: c.Before})
		}
	}
	return g.ordered(wanted, left)
}

// compare returns which changes that are in force are as they were made, and what others have made of the rest. What is as it was before us
// is somebody's change, too, unless nothing is to be written there any more: then it is already as it is to be.
func (g *Guard) compare(inForce *enactment, operations []operation.Operation) (ours []journal.Change, differences []string, err error) {
	if inForce == nil {
		return nil, nil, nil
	}
	isWritten := written(operations)
	for _, c := range inForce.changes {
		if c.Role != journal.Ours {
			continue
		}
		now, err := g.disk.Read(c.Path)
		if err != nil {
			return nil, nil, err
		}
		if now.Equal(c.After) || now.Equal(c.Before) && !isWritten(c) {
			ours = append(ours, c)
			continue
		}
		differences = append(differences, difference(c, now))
	}
	return ours, differences, nil
}

// written tells which of the paths that are in force operations write to again: their files, and what the arguments are in. Folders are
// made again where they are missing, and what was in them tells that others have removed them.
func written(operations []operation.Operation) func(journal.Change) bool {
	wanted, arguments := files(operations), operation.Arguments(operations)
	return func(c journal.Change) bool {
		_, isFile := wanted[c.Path]
		return isFile || len(arguments) > 0 && c.After.Type != hostfile.Folder && keptUntilVerified(c)
	}
}

// keptUntilVerified are what the arguments are in, and folders, which are empty only afterwards.
func keptUntilVerified(c journal.Change) bool {
	return c.After.Type == hostfile.Folder || strings.HasPrefix(c.Path, "/etc/default/grub.d/")
}

func difference(c journal.Change, now hostfile.State) string {
	sameButContent := now
	sameButContent.Content = c.After.Content
	if now.Type == hostfile.Regular && sameButContent.Equal(c.After) {
		return c.Path + " has another content than the guard has written"
	}
	return fmt.Sprintf("%s is %s, and the guard has made it %s", c.Path, now, c.After)
}

// checkPermanent refuses files of which others have made something else since the plan in force was compared: that was before the trial, which may have
// taken as long as its deadline. One that is written already is as it is to be, as after a power cut. Where no arguments are left, what others have added
// stays in what is to be written.
func (g *Guard) checkPermanent(h *history, permanent []bootloader.Write) error {
	if h.inForce == nil || len(operation.Arguments(h.current.begin.Operations)) == 0 {
		return nil
	}
	var foreign []string
	for _, w := range permanent {
		now, err := g.disk.Read(w.Path)
		if err != nil {
			return err
		}
		isOfPlan := func(c journal.Change) bool { return c.Path == w.Path && c.Role == w.Role }
		at := slices.IndexFunc(h.inForce.changes, isOfPlan)
		if at >= 0 && !now.Equal(h.inForce.changes[at].After) && !now.Equal(w.State) {
			foreign = append(foreign, difference(h.inForce.changes[at], now))
		}
	}
	if len(foreign) > 0 {
		return &ForeignError{Differences: foreign}
	}
	return nil
}

// ordered has missing folders first, then what is written, then what is removed.
func (g *Guard) ordered(wanted map[string]hostfile.State, left []target) ([]target, error) {
	missing := map[string]bool{}
	written := make([]target, 0, len(wanted))
	for name, state := range wanted {
		folders, err := g.missingFolders(name)
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			missing[folder] = true
		}
		written = append(written, target{path: name, state: state})
	}
	folders := make([]target, 0, len(missing))
	for folder := range missing {
		folders = append(folders, target{path: folder, state: hostfile.NewFolder()})
	}
	slices.SortFunc(folders, byPath)
	slices.SortFunc(written, byPath)
	return slices.Concat(folders, written, left), nil
}

// missingFolders are those that a path needs and the host does not have, the outer ones first.
func (g *Guard) missingFolders(name string) ([]string, error) {
	var missing []string
	for folder := path.Dir(name); folder != "/"; folder = path.Dir(folder) {
		now, err := g.disk.Read(folder)
		if err != nil {
			return nil, err
		}
		if now.Type == hostfile.Folder {
			break
		}
		missing = append(missing, folder)
	}
	slices.Reverse(missing)
	return missing, nil
}

func byPath(a, b target) int { return cmp.Compare(a.path, b.path) }

// files are what operations put at which paths.
func files(operations []operation.Operation) map[string]hostfile.State {
	wanted := map[string]hostfile.State{}
	for i := range operations {
		o := &operations[i]
		switch o.Kind {
		case operation.File, operation.DropIn, operation.RuntimeDropIn, operation.KubeletDropIn:
			wanted[o.Path] = hostfile.File(o.Content, uint32(o.Mode))
		case operation.Unit:
			unitFiles(o, wanted)
		case operation.TuneDProfile:
			wanted[o.Path] = hostfile.File(o.Content, uint32(o.Mode))
			wanted["/etc/tuned/active_profile"] = hostfile.File(o.Name+"\n", 0o644)
			wanted["/etc/tuned/profile_mode"] = hostfile.File("manual\n", 0o644)
		default:
		}
	}
	return wanted
}

// unitFiles are a unit and the links by which systemd starts it at boot, as systemctl enable makes them.
func unitFiles(o *operation.Operation, wanted map[string]hostfile.State) {
	if o.State == operation.Masked {
		wanted[o.Path] = hostfile.LinkTo("/dev/null")
		return
	}
	wanted[o.Path] = hostfile.File(o.Content, uint32(o.Mode))
	for _, link := range o.Links() {
		wanted[link] = hostfile.LinkTo(o.Path)
	}
}

// changesStateFiles reports whether there are files of the kubelet's state to be removed, for which the kubelet must not run.
// They come and go with what the kubelet is configured to.
func (h *history) changesStateFiles(operations []operation.Operation) bool {
	isStateFile := func(o operation.Operation) bool { return o.Kind == operation.StateFile }
	return slices.ContainsFunc(operations, isStateFile) && h.hash() == operation.Hash(nil)
}
