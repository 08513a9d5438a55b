// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/subprocess"
)

// program is the name of the program's file.
const program = "lowlatency-traffic"

// firstExtraFile is the descriptor that a started program has of the first of ExtraFiles.
const firstExtraFile = 3

// Find is the program: at the path given, else beside this program, else on PATH.
func Find(path string) (string, error) {
	if path != "" {
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), program)
		if info, err := os.Stat(beside); err == nil && info.Mode().IsRegular() {
			return beside, nil
		}
	}
	found, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("the program %s is neither beside this one nor on PATH: build it with make traffic, which needs gcc, or name it with --program", program)
	}
	return found, nil
}

// Options are a measurement with what it needs.
type Options struct {
	// Program is the path of lowlatency-traffic.
	Program string
	Request Request
	Budget  latency.Budget
	// Progress is called about once a second while it runs, and never after it has ended.
	Progress func(Progress)
	// Environment of the program; nil for that of this one.
	Environment []string
	// Notice gets a sentence before a NIC of this host is set for the measurement, and where it could not be put back; nil where none is to be set.
	Notice func(string)
	// Times is called with all round trips of each size, in nanoseconds, in the order in which they were taken; nil for not at all.
	Times func(SizeTimes) error
}

// Measure runs the client to its end.
func Measure(ctx context.Context, options Options) (result *latency.Result, err error) {
	if err := options.Request.Check(); err != nil {
		return nil, err
	}
	stamping, err := openStamping(&options)
	if err != nil {
		return nil, fmt.Errorf("stamps: %w", err)
	}
	defer func() { stamping.close(result) }()
	output, err := runClient(ctx, options.Program, options.Environment, options.Request.arguments(), options.Progress)
	if err != nil {
		return nil, err
	}
	for _, one := range output.Sizes {
		if options.Times != nil {
			if err := options.Times(one); err != nil {
				return nil, err
			}
		}
	}
	return resultOf(latency.KindPingPong, &options.Request, ThisHost(options.Request.CPU, options.Environment), output, options.Budget)
}

// runClient runs the program as a client to its end, and looks meanwhile at what it shows.
func runClient(ctx context.Context, program string, environment, arguments []string, progress func(Progress)) (*Output, error) {
	shown, err := openShown()
	if err != nil {
		return nil, fmt.Errorf("making memory for the progress of %s: %w", program, err)
	}
	defer func() { _ = shown.Close() }()
	command := exec.CommandContext(ctx, program, append(arguments, fmt.Sprintf("shown=%d", firstExtraFile))...)
	command.ExtraFiles = []*os.File{shown}
	command.Env = environment
	command.WaitDelay = time.Second
	defer subprocess.EndWithParent(command)()
	var complaints bytes.Buffer
	command.Stderr = &complaints
	pipe, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", program, err)
	}
	ended, done := make(chan struct{}), make(chan struct{})
	go watchShown(shown, ended, done, progress)
	output, readErr := Read(pipe)
	close(ended)
	<-done
	waitErr := awaitEnd(command, pipe, readErr)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("the measurement was ended: %w", ctx.Err())
	}
	if readErr != nil {
		return nil, errors.Join(readErr, waitErr, complaint(&complaints))
	}
	return output, nil
}

// awaitEnd waits for the end of a program from whose pipe nothing more is read. One that prints what cannot be read may go on for ever, also by the will of a
// server, and is ended.
func awaitEnd(command *exec.Cmd, pipe io.Closer, readErr error) error {
	if readErr != nil {
		_ = command.Process.Kill()
	}
	_ = pipe.Close()
	return command.Wait()
}

// complaint is what the program wrote to its standard error.
func complaint(text *bytes.Buffer) error {
	if text.Len() == 0 {
		return nil
	}
	return errors.New(printable(strings.TrimSpace(text.String())))
}

