// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func (a *app) snapshotCommand() *cobra.Command {
	var root, output string
	command := &cobra.Command{
		Use:   "snapshot -o FILE",
		Short: "Save what the other commands read of a host into one file",
		Long: `Save the files of /proc, /sys and /etc that the other commands read into a .tar.gz, which every
command takes as --root. Nothing but these files is read, and nothing on the host is changed.`,
		Example: "  kubectl lowlatency snapshot -o node.tar.gz\n  kubectl lowlatency topology --root node.tar.gz",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.snapshot(cmd.Context(), root, output)
		},
	}
	command.Flags().StringVar(&root, "root", "/", "`PATH` of the host: a folder with its /proc and /sys, or a snapshot")
	command.Flags().StringVarP(&output, "output", "o", "", "`FILE` to write, such as node.tar.gz; - for the standard output")
	return command
}

func (a *app) snapshot(ctx context.Context, root, output string) error {
	if output == "" {
		return errors.New("say where the snapshot goes, for example with -o node.tar.gz")
	}
	opened, err := host.Open(root)
	if err != nil {
		return err
	}
	if output == "-" {
		err = opened.Snapshot(ctx, a.Out)
	} else {
		err = writeSnapshot(ctx, opened, output)
	}
	if err == nil {
		a.complain(snapshotHolds, output)
	}
	return errors.Join(err, opened.Close())
}

// snapshotHolds says what people are to look through before they pass a snapshot on.
const snapshotHolds = "%s holds the name of the host, its kernel command line, hardware and firmware, the names of its interfaces and network " +
	"drivers, routes with their addresses and gateway, names and user IDs of processes that may run on isolated CPUs, and the configuration " +
	"and state of the kubelet. Look through it before you pass it on."

// writeSnapshot writes beside the target and renames, so that a failure leaves no half of a file. It follows no link and
// replaces none: in a folder where others may write, one could lead to any file of this user. Nobody else may read the file.
func writeSnapshot(ctx context.Context, opened *host.Host, output string) error {
	if info, err := os.Lstat(output); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("writing the snapshot %s: it is a symbolic link; name the file that it is to be", output)
	}
	if err := atomicfile.RemoveLeftovers(filepath.Dir(output), filepath.Base(output)); err != nil {
		return fmt.Errorf("writing the snapshot %s: %w", output, err)
	}
	pending, err := renameio.NewPendingFile(output, renameio.WithTempDir(filepath.Dir(output)), renameio.WithStaticPermissions(0o600))
	if err != nil {
		// The error names the file that was to be renamed, which nobody asked for.
		if inPath := (*fs.PathError)(nil); errors.As(err, &inPath) {
			err = inPath.Err
		}
		return fmt.Errorf("writing the snapshot %s: %w", output, err)
	}
	if err = opened.Snapshot(ctx, pending); err == nil {
		err = pending.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", output, errors.Join(err, pending.Cleanup()))
	}
	return nil
}
