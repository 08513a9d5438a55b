// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package enact

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const (
	// cutsWanted is how often the power is cut when LAB_CUTS does not say.
	cutsWanted = 30
	// beginning is how long a command may take until the guard has its journal.
	beginning = 2 * time.Minute
	// longestCuts bounds all cuts together when LAB_MINUTES does not say; what was not reached is said.
	longestCuts = 150
)

// number is an environment variable, or what it is without.
func number(t *testing.T, name string, without int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return without
	}
	value, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q, which is no number", name, text)
	}
	return value
}

// manifest is everything that a change of the host must put back: content, mode and owner of each file, and links. GRUB leaves
// the name of a variable behind in its environment, which is why that is compared by its values.
func (h *host) manifest() string {
	h.t.Helper()
	return h.run(`cd / && find etc boot usr/local var/lib/lowlatency -xdev ! -name grubenv \( -type f -exec stat -c '%n %a %U %G' {} + -o -type l -printf '%p -> %l\n' -o -type d -printf '%p %m\n' \) 2>/dev/null | sort
find etc boot/grub/*.cfg usr/local var/lib/lowlatency -xdev -type f ! -name grubenv -exec md5sum {} + 2>/dev/null | sort -k2
grub-editenv /boot/grub/grubenv list | grep -v '=$' || true`)
}

// phase is a part of an enactment or of its removal, from a state of the machine that was saved.
type phase struct {
	name string
	// command begins it; "" where it goes on by itself.
	command string
	// takes is how long it took without a power cut.
	takes time.Duration
}

// cut is one power cut: in which phase, and how long after the guard has begun it.
type cut struct {
	phase

	after time.Duration
}

// phases goes once through an enactment and its removal, saves the state at the beginning of each phase, and measures how long each takes. It
// returns what is on the machine before and after the enactment, too.
func (h *host) phases(file, wanted string) (all []phase, before, after string) {
	h.t.Helper()
	timed := func(name, command string, do func()) {
		h.save(name)
		began := time.Now()
		do()
		all = append(all, phase{name: name, command: command, takes: time.Since(began)})
	}
	before = h.manifest()
	timed("before", guardProgram+" apply --yes "+file, func() { h.run(guardProgram + " apply --yes --no-reboot " + file) })
	h.reboots("systemctl --no-block reboot")
	timed("trial", "", func() {
		if status := h.settled(); status.InForce != wanted {
			h.t.Fatalf("without a power cut: %+v", status)
		}
	})
	after = h.manifest()
	timed("in-force", guardProgram+" revert --yes", func() { h.reboots("nohup " + guardProgram + " revert --yes >/dev/null 2>&1 &") })
	timed("given-back", "", func() { h.settled() })
	for _, p := range all {
		h.t.Logf("phase %s takes %.0f s", p.name, p.takes.Seconds())
	}
	return all, before, after
}

// reboots gives a command after which the machine reboots, and waits until it has.
func (h *host) reboots(command string) {
	h.t.Helper()
	boot, err := h.machine.BootID(h.ctx())
	if err != nil {
		h.t.Fatal(err)
	}
	_, _ = h.machine.Execute(h.ctx(), command)
	if err := h.machine.WaitReboot(h.ctx(), boot); err != nil {
		h.t.Fatal(err)
	}
}

