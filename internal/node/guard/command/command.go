// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package command holds the commands of the guard on a host: for people who change one host without a cluster, and for the
// units that run at each start.
package command

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/journal"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// ErrNotInForce is the error of status when what was asked for is not in force.
var ErrNotInForce = errors.New("what was asked for is not in force")

// Instruction is what a file for apply holds.
type Instruction struct {
	// Operations on the host.
	Operations []operation.Operation `json:"operations"`
	// Plan is what the host is verified against, as render and plan print it; without one, the operations alone are.
	Plan json.RawMessage `json:"plan,omitempty"`
}

// Machine is a host with the lock that keeps others from changing it.
type Machine interface {
	guard.Machine
	Lock() (func(), error)
}

// Disk is a host's file system.
type Disk interface {
	hostfile.Disk
	Close() error
}

// session is one run of a command.
type session struct {
	root string
	out  io.Writer
	in   io.Reader
	// now and pause are the clock.
	now   func() time.Time
	pause func(ctx context.Context, long time.Duration) error
	// watch is what was seen of the kubelet while something is tried; nil before the first look.
	watch *kubelet.Watch
	// machineOf and diskOf open the host below a root.
	machineOf func(root string) Machine
	diskOf    func(root string) (Disk, error)
	// awaited is what was said last of a host that is not verified yet.
	awaited string
}

func newSession() *session {
	return &session{
		out: os.Stdout, in: os.Stdin, now: time.Now, pause: pause,
		machineOf: func(root string) Machine { return guard.Below{Root: root} },
		diskOf:    func(root string) (Disk, error) { return hostfile.OpenRoot(root) },
	}
}

// New returns the command with all subcommands.
func New(version string) *cobra.Command {
	return newSession().command(version)
}

// Played are the parts of a host that is played, and not the one that the program runs on.
type Played struct {
	Out io.Writer
	// Machine and Disk open the host below a root.
	Machine func(root string) Machine
	Disk    func(root string) (Disk, error)
	// Now and Pause are its clock.
	Now   func() time.Time
	Pause func(ctx context.Context, long time.Duration) error
}

// NewPlayed is New for a host that is played.
func NewPlayed(on Played) *cobra.Command {
	s := &session{out: on.Out, in: strings.NewReader(""), now: on.Now, pause: on.Pause, machineOf: on.Machine, diskOf: on.Disk}
	return s.command("played")
}

func (s *session) command(version string) *cobra.Command {
	command := &cobra.Command{
		Use:   "lowlatency-guard",
		Short: "Change this host as a plan says, with a way back",
		Long: "Change this host as operations say: files, units, values of the kernel, and arguments of its command line.\n" +
			"Everything that is changed is written down first, so that it can be put back. Arguments are tried with one start\n" +
			"of the host, verified, and only then made permanent: a host that does not come up with them starts with the old\n" +
			"ones by itself.",
		Version: version, SilenceUsage: true, SilenceErrors: true,
	}
	command.PersistentFlags().StringVar(&s.root, "root", "/", "the `FOLDER` that holds the root file system of the host")
	command.AddCommand(s.applyCommand(), s.statusCommand(), s.revertCommand(), s.bootCommand(), s.trialCommand(), s.takeCommand(), s.trustCommand())
	return command
}

// with opens the host, and calls do while nobody else changes it.
func (s *session) with(do func(g *guard.Guard, m Machine) error) error {
	unlock, err := s.machineOf(s.root).Lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.open(do)
}

// open opens the host, for those who only look.
func (s *session) open(do func(g *guard.Guard, m Machine) error) error {
	m := s.machineOf(s.root)
	opened, err := s.diskOf(s.root)
	if err != nil {
		return err
	}
	err = do(guard.New(opened, m, func(sentence string) { s.say("%s", sentence) }), m)
	return errors.Join(err, opened.Close())
}

func (s *session) say(format string, values ...any) {
	_, _ = fmt.Fprintf(s.out, format+"\n", values...)
}

type applyFlags struct {
	yes, again, stay bool
	deadline         time.Duration
}

func (s *session) applyCommand() *cobra.Command {
	flags := &applyFlags{}
	command := &cobra.Command{
		Use:   "apply FILE",
		Short: "Change this host as the operations in a file say",
		Long: "Show what the operations in a file change, ask, and change it. Where that takes another kernel, reboot: the host then\n" +
			"verifies itself, and keeps what was changed or takes it back. FILE is YAML or JSON with a list of operations and the\n" +
			"plan that they come from.",
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			return s.apply(command.Context(), arguments[0], flags)
		},
	}
	command.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	command.Flags().BoolVar(&flags.again, "again", false, "try again what was taken back before")
	command.Flags().BoolVar(&flags.stay, "no-reboot", false, "leave the reboot, where one is needed, to whoever calls: for images of hosts")
	command.Flags().DurationVar(&flags.deadline, "deadline", 10*time.Minute, "how long after its start a host that is not verified takes everything back")
	return command
}

