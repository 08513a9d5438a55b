// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
)

// guardProgram changes the host, and is looked for beside this program, in the PATH, and where it installs itself.
const guardProgram = "lowlatency-guard"

// hostOptions say which host is meant, and which guard changes it.
type hostOptions struct {
	targets
	root     string
	guard    string
	yes      bool
	stay     bool
	again    bool
	deadline time.Duration
}

// hostCommand is the group of commands that change one host without a cluster.
func (a *app) hostCommand() *cobra.Command {
	command := usage.Group(&cobra.Command{
		Use:   "host",
		Short: "Change one host without a cluster, with a way back",
		Long: `Change one host as a profile says, without a cluster: what render -o operations prints for it is given to
lowlatency-guard, which shows it, asks, writes it, reboots once where that is needed, verifies the host, and keeps the
change or takes it back.`,
	})
	command.AddCommand(a.applyHostCommand(), a.hostStatusCommand(), a.revertHostCommand())
	return command
}

func (a *app) applyHostCommand() *cobra.Command {
	options := &hostOptions{}
	command := &cobra.Command{
		Use:   "apply -f FILE",
		Short: "Change this host as a profile says",
		Long: `Plan this host, show what would be written and whether it reboots, ask, and change it. The host verifies itself, after
one reboot where kernel arguments change, and keeps what was written or takes it back. A host without a kubelet gets
the rest of its plan.

Exit codes: 0 done; 1 the profile does not fit the host, nothing may be written on it, or the guard has not done it; 2
wrong usage or input.`,
		Example: `  kubectl lowlatency host apply -f trading.yaml
  kubectl lowlatency host apply -f trading.yaml --yes --no-reboot   # while an image is built on a machine of its kind`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.applyHost(cmd.Context(), options) },
	}
	options.addFlags(command)
	options.addProfile(command, a)
	options.addReboot(command)
	command.Flags().BoolVar(&options.again, "again", false, "try again what was taken back before")
	command.Flags().DurationVar(&options.deadline, "deadline", 10*time.Minute, "how long after its start a host that is not verified takes everything back")
	return command
}

func (a *app) hostStatusCommand() *cobra.Command {
	options := &hostOptions{}
	command := &cobra.Command{
		Use:   "status",
		Short: "Say what is in force on this host, and what is being tried",
		Long: `Say what is in force on this host, what is being tried or was taken back, and what others have changed. What the
running kernel says of the profile is told by check -f FILE --root /.

Exit codes: 0 what was asked for last is in force, or nothing was; 1 it is not.`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runGuard(cmd.Context(), options, "status") },
	}
	options.addFlags(command)
	return command
}

func (a *app) revertHostCommand() *cobra.Command {
	options := &hostOptions{}
	command := &cobra.Command{
		Use:   "revert",
		Short: "Bring this host back to what it was before",
		Long: `Take back what is being tried, or bring the host back to what it was before all plans, and take the guard away. Where
kernel arguments go, the host reboots once, and once before where another plan was on trial over the one in force.`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runGuard(cmd.Context(), options, append([]string{"revert"}, options.flags()...)...)
		},
	}
	options.addFlags(command)
	options.addReboot(command)
	return command
}

func (o *hostOptions) addProfile(command *cobra.Command, a *app) {
	flags := command.Flags()
	flags.StringArrayVarP(&o.files, "filename", "f", nil, "`FILE` or folder with a LowLatencyNodeProfile, with BypassNICPools beside it; - for the standard input; repeatable")
	flags.StringVar(&o.profile, "profile", "", "`NAME` of the profile, when the files hold several")
	flags.StringArrayVar(&o.hostIPs, "host-ip", nil, hostIPHelp)
	register(command, "profile", complete(func(ctx context.Context) ([]string, error) { return a.profileNames(ctx, o.files) }))
}

func (o *hostOptions) addFlags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&o.root, "root", "/", "the `FOLDER` that holds the root file system of the host")
	flags.StringVar(&o.guard, "guard", "", "`FILE` of lowlatency-guard; found beside this program, in the PATH or in /usr/local/bin when it is not given")
}

func (o *hostOptions) addReboot(command *cobra.Command) {
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "do not ask")
	command.Flags().BoolVar(&o.stay, "no-reboot", false, "leave the reboot, where one is needed, to whoever calls: for images of hosts")
}

