// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
)

// installGuardFlags say what is brought to the host.
type installGuardFlags struct {
	process.NodeFlags

	program, nodeUID       string
	instruction, publicKey string
	keyChain               string
	timeout                time.Duration
}

func newInstallGuardCommand() *cobra.Command {
	flags := &installGuardFlags{}
	command := &cobra.Command{
		Use:   "install-guard",
		Short: "Install the guard on the host of this node, and hand it a signed instruction",
		Long: "Install the guard on the host of this node, or bring it up to date, and hand it a signed instruction. It ends when the\n" +
			"guard has read the instruction, and prints the guard's report as JSON: whether the instruction was taken or refused.\n" +
			"The host's root file system is mounted writable, and the program needs the right to change its root and to speak to\n" +
			"the host's systemd.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.run(command)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *installGuardFlags) register(flags *pflag.FlagSet) {
	f.Register(flags)
	flags.StringVar(&f.program, "program", "/lowlatency-guard", "The file with the guard's program.")
	flags.StringVar(&f.instruction, "instruction", "", "The file with the signed instruction; without it, the guard alone is installed.")
	flags.StringVar(&f.publicKey, "public-key", "",
		"The file with the 32 bytes of the operator's public key of Ed25519. The host keeps the first that it is given.")
	flags.StringVar(&f.keyChain, "key-chain", "",
		"The file in which each of the operator's keys has signed the next one, up to that of --public-key; a host with one of them moves on to the last. "+
			"One that is empty or absent is that of an operator with its first key.")
	flags.StringVar(&f.nodeUID, "node-uid", "", "The UID of the node.")
	flags.DurationVar(&f.timeout, "timeout", 2*time.Minute, "How long the guard may take to read its instruction.")
}

func (f *installGuardFlags) check() error {
	switch {
	case f.nodeUID == "":
		return errors.New("no UID of the node is given: set --node-uid")
	case f.publicKey == "":
		return errors.New("no key is given: set --public-key to the file with the operator's public key")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %s is not positive", f.timeout)
	case filepath.Clean(f.Root) == "/":
		return errors.New("--root is this program's own file system: on a host without a cluster, lowlatency-guard installs itself")
	default:
		return f.Check()
	}
}

func (f *installGuardFlags) delivery() (guard.Delivery, error) {
	d := guard.Delivery{Trust: guard.Trust{Node: f.NodeName, NodeUID: f.nodeUID}}
	var err error
	if d.Program, err = os.ReadFile(f.program); err != nil {
		return d, fmt.Errorf("reading the guard's program: %w", err)
	}
	if d.Trust.Key, err = os.ReadFile(f.publicKey); err != nil {
		return d, fmt.Errorf("reading the operator's public key: %w", err)
	}
	if len(d.Trust.Key) != ed25519.PublicKeySize {
		return d, fmt.Errorf("%s has %d bytes, and a public key of Ed25519 has %d", f.publicKey, len(d.Trust.Key), ed25519.PublicKeySize)
	}
	if d.Chain, err = f.chain(); err != nil {
		return d, err
	}
	if f.instruction == "" {
		return d, nil
	}
	if d.Instruction, err = os.ReadFile(f.instruction); err != nil {
		return d, fmt.Errorf("reading the instruction: %w", err)
	}
	if len(d.Instruction) == 0 {
		return d, fmt.Errorf("%s is empty, and no instruction", f.instruction)
	}
	return d, nil
}

// chain reads the chain of keys.
func (f *installGuardFlags) chain() (instruction.Chain, error) {
	if f.keyChain == "" {
		return nil, nil
	}
	text, err := os.ReadFile(f.keyChain)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("reading the chain of keys: %w", err)
	}
	return instruction.ParseChain(text)
}

// run brings the guard and prints its report.
func (f *installGuardFlags) run(command *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	d, err := f.delivery()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(command.Context(), f.timeout)
	defer cancel()
	report, err := guard.Deliver(ctx, f.Root, d, func(sentence string) { command.PrintErrln(sentence) })
	if err != nil {
		return err
	}
	text, err := json.Marshal(report)
	if err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), string(text))
	return err
}