func (s *session) apply(ctx context.Context, file string, flags *applyFlags) error {
	given, err := readInstruction(file)
	if err != nil {
		return err
	}
	if flags.deadline < time.Minute {
		return fmt.Errorf("--deadline %s is shorter than a minute, which no host starts and verifies itself in", flags.deadline)
	}
	agreed, err := s.askFor(ctx, given.Operations, flags.yes)
	if err != nil {
		return err
	}
	return s.with(func(g *guard.Guard, m Machine) error {
		lines, err := g.Describe(ctx, given.Operations)
		if err != nil {
			return err
		}
		if !slices.Equal(lines, agreed) {
			return errors.New("nothing was changed: the host has changed since what is to be done was shown, so look again")
		}
		if err := s.installSelf(ctx, g); err != nil {
			return err
		}
		next, err := g.Apply(ctx, guard.Wanted{
			Operations: given.Operations, Plan: given.Plan, DeadlineSeconds: int(flags.deadline.Seconds()), Again: flags.again,
		})
		if err != nil {
			return err
		}
		return s.carryThrough(ctx, g, m, next, flags.stay)
	})
}

// askFor shows what operations change, and asks. Whoever thinks about the answer keeps nobody else from the host.
func (s *session) askFor(ctx context.Context, operations []operation.Operation, yes bool) (lines []string, err error) {
	err = s.with(func(g *guard.Guard, _ Machine) (err error) {
		lines, err = g.Describe(ctx, operations)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(lines) == 0:
		s.say("Nothing is to be changed: operations %s.", operation.Hash(operations))
	case !s.agreed(lines, yes):
		return nil, errors.New("nothing was changed")
	}
	return lines, nil
}

func readInstruction(file string) (*Instruction, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the operations: %w", err)
	}
	given := &Instruction{}
	if err := yaml.UnmarshalStrict(text, given); err != nil {
		return nil, fmt.Errorf("reading the operations in %s: %w", file, err)
	}
	if len(given.Operations) == 0 {
		return nil, fmt.Errorf("%s holds no operations; lowlatency-guard revert brings the host back", file)
	}
	return given, nil
}

// agreed shows what will be done, and asks.
func (s *session) agreed(lines []string, yes bool) bool {
	for _, line := range lines {
		s.say("  %s", line)
	}
	if yes {
		return true
	}
	s.say("Do this? Type yes:")
	answer, err := bufio.NewReader(s.in).ReadString('\n')
	return err == nil && strings.TrimSpace(answer) == "yes"
}

// installSelf puts this program and its units on the host.
func (s *session) installSelf(ctx context.Context, g *guard.Guard) error {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("reading this program to install it: %w", err)
	}
	return g.Install(ctx, program)
}

// goOn does what has to happen next on the host.
func (s *session) goOn(ctx context.Context, g *guard.Guard, m Machine, next guard.Next, stay bool) error {
	switch {
	case next == guard.Reboot && stay:
		s.say("Reboot this host: it then verifies itself.")
		return nil
	case next == guard.Reboot:
		s.say("The host reboots, and then verifies itself: see lowlatency-guard status.")
		return m.Tool(ctx, "/usr/bin/systemctl", "--no-block", "reboot")
	case next == guard.Verify:
		return s.verifyNow(ctx, g, m)
	default:
		return s.leaveIfUnused(ctx, g)
	}
}

// carryThrough is goOn for somebody at a terminal. Who interrupts it there has the host as it was: nobody else would finish what was begun.
func (s *session) carryThrough(ctx context.Context, g *guard.Guard, m Machine, next guard.Next, stay bool) error {
	err := s.goOn(ctx, g, m, next, stay)
	if err == nil || ctx.Err() == nil {
		return err
	}
	isChanging, lookErr := g.IsChanging()
	if lookErr != nil || !isChanging {
		return errors.Join(err, lookErr)
	}
	s.say("Interrupted: what was begun is taken back.")
	_, backErr := g.TakeBack(ctx, instruction.ReasonInterrupted, "it was interrupted before it was verified")
	return errors.Join(err, backErr)
}

// leaveIfUnused takes the guard away from a host that is as before, unless an instruction has come since that nobody has read.
func (s *session) leaveIfUnused(ctx context.Context, g *guard.Guard) error {
	if waiting, err := g.Waiting(); err != nil || waiting {
		return err
	}
	unused, err := g.Unused()
	if err != nil || !unused {
		return err
	}
	installed, err := g.Installed()
	if err != nil {
		return err
	}
	if !installed {
		return g.Forget()
	}
	s.say("Nothing is in force: the guard leaves the host.")
	if err := g.Forget(); err != nil {
		return err
	}
	return g.Uninstall(ctx)
}