// flags are those that the guard's commands have, too.
func (o *hostOptions) flags() []string {
	var words []string
	for _, flag := range []struct {
		name string
		set  bool
	}{{"--yes", o.yes}, {"--no-reboot", o.stay}, {"--again", o.again}} {
		if flag.set {
			words = append(words, flag.name)
		}
	}
	return words
}

func (a *app) applyHost(ctx context.Context, options *hostOptions) error {
	if slices.Contains(options.files, "-") && !options.yes {
		return errors.New("the profile comes by the standard input, by which nobody can answer the question then: give a file, or --yes")
	}
	options.roots, options.installation = []string{options.root}, true
	wanted, nodes, err := options.load(ctx, a)
	if err != nil {
		return err
	}
	if len(nodes) != 1 {
		return errors.New("host apply changes one host: leave the LowLatencyNodes out of the files")
	}
	if isOpenShift, _ := nodes[0].facts.Software.OpenShift.Get(); isOpenShift {
		return errors.New("the host is a node of OpenShift, whose machine-config operator changes it")
	}
	wanted.platform = ordinary
	all := planNodes(wanted, nodes)
	a.explainUnplanned(all)
	if err := unplanned(all); err != nil {
		return err
	}
	instruction, err := a.instructionFor(all[0].Plan, nodes[0].facts)
	if err != nil {
		return err
	}
	return a.giveToGuard(ctx, options, instruction)
}

// instructionFor is what the guard takes for a host. What stands in the way is said on the standard error.
func (a *app) instructionFor(planned *plan.NodePlan, facts *host.Facts) ([]byte, error) {
	written, err := kubernetes.Write(planned, facts)
	if err != nil {
		return nil, err
	}
	for _, f := range written.Findings {
		a.complain("%s: %s: %s %s", f.Severity, f.Field, f.Message, f.Remedy)
	}
	if written.Refused() {
		return nil, errFindings
	}
	verified := *planned
	if facts.Software.NoKubelet.Value {
		// The guard would wait for a kubelet with these settings until its deadline.
		verified.Kubelet = plan.KubeletPlan{}
	}
	text, err := yaml.Marshal(map[string]any{"operations": written.Operations, "plan": &verified})
	if err != nil {
		return nil, fmt.Errorf("printing what the guard takes: %w", err)
	}
	return text, nil
}

// giveToGuard has the guard carry an instruction out.
func (a *app) giveToGuard(ctx context.Context, options *hostOptions, instruction []byte) (err error) {
	folder, err := os.MkdirTemp("", "lowlatency-host-")
	if err != nil {
		return fmt.Errorf("making a folder for what the guard takes: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	file := filepath.Join(folder, "operations.yaml")
	if err := os.WriteFile(file, instruction, 0o600); err != nil {
		return fmt.Errorf("writing what the guard takes: %w", err)
	}
	words := append([]string{"apply", file, "--deadline", options.deadline.String()}, options.flags()...)
	return a.runGuard(ctx, options, words...)
}

// runGuard runs the guard with the streams of this program, so that it asks who sits at the terminal.
func (a *app) runGuard(ctx context.Context, options *hostOptions, words ...string) error {
	program, err := findGuard(options.guard)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, program, append([]string{"--root", options.root}, words...)...)
	command.Stdin, command.Stdout, command.Stderr = a.In, a.Out, a.Err
	// A guard that is interrupted ends what it has begun, or leaves it to be resumed; one that is killed could not say so.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	err = command.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		// It has said why.
		return errFindings
	}
	if err != nil {
		return fmt.Errorf("running the guard: %w", err)
	}
	return nil
}

// findGuard is the guard that was named, or the first that is found.
func findGuard(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	var places []string
	if own, err := os.Executable(); err == nil {
		places = append(places, filepath.Join(filepath.Dir(own), guardProgram))
	}
	if found, err := exec.LookPath(guardProgram); err == nil {
		places = append(places, found)
	}
	for _, place := range append(places, "/usr/local/bin/"+guardProgram) {
		if info, err := os.Stat(place); err == nil && info.Mode().IsRegular() {
			return place, nil
		}
	}
	return "", errors.New("there is no " + guardProgram + " beside this program, in the PATH or in /usr/local/bin: name it with --guard")
}