// TestPowerCuts cuts the power of the machine at random points of an enactment and of the removal, and of what follows the reboot of each.
// However it comes back, everything is in force or everything is as before, and it comes to rest.
func TestPowerCuts(t *testing.T) {
	h := start(t)
	defer h.table()
	file := h.write("first", tuned("10"))
	wanted := operation.Hash(tuned("10"))
	phases, before, after := h.phases(file, wanted)
	seed := uint64(number(t, "LAB_SEED", int(time.Now().UnixNano()%1e6)))
	t.Logf("the points are those of LAB_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	end := time.Now().Add(time.Duration(number(t, "LAB_MINUTES", longestCuts)) * time.Minute)
	for i := range number(t, "LAB_CUTS", cutsWanted) {
		if time.Now().After(end) {
			t.Errorf("the time is over after %d cuts: LAB_CUTS says how many there are to be, LAB_MINUTES for how long", i)
			return
		}
		c := cut{phase: phases[i%len(phases)]}
		c.after = time.Duration(random.Int64N(int64(c.takes)))
		h.cutOnce(i+1, c, wanted, before, after)
	}
}

func (h *host) save(name string) {
	h.t.Helper()
	h.run("sync")
	h.uptimes[name] = h.uptime()
	if err := h.machine.Save(h.ctx(), name); err != nil {
		h.t.Fatal(err)
	}
}

// longestPause is by how much the clock of a machine may have gone on between a state that was kept and the first look after it was loaded.
const longestPause = time.Minute

// load goes back to a state. A clock that has jumped would end the guard's time for a trial, and whatever else waits on the machine.
func (h *host) load(name string) {
	h.t.Helper()
	if err := h.machine.Load(h.ctx(), name); err != nil {
		h.t.Fatal(err)
	}
	if was, is := h.uptimes[name], h.uptime(); is < was || is > was+longestPause {
		h.t.Fatalf("the machine was up for %s when state %s was kept, and for %s after it was loaded", was, name, is)
	}
}

func (h *host) uptime() time.Duration {
	h.t.Helper()
	seconds, err := time.ParseDuration(strings.Fields(h.run("cat /proc/uptime"))[0] + "s")
	if err != nil {
		h.t.Fatal(err)
	}
	return seconds
}

// cutOnce goes back to a state, does what its phase does, cuts the power, and asserts what the machine comes to.
func (h *host) cutOnce(number int, c cut, wanted, before, after string) {
	h.t.Helper()
	h.load(c.name)
	h.begin(c.command)
	time.Sleep(c.after)
	point := h.point()
	began := time.Now()
	if err := h.machine.CutPower(h.ctx()); err != nil {
		h.t.Fatal(err)
	}
	status := h.settled()
	manifest := h.manifest()
	outcome := "neither as before nor as planned"
	switch {
	case status.InForce == wanted && sameFiles(manifest, after):
		outcome = "in force"
	case status.InForce == "" && sameFiles(manifest, before):
		outcome = "as before"
	default:
		h.t.Errorf("cut %d of phase %s after %s: %+v\n(-before +now):\n%s", number, c.name, c.after, status, cmp.Diff(strings.Split(before, "\n"), strings.Split(manifest, "\n")))
	}
	h.row(fmt.Sprintf("power cut %d, phase %q, %.1f s after its begin; at that point: %s", number, c.name, c.after.Seconds(), point), outcome,
		fmt.Sprintf("at rest after %.0f s; %s", time.Since(began).Seconds(), status.Reason))
}

// whatHangs shows what the guard waits for, and what the kernel says.
const whatHangs = `ps -eo pid,ppid,stat,etimes,wchan:30,args --sort=pid | tail -n 30
for pid in $(pgrep -f lowlatency-guard); do echo "$pid:"; cat /proc/$pid/task/*/stack /proc/$pid/task/*/syscall; ls -l /proc/$pid/fd; done
dmesg | tail -n 30`

// begin gives the command of a phase, and waits until the guard has begun to write: a cut before that shows nothing.
func (h *host) begin(command string) {
	h.t.Helper()
	if command == "" {
		return
	}
	const output = "/run/lowlatency-cut.log"
	if _, err := h.machine.Execute(h.ctx(), "nohup "+command+" >"+output+" 2>&1 &"); err != nil {
		h.t.Fatal(err)
	}
	for end := time.Now().Add(beginning); ; {
		result, err := h.machine.Execute(h.ctx(), "test -e /var/lib/lowlatency/guard/journal")
		if err != nil || result.ExitCode == 0 {
			return
		}
		if time.Now().After(end) {
			h.t.Fatalf("%s has not begun: %s", command, h.run("cat "+output+"; "+whatHangs))
		}
	}
}

// point says where the machine was when the power was cut: the last records of the journal, and whether it was shutting down.
func (h *host) point() string {
	result, err := h.machine.Execute(h.ctx(), `J=/var/lib/lowlatency/guard/journal; if [ -e $J ]; then echo "$(wc -l <$J) records"; grep -o '"stage":"[A-Za-z]*"' $J | tail -1; else echo "no journal"; fi; systemctl is-system-running`)
	if err != nil {
		return "no shell any more"
	}
	return strings.Join(strings.Fields(result.Stdout), " ")
}

// sameFiles compares manifests without what the guard keeps of a change that was taken back, and its own program and units, which
// stay with that memory.
func sameFiles(one, other string) bool {
	return cmp.Equal(withoutGuard(one), withoutGuard(other))
}

func withoutGuard(manifest string) []string {
	var lines []string
	for line := range strings.Lines(manifest) {
		if !strings.Contains(line, "lowlatency-guard") && !strings.Contains(line, "var/lib/lowlatency") && !isWants(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// isWants are the folders that the guard's own units need.
func isWants(line string) bool {
	return strings.Contains(line, "emergency.target.wants") || strings.Contains(line, "rescue.target.wants")
}

// Stage words of a status, for the rows.
func stageOf(stage journal.Stage) string {
	if stage == "" {
		return "none"
	}
	return string(stage)
}