func (s *session) statusCommand() *cobra.Command {
	format := ""
	command := &cobra.Command{
		Use:   "status",
		Short: "Say what is in force on this host, what is being tried, and what others have changed",
		Long: "Say what is in force on this host, what is being tried or was taken back, and what others have changed.\n\n" +
			"Exit codes: 0 what was asked for last is in force, or nothing was; 1 it was taken back, is not finished, or was\n" +
			"changed by others.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return s.status(format) },
	}
	command.Flags().StringVarP(&format, "output", "o", "text", "text or json")
	return command
}

func (s *session) status(format string) error {
	return s.open(func(g *guard.Guard, _ Machine) error {
		status, err := g.Status()
		if err != nil {
			return err
		}
		switch format {
		case "json":
			text, err := json.MarshalIndent(status, "", "  ")
			if err != nil {
				return fmt.Errorf("printing the status: %w", err)
			}
			s.say("%s", text)
		case "text":
			s.printStatus(status)
		default:
			return fmt.Errorf("there is no output format %q: text or json", format)
		}
		if status.Changing != "" || len(status.Differences)+len(status.Missing) > 0 {
			return ErrNotInForce
		}
		return nil
	})
}

func (s *session) printStatus(status *guard.Status) {
	if status.InForce == "" {
		s.say("In force:  nothing")
	} else {
		s.say("In force:  operations %s", status.InForce)
	}
	if len(status.Arguments) > 0 {
		s.say("Arguments: %s", strings.Join(status.Arguments, " "))
	}
	if len(status.Missing) > 0 {
		s.say("Missing:   the kernel was started without %s", strings.Join(status.Missing, " "))
	}
	if status.Changing != "" {
		s.say("Changing:  operations %s, %s", status.Changing, stageText(status.Stage))
	}
	if status.Reason != "" {
		s.say("Reason:    %s", status.Reason)
	}
	if status.Key != nil {
		s.say("Key:       instructions signed with %s are taken", status.Key.ID)
	}
	for _, d := range status.Differences {
		s.say("Changed by others: %s", d)
	}
}

func stageText(stage journal.Stage) string {
	texts := map[journal.Stage]string{
		"": "being written", journal.Written: "being verified", journal.Armed: "on trial", journal.Verified: "being made permanent",
		journal.InForce: "complete", journal.Reverting: "being taken back", journal.Reverted: "taken back",
	}
	return texts[stage]
}

func (s *session) revertCommand() *cobra.Command {
	yes, stay := false, false
	command := &cobra.Command{
		Use:   "revert",
		Short: "Bring this host back to what it was before",
		Long: "Take back what is being tried, or bring the host back to what it was before all plans, and take the guard away. Where\n" +
			"kernel arguments go, the host reboots once, by the same trial, and once before where others were on trial. What others\n" +
			"have changed stays and is named.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if !yes && !s.agreed([]string{"bring this host back to what it was before"}, false) {
				return errors.New("nothing was changed")
			}
			return s.with(func(g *guard.Guard, m Machine) error {
				if err := g.Release(); err != nil {
					return err
				}
				next, err := g.Remove(command.Context())
				if err != nil {
					return err
				}
				if next == guard.Nothing {
					// What was taken back before needs no memory once somebody has asked for the old host.
					if err := g.Forget(); err != nil {
						return err
					}
				}
				if err := s.sayWhatFollows(g); err != nil {
					return err
				}
				return s.carryThrough(command.Context(), g, m, next, stay)
			})
		},
	}
	command.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	command.Flags().BoolVar(&stay, "no-reboot", false, "leave the reboot, where one is needed, to whoever calls")
	return command
}

// sayWhatFollows tells that a plan is still in force, since what was on trial over it was taken back first.
func (s *session) sayWhatFollows(g *guard.Guard) error {
	asked, err := g.IsToBeRemoved()
	if err != nil || !asked {
		return err
	}
	s.say("What was on trial is taken back. The plan of before is still in force: after the next start the guard takes it back, too, with one more")
	s.say("reboot where kernel arguments go.")
	return nil
}

func (s *session) bootCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "boot",
		Short: "Complete or take back what was interrupted, before the kubelet starts; for the unit lowlatency-guard.service",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return s.with(func(g *guard.Guard, m Machine) error {
				next, err := g.Boot(command.Context())
				switch {
				case next == guard.Reboot:
					return errors.Join(err, m.Tool(command.Context(), "/usr/bin/systemctl", "--no-block", "reboot"))
				case err != nil:
					return err
				default:
					// The power may have been cut while the guard left the host.
					return s.leaveIfUnused(command.Context(), g)
				}
			})
		},
	}
}

// sorted is a text of all sentences.
func sorted(sentences []string) string {
	slices.Sort(sentences)
	return strings.Join(slices.Compact(sentences), "; ")
}
