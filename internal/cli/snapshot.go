// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func (a *app) snapshotCommand() *cobra.Command {
	var root, output string
	var redacted bool
	command := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Save what the other commands read of a host into one file",
		Long: `Save the files of /proc, /sys and /etc that the other commands read into a .tar.gz, which every
command takes as --root. Nothing but these files is read, and nothing on the host is changed.

With --redact, other names take the place of those of the host, its users, units, programs, pods, containers and swap
files; addresses, routes but those that are default routes, and the values of kernel arguments that are not about
CPUs, memory, power or drivers are left out. check and plan say the same of it, but for these names and arguments.`,
		Example: "  kubectl lowlatency snapshot -o node.tar.gz\n  kubectl lowlatency topology --root node.tar.gz\n  kubectl lowlatency snapshot --redact -o for-others.tar.gz",
		Args:    usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			disclosure := host.Disclosed
			if redacted {
				disclosure = host.Redacted
			}
			return a.snapshot(cmd.Context(), root, output, disclosure)
		},
	}
	command.Flags().StringVar(&root, "root", "/", "`PATH` of the host: a folder with its /proc and /sys, or a snapshot")
	command.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write, such as node.tar.gz; - for the standard output")
	command.Flags().BoolVar(&redacted, "redact", false, "put other names in the place of those that tell whose host it is")
	return command
}

func (a *app) snapshot(ctx context.Context, root, output string, disclosure host.Disclosure) error {
	if output == "" {
		return errors.New("say where the snapshot goes, for example with -o node.tar.gz")
	}
	opened, err := host.Open(root)
	if err != nil {
		return err
	}
	var contents host.Contents
	write := func(to io.Writer) (err error) {
		contents, err = opened.SnapshotWith(ctx, to, disclosure)
		return err
	}
	if output == "-" {
		err = write(a.Out)
	} else {
		err = writeSnapshot(write, output)
	}
	if err == nil {
		a.complainOfContents(contents, output, disclosure)
	}
	return errors.Join(err, opened.Close())
}

// complainOfContents says what was written, and what people are to look through before they pass it on.
func (a *app) complainOfContents(contents host.Contents, output string, disclosure host.Disclosure) {
	a.complain("%s holds %d files of /proc, /sys, /etc, /run and /var, %d KiB unpacked. Look through these before you pass it on:",
		output, contents.Files, (contents.Bytes+1023)/1024)
	for _, personal := range contents.Personal {
		a.complain("  %s\n    %s", personal.What, strings.Join(personal.Files, " "))
	}
	switch {
	case disclosure == host.Disclosed:
		a.complain("--redact puts other names in the place of those of the host, its users, units, programs, pods and containers.")
	case len(contents.RedactedArguments) > 0:
		a.complain("Kernel arguments without their value: %s.", strings.Join(contents.RedactedArguments, ", "))
	}
}

// writeSnapshot writes beside the target and renames, so that a failure leaves no half of a file. It follows no link and
// replaces none: in a folder where others may write, one could lead to any file of this user. Nobody else may read the file.
func writeSnapshot(write func(io.Writer) error, output string) error {
	if info, err := os.Lstat(output); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("writing the snapshot %s: it is a symbolic link; name the file that it is to be", output)
	}
	if err := atomicfile.RemoveLeftovers(filepath.Dir(output), filepath.Base(output)); err != nil {
		return fmt.Errorf("writing the snapshot %s: %w", output, err)
	}
	if err := atomicfile.ReplaceWith(output, 0o600, write); err != nil {
		return fmt.Errorf("writing the snapshot %s: %w", output, err)
	}
	return nil
}