// ServerOptions say where a server listens.
type ServerOptions struct {
	// Program is the path of lowlatency-traffic.
	Program string
	// Address of IPv4 that it listens on, and the port; 0 lets the kernel choose.
	Address string
	Port    int
	// CPU that it is kept to; -1 for none.
	CPU int
	// Buffer is the size of the receive buffers of datagrams in bytes; 0 for the kernel's own.
	Buffer int
	// Environment of the program; nil for that of this one.
	Environment []string
	// Frames are for clients that send frames; nil for none. The socket is opened before clients can come.
	Frames *Frames
	// Host is where is counted on the CPU while a client measures; nil for nowhere. Where there is no CPU, it is not read.
	Host *host.Host
	// Out gets the line that says the port, once clients can come, and Log what the server says of them.
	Out, Log io.Writer
}

// Serve runs the server until the context ends, which is no error.
func Serve(ctx context.Context, options ServerOptions) error {
	if options.Frames != nil {
		if err := options.Frames.check(); err != nil {
			return err
		}
	}
	arguments := append([]string{"server", "address=" + options.Address, "port=" + strconv.Itoa(options.Port), "buffer=" + strconv.Itoa(options.Buffer),
		"cpu=" + strconv.Itoa(options.CPU)}, options.Frames.arguments()...)
	command := exec.CommandContext(ctx, options.Program, arguments...)
	command.Env, command.Stdout, command.Stderr = options.Environment, options.Out, options.Log
	command.WaitDelay = time.Second
	if options.Host != nil || options.CPU < 0 {
		end, err := countBeside(ctx, command, &cpuCounter{host: options.Host, cpu: options.CPU})
		if err != nil {
			return err
		}
		defer end()
	}
	defer subprocess.EndWithParent(command)()
	if err := command.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the server has ended: %w", err)
	}
	return nil
}

// countBeside lets a command ask, over a socket that it inherits, what is counted on its CPU; end is called when it has ended.
func countBeside(ctx context.Context, command *exec.Cmd, counter *cpuCounter) (end func(), err error) {
	program, here, err := openPackets()
	if err != nil {
		return nil, fmt.Errorf("making the socket for the counters of a server: %w", err)
	}
	command.ExtraFiles = []*os.File{program}
	command.Args = append(command.Args, fmt.Sprintf("counters=%d", firstExtraFile))
	var answers sync.WaitGroup
	answers.Go(func() {
		counter.answerQuestions(ctx, here)
		// The program hears at once that nobody answers any more.
		_ = here.Close()
	})
	return func() {
		_ = errors.Join(here.Close(), program.Close())
		answers.Wait()
	}, nil
}

// ThisHost describes the host of the client, whose program has an environment; nil for that of this one.
func ThisHost(cpu int, environment []string) latency.Host {
	name, _ := os.Hostname()
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return latency.Host{Name: name, Kernel: strings.TrimSpace(string(kernel)), CPU: cpu, Environment: ofStacks(ofProgram(environment))}
}

// ofProgram is the environment of the program; nil is that of this one.
func ofProgram(environment []string) []string {
	if environment == nil {
		return os.Environ()
	}
	return environment
}

// WithoutStacks is an environment in which a program has the sockets of the kernel: without the variables that decide about its network stack. It is never
// nil.
func WithoutStacks(environment []string) []string {
	return slices.DeleteFunc(append([]string{}, environment...), isOfStack)
}

// ofStacks are the variables that decide about the network stack of a program, as the server tells its own.
func ofStacks(environment []string) []string {
	var found []string
	for _, one := range environment {
		if isOfStack(one) {
			found = append(found, one)
		}
	}
	slices.Sort(found)
	return found
}

func isOfStack(variable string) bool {
	return slices.ContainsFunc([]string{"LD_PRELOAD=", "EF_", "ZF_", "VMA_", "XLIO_", "TP_", "AFXDP_"}, func(prefix string) bool { return strings.HasPrefix(variable, prefix) })
}
