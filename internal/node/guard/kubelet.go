// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// KubeletError tells of a kubelet that was not healthy before anything was changed: nobody could tell afterwards what the change has
// done to it.
type KubeletError struct {
	Problem string
	// IsOpen tells that its process is too young to be judged.
	IsOpen bool
}

// Error says what was found.
func (e *KubeletError) Error() string {
	return "the kubelet is not healthy, and was not touched: " + e.Problem
}

// findKubelet is the service of the kubelet: the first that runs, else the first that is there; nil on a host without one.
func (g *Guard) findKubelet(ctx context.Context) (*kubelet.Unit, error) {
	var found *kubelet.Unit
	for _, name := range host.KubeletUnits() {
		unit, err := g.machine.Unit(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("looking for the kubelet: %w", err)
		}
		if unit != nil && (found == nil || unit.IsUp() && !found.IsUp()) {
			found = unit
		}
	}
	return found, nil
}

// SeeKubelet looks at the kubelet once.
func (g *Guard) SeeKubelet(ctx context.Context, name string) (kubelet.Sight, error) {
	unit, err := g.machine.Unit(ctx, name)
	if err != nil {
		return kubelet.Sight{}, fmt.Errorf("looking at the kubelet: %w", err)
	}
	if unit == nil {
		return kubelet.Sight{Unit: kubelet.Unit{Name: name, Active: "absent"}}, nil
	}
	return g.seeUnit(ctx, unit), nil
}

func (g *Guard) seeUnit(ctx context.Context, unit *kubelet.Unit) kubelet.Sight {
	s := kubelet.Sight{Unit: *unit}
	if unit.Process == 0 {
		s.Health = errors.New("it has no process")
		return s
	}
	if address := g.healthAddress(unit.Process); address != "" {
		s.Health = g.machine.Health(ctx, address)
	}
	return s
}

// healthAddress is where the running kubelet says whether it is healthy: by its flags, its file and its drop-ins. What cannot be read
// changes nothing about where it is by default.
func (g *Guard) healthAddress(process int) string {
	line, err := g.disk.Read(commandLineOf(process))
	if err != nil {
		return kubelet.Flags{}.Address("")
	}
	flags := kubelet.ReadFlags(string(line.Content))
	files := []string{flags.File}
	if flags.Folder != "" {
		if below, err := g.dropIns(flags.Folder); err == nil {
			files = append(files, below...)
		}
	}
	var texts []string
	for _, name := range files {
		if text, err := g.readConfiguration(name); err == nil {
			texts = append(texts, text)
		}
	}
	merged, err := host.MergeKubeletConfigurations(texts...)
	if err != nil {
		merged = ""
	}
	return flags.Address(merged)
}

// isKubelets tells that a file is read by the kubelet or its service, when that starts.
func isKubelets(t target) bool {
	if operation.Allowed(operation.KubeletDropIn, t.path) {
		return true
	}
	return slices.ContainsFunc(host.KubeletUnits(), func(unit string) bool { return path.Dir(t.path) == path.Join(systemdFolder, unit+".d") })
}

// prepareKubelet finds out how the kubelet is before it is touched, and whether it has to be started again. Without a reboot it
// is the only thing that reads its files; a host without a kubelet that systemd knows needs a reboot for them.
func (g *Guard) prepareKubelet(ctx context.Context, w *work, again []string) error {
	if !w.kubelet && !w.reboot {
		return nil
	}
	unit, err := g.findKubelet(ctx)
	if err != nil {
		return err
	}
	process := 0
	if unit != nil {
		process = unit.Process
	}
	if err := g.checkKubeletFiles(w.begin.Operations, process); err != nil {
		return err
	}
	if unit == nil {
		w.reboot = w.reboot || w.kubelet
		return nil
	}
	problem, isOpen := g.seeUnit(ctx, unit).Before()
	w.begin.Kubelet = &journal.Kubelet{Unit: unit.Name, Problem: problem, Restarts: w.kubelet && !w.reboot && unit.IsUp()}
	if !w.reboot {
		w.begin.Kubelet.Again = again
	}
	w.isKubeletYoung = isOpen
	return nil
}

// restarts tells that the kubelet is started again.
func (w *work) restarts() bool { return w.begin.Kubelet != nil && w.begin.Kubelet.Restarts }

// checkKubelet refuses an instruction for a kubelet that is not healthy already. Whoever changes a host by hand is told; a removal
// is no reason to keep what may be the cause.
func (g *Guard) checkKubelet(w *work) error {
	k := w.begin.Kubelet
	switch {
	case k == nil || k.Problem == "":
		return nil
	case w.begin.Instruction != nil && len(w.begin.Operations) > 0:
		return &KubeletError{Problem: k.Problem, IsOpen: w.isKubeletYoung}
	default:
		g.tell("The kubelet was not healthy before anything was changed, and is not waited for: " + k.Problem + ".")
		return nil
	}
}

