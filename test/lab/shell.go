// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// handshakeLimit is for one attempt. QEMU accepts the connection long before the guest listens, so an attempt
// that is too early looks like one that hangs.
const handshakeLimit = 30 * time.Second

// Result is how a command in the machine ended.
type Result struct {
	Stdout, Stderr string
	// ExitCode as the shell gives it; 0 is success.
	ExitCode int
}

// dial opens the machine's shell. The machine's key must be the image's.
func (i *Image) dial(ctx context.Context, address string) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	// The handshake knows no context: closing the connection ends it.
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer stop()
	secured, channels, requests, err := ssh.NewClientConn(connection, address, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(i.user)}, HostKeyCallback: ssh.FixedHostKey(i.machine),
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
	if err != nil {
		return nil, fmt.Errorf("opening a shell at %s: %w", address, errors.Join(err, ignoreClosed(connection.Close())))
	}
	return ssh.NewClient(secured, channels, requests), nil
}

// errNoShell tells of a machine whose power was cut, until its shell is opened again.
var errNoShell = errors.New("the machine has no shell")

// execute runs a command with an input and an output; a nil output is collected into the result.
func execute(ctx context.Context, client *ssh.Client, command string, input io.Reader, output io.Writer) (Result, error) {
	if client == nil {
		return Result{}, fmt.Errorf("starting %q: %w", short(command), errNoShell)
	}
	session, err := client.NewSession()
	if err != nil {
		return Result{}, fmt.Errorf("starting %q: %w", short(command), err)
	}
	// Closing a session that has ended is an error of no interest; so is one that is cut off here.
	defer func() { _ = session.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = session.Close() })
	defer stop()
	var stdout, stderr bytes.Buffer
	session.Stdin, session.Stdout, session.Stderr = input, &stdout, &stderr
	if output != nil {
		session.Stdout = output
	}
	err = session.Run(command)
	result := Result{Stdout: stdout.String(), Stderr: stderr.String()}
	if ctx.Err() != nil {
		return result, fmt.Errorf("running %q: %w; so far it wrote %q", short(command), context.Cause(ctx), result.Stderr)
	}
	if exit, ok := errors.AsType[*ssh.ExitError](err); ok {
		result.ExitCode = exit.ExitStatus()
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("running %q: %w", short(command), err)
	}
	return result, nil
}

// short is the first line of a command.
func short(command string) string {
	line, _, more := strings.Cut(strings.TrimSpace(command), "\n")
	if more {
		return line + " …"
	}
	return line
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// quote makes one word of a POSIX shell.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// sendFile writes a local file to a path in the machine, which appears when it is complete.
func sendFile(ctx context.Context, client *ssh.Client, local, remote string, mode os.FileMode) error {
	file, err := os.Open(local)
	if err != nil {
		return fmt.Errorf("copying to the machine: %w", err)
	}
	defer func() { _ = file.Close() }()
	return send(ctx, client, file, remote, mode)
}

func send(ctx context.Context, client *ssh.Client, content io.Reader, remote string, mode os.FileMode) error {
	to := quote(remote)
	command := fmt.Sprintf("set -e; mkdir -p \"$(dirname %s)\"; cat >%s.part; chmod %o %s.part; mv -f %s.part %s",
		to, to, mode.Perm(), to, to, to)
	result, err := execute(ctx, client, command, content, nil)
	if err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("writing %s in the machine: %s", remote, strings.TrimSpace(result.Stderr))
	}
	return nil
}

// receiveFile copies a file of the machine.
func receiveFile(ctx context.Context, client *ssh.Client, remote, local string) (err error) {
	file, err := os.Create(local)
	if err != nil {
		return fmt.Errorf("copying from the machine: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	result, err := execute(ctx, client, "cat "+quote(remote), nil, file)
	if err != nil {
		return err
	}
	if result.ExitCode != 0 {
		return fmt.Errorf("reading %s in the machine: %s", remote, strings.TrimSpace(result.Stderr))
	}
	return nil
}