// renewKubelet stops the kubelet, removes the files in which it remembers policies, has the units that it needs run again, and starts
// it. One that somebody has stopped is not started. One that could not be stopped in time is started all the same: systemd does that once it
// has stopped.
func (g *Guard) renewKubelet(ctx context.Context, k *journal.Kubelet) error {
	ctx = context.WithoutCancel(ctx)
	h, err := g.load()
	if err != nil {
		return err
	}
	if k == nil || !k.Restarts {
		return errors.Join(g.removeStateFiles(h), g.runUnits(ctx, k))
	}
	g.tell("The kubelet is started again: " + k.Unit + ".")
	g.haveFollowed(ctx, h)
	problem := g.machine.Tool(ctx, systemctl, "stop", k.Unit)
	if problem != nil {
		problem = fmt.Errorf("stopping the kubelet: %w", problem)
	} else {
		problem = errors.Join(g.removeStateFiles(h), g.runUnits(ctx, k))
	}
	// A service that says when it is ready is not waited for here: nobody knows whether it ever is.
	for _, arguments := range [][]string{{"reset-failed", k.Unit}, {"--no-block", "start", k.Unit}} {
		if err := g.machine.Tool(ctx, systemctl, arguments...); err != nil {
			problem = errors.Join(problem, fmt.Errorf("starting the kubelet again: %w", err))
		}
	}
	return problem
}

// haveFollowed has systemd run what ends a trial, which waits for whoever works on the host now: when that one is killed at a terminal, nobody
// else would start the kubelet again. The unit that carries out instructions is started again by systemd itself.
func (g *Guard) haveFollowed(ctx context.Context, h *history) {
	if h.current == nil || h.current.begin.Instruction != nil {
		return
	}
	if err := g.machine.Tool(ctx, systemctl, "--no-block", "start", trialService); err != nil {
		g.tell("Nobody starts the kubelet again when this process is killed now: " + err.Error())
	}
}

// runUnits has the units that the kubelet needs run again. At the start of a host they are not waited for: they may wait for the guard.
func (g *Guard) runUnits(ctx context.Context, k *journal.Kubelet, flags ...string) error {
	if k == nil {
		return nil
	}
	for _, unit := range k.Again {
		if err := g.machine.Tool(ctx, systemctl, append(flags, "restart", unit)...); err != nil {
			return fmt.Errorf("running %s again: %w", unit, err)
		}
	}
	return nil
}

// restoreKubelet starts the kubelet again with what was there before; where the host has rebooted since, it starts with that by
// itself. It returns what has failed, which keeps nothing else from being put back.
func (g *Guard) restoreKubelet(ctx context.Context, h *history) []string {
	k := h.current.begin.Kubelet
	var err error
	switch {
	case k == nil:
	case h.rebooted():
		// They may have run with what was not to stay.
		err = g.runUnits(ctx, k, "--no-block")
	case k.Restarts || len(k.Again) > 0:
		err = g.renewKubelet(ctx, k)
	}
	if err != nil {
		return []string{strings.ReplaceAll(err.Error(), "\n", "; ")}
	}
	return nil
}

// Restored is the service of a kubelet that was healthy before a change, was started again when that was taken back, and of which nobody
// has found out since how it is; "" for none. One that has started with the host since is judged as any other.
func (g *Guard) Restored() (string, error) {
	h, err := g.load()
	if err != nil || h.current == nil || h.current.stage() != journal.Reverted || h.rebooted() {
		return "", err
	}
	k := h.current.begin.Kubelet
	if k == nil || !k.Restarts || k.Problem != "" || h.current.last.Kubelet != "" {
		return "", nil
	}
	return k.Unit, nil
}

// NoteRestored writes down how that kubelet is: what is wrong with it, or "".
func (g *Guard) NoteRestored(problem string) error {
	h, err := g.load()
	if err != nil {
		return err
	}
	last := h.current.last
	last.Kubelet, last.KubeletProblem = journal.RestoredHealthy, problem
	if problem != "" {
		last.Kubelet = journal.RestoredBroken
	}
	return g.reached(last)
}

// told is why a change was taken back, and how the kubelet is since then.
func (e *enactment) told() string {
	switch e.last.Kubelet {
	case journal.RestoredHealthy:
		return e.reason() + "; with what was there before, the kubelet is healthy again"
	case journal.RestoredBroken:
		return e.reason() + "; with what was there before, the kubelet is not healthy any more either: " + e.last.KubeletProblem
	default:
		return e.reason()
	}
}
