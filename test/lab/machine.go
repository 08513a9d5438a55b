// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// bootLimit bounds one start: under a minute on two idle cores, several on busy ones.
	bootLimit = 10 * time.Minute
	// shutdownLimit is how long an orderly shutdown may take before the machine is switched off.
	shutdownLimit = 3 * time.Minute
	// unplugLimit bounds the guest's answer to a removed device.
	unplugLimit = 2 * time.Minute
	progressGap = 15 * time.Second
	// bootTries is how often a machine is switched on that lost a timer, or stands still.
	bootTries = 3
	// silenceLimit is how long a console may say nothing until the shell answers: a kernel that is told to be quiet takes up to three minutes
	// on busy cores.
	silenceLimit = 5 * time.Minute
	// timerLost is what the kernel says of a processor whose timer does not come (kernel/rcu/tree_stall.h). A machine that
	// was only starved goes on after the first time.
	timerLost      = "Possible timer handling issue on cpu="
	timerLostTimes = 2
)

var (
	// errTimerLost tells that an emulated processor halted and is not woken by its timer.
	errTimerLost = errors.New("an emulated processor lost its timer")
	// errSilent tells that nothing more comes. It was seen where all processors wait for each other with interrupts off, when the kernel changes
	// its clock (stop_machine in kernel/time/timekeeping.c), so that no kernel complains.
	errSilent = fmt.Errorf("its console has said nothing for %s", silenceLimit)
)

// Machine is a running virtual machine. Its methods are for one goroutine at a time.
type Machine struct {
	image    *Image
	spec     Spec
	emulator emulator
	progress io.Writer
	// dir holds the machine's own disk, console log and sockets, and goes away with it.
	dir     string
	process *process
	client  *ssh.Client
	// booted is what QEMU was started with.
	booted Boot
}

// process is one run of QEMU.
type process struct {
	files files
	pid   int
	// done is closed when QEMU has ended; err and stderr may be read then.
	done   chan struct{}
	err    error
	stderr bytes.Buffer
	kill   func()
}

// Start boots a machine and waits for its shell. The caller must Stop it. QEMU ends with the context, and with
// this process, however that ends.
func (i *Image) Start(ctx context.Context, spec Spec, progress io.Writer) (*Machine, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	emulator, err := emulatorFor(ctx, spec, progress)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lab-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for machine %s: %w", spec.Name, err)
	}
	m := &Machine{image: i, spec: spec, emulator: emulator, progress: progress, dir: dir}
	err = m.makeDisk(ctx)
	if err == nil {
		err = m.makeFilesDisk(ctx)
	}
	if err == nil {
		err = m.writeIdleTable()
	}
	if err == nil {
		err = m.boot(ctx, spec.Boot)
	}
	if err != nil {
		return nil, errors.Join(err, m.Stop())
	}
	return m, nil
}

// Name of the machine.
func (m *Machine) Name() string { return m.spec.Name }

// makeDisk makes the copy-on-write disk.
func (m *Machine) makeDisk(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw",
		"-b", m.image.file(diskFile), m.file("disk.qcow2")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("making the disk of machine %s: %w: %s", m.spec.Name, err, out)
	}
	return nil
}

// filesLabel names the file system with the folder Files.
const filesLabel = "files"

// makeFilesDisk puts the folder Files into a file system of its own, with some room for its tables.
func (m *Machine) makeFilesDisk(ctx context.Context) error {
	if m.spec.Files == "" {
		return nil
	}
	size := int64(16 << 20)
	err := filepath.WalkDir(m.spec.Files, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size() + info.Size()/20
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the files of machine %s: %w", m.spec.Name, err)
	}
	out, err := exec.CommandContext(ctx, "mke2fs", "-q", "-t", "ext4", "-L", filesLabel, "-O", "^has_journal",
		"-E", "root_owner=0:0", "-d", m.spec.Files, m.file("files.raw"), fmt.Sprintf("%dk", size>>10)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("making a disk of the files of machine %s: %w: %s", m.spec.Name, err, out)
	}
	return nil
}

func (m *Machine) file(name string) string { return filepath.Join(m.dir, name) }

// boot starts QEMU and waits for the shell. An emulated processor may lose its timer, which ends a boot for good: such a
// machine is switched off and on again.
func (m *Machine) boot(ctx context.Context, boot Boot) error {
	for try := 1; ; try++ {
		err := m.powerOn(ctx, boot)
		if err == nil {
			err = m.waitForShell(ctx, try == bootTries)
		}
		if errors.Is(err, errTimerLost) || errors.Is(err, errSilent) {
			report(m.progress, "%s: %v; switched off and on again", m.spec.Name, err)
			m.switchOff()
			continue
		}
		if err != nil || m.spec.Files == "" {
			return err
		}
		_, err = m.Run(ctx, fmt.Sprintf("mkdir -p %s && mount -o ro LABEL=%s %s", FilesPath, filesLabel, FilesPath))
		return err
	}
}

// powerOn starts QEMU, with more arguments than those of the machine where there are any.
func (m *Machine) powerOn(ctx context.Context, boot Boot, more ...string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	// A socket of an earlier run is in the way of the next.
	if err := os.RemoveAll(m.file("qmp")); err != nil {
		return fmt.Errorf("removing an old socket: %w", err)
	}
	f, err := m.kernelFiles(ctx, boot.Kernel)
	if err != nil {
		return err
	}
	f.disk, f.second, f.idle = m.file("disk.qcow2"), m.filesDisk(), m.idleTable()
	f.serial, f.qmp, f.sshPort = m.file("serial.log"), m.file("qmp"), port
	m.process, err = m.emulator.start(ctx, append(m.emulator.machine(m.spec, boot, f), more...), f)
	m.booted = boot
	return err
}

// kernelFiles are the files of a kernel, which is built first when it is not one of the image and not in the cache.
func (m *Machine) kernelFiles(ctx context.Context, kernel Kernel) (files, error) {
	if kernel == Installed {
		return files{}, nil
	}
	if kernel != RealTimeBackports {
		return files{kernel: m.image.file("vmlinuz-" + string(kernel)), initrd: m.image.file("initrd-" + string(kernel))}, nil
	}
	dir, err := built(ctx, "kernel", func(string) error { return nil }, m.progress)
	if err != nil {
		return files{}, err
	}
	return files{
		kernel: filepath.Join(dir, "vmlinuz"), initrd: filepath.Join(dir, "initrd"), modules: filepath.Join(dir, "modules.raw"),
	}, nil
}

// writeIdleTable writes the ACPI table of the idle states, for a machine that is to have some.
func (m *Machine) writeIdleTable() error {
	file := m.idleTable()
	if file == "" {
		return nil
	}
	if err := os.WriteFile(file, idleTable(m.spec.Topology.CPUs()), 0o600); err != nil {
		return fmt.Errorf("describing the idle states of machine %s: %w", m.spec.Name, err)
	}
	return nil
}

func (m *Machine) idleTable() string {
	if m.spec.IdleStates == Absent {
		return ""
	}
	return m.file("idle.aml")
}

func (m *Machine) filesDisk() string {
	if m.spec.Files == "" {
		return ""
	}
	return m.file("files.raw")
}

// start starts QEMU at low priority, so that a test machine does not starve what it is tested with.
func (e emulator) start(ctx context.Context, args []string, f files) (*process, error) {
	p := &process{files: f, done: make(chan struct{})}
	ctx, cancel := context.WithCancel(ctx)
	p.kill = cancel
	command := exec.CommandContext(ctx, "nice", slices.Concat([]string{"-n", "10", e.program}, e.arguments, args)...)
	command.Env = append(os.Environ(), e.environment...)
	command.Stderr = &p.stderr
	// The signal comes when the thread that started QEMU ends, so that thread must wait for QEMU.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer cancel()
		err := command.Start()
		if err == nil {
			// nice becomes QEMU, under the same number.
			p.pid = command.Process.Pid
		}
		started <- err
		if err == nil {
			p.err = command.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting QEMU: %w", err)
	}
	return p, nil
}

// waitForShell tries until the machine answers, QEMU ends, the time is over, or, unless it is the last try, the machine
// has lost a timer or says nothing more.
func (m *Machine) waitForShell(ctx context.Context, isLast bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, bootLimit, fmt.Errorf("no shell within %s", bootLimit))
	defer cancel()
	start := time.Now()
	stop := every(progressGap, func() {
		report(m.progress, "%s: booting, %.0f s: %s", m.spec.Name, time.Since(start).Seconds(), m.lastConsoleLine())
	})
	defer stop()
	said := &voice{since: start}
	for {
		client, err := m.image.dial(ctx, loopback(m.process.files.sshPort))
		if err == nil {
			m.client = client
			report(m.progress, "%s: up after %.0f s", m.spec.Name, time.Since(start).Seconds())
			return nil
		}
		select {
		case <-m.process.done:
			return fmt.Errorf("machine %s: QEMU ended: %w: %s", m.spec.Name, m.process.err, strings.TrimSpace(m.process.stderr.String()))
		default:
		}
		if lost := m.standsStill(said); lost != nil && !isLast {
			return fmt.Errorf("machine %s did not boot: %w", m.spec.Name, lost)
		}
		if waiting := pause(ctx, 500*time.Millisecond); waiting != nil {
			return fmt.Errorf("machine %s did not boot: %w (%w); its console ends with\n%s", m.spec.Name, waiting, err, m.Console(15))
		}
	}
}

// voice is how much a console has said, and since when no more.
type voice struct {
	length int
	since  time.Time
}

// standsStill returns why a machine that boots will not come up any more; nil when that is not known.
func (m *Machine) standsStill(said *voice) error {
	content, err := os.ReadFile(m.file("serial.log"))
	if err != nil {
		return nil //nolint:nilerr // What cannot be read tells nothing.
	}
	return said.judge(content, time.Now())
}

// judge looks at what a console has said until now.
func (v *voice) judge(console []byte, now time.Time) error {
	if len(console) != v.length {
		v.length, v.since = len(console), now
	}
	switch {
	case bytes.Count(console, []byte(timerLost)) >= timerLostTimes:
		return errTimerLost
	case now.Sub(v.since) >= silenceLimit:
		return errSilent
	default:
		return nil
	}
}

// Login is the command with which a person opens the machine's shell.
func (m *Machine) Login() string {
	return fmt.Sprintf("ssh -i %s -p %d -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@127.0.0.1",
		m.image.file(keyFile), m.process.files.sshPort)
}

// Console returns the last lines of the kernel's console.
func (m *Machine) Console(lines int) string {
	content, err := os.ReadFile(m.file("serial.log"))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content), lines)
}

func (m *Machine) lastConsoleLine() string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, m.Console(1))
	return line[:min(len(line), 90)]
}

// Execute runs a shell command as root and returns how it ended, success or not. The error tells that it could
// not be run, or that the context ended first.
func (m *Machine) Execute(ctx context.Context, command string) (Result, error) {
	return execute(ctx, m.client, command, nil, nil)
}

// Run runs a shell command as root that must succeed, and returns its standard output.
func (m *Machine) Run(ctx context.Context, command string) (string, error) {
	result, err := m.Execute(ctx, command)
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("machine %s: %q ended with %d: %s", m.spec.Name, short(command), result.ExitCode,
			strings.TrimSpace(result.Stderr+result.Stdout))
	}
	return result.Stdout, err
}

// CopyTo copies a local file into the machine, with its permissions. Missing folders are made.
func (m *Machine) CopyTo(ctx context.Context, local, remote string) error {
	info, err := os.Stat(local)
	if err != nil {
		return fmt.Errorf("copying to machine %s: %w", m.spec.Name, err)
	}
	return sendFile(ctx, m.client, local, remote, info.Mode())
}

// WriteFile writes a file in the machine. Missing folders are made.
func (m *Machine) WriteFile(ctx context.Context, remote, content string, mode os.FileMode) error {
	return send(ctx, m.client, strings.NewReader(content), remote, mode)
}

// CopyFrom copies a file of the machine to this one.
func (m *Machine) CopyFrom(ctx context.Context, remote, local string) error {
	return receiveFile(ctx, m.client, remote, local)
}

// Reboot shuts the machine down in order and boots it from the same disk with another kernel or other
// arguments, as a changed boot loader would.
func (m *Machine) Reboot(ctx context.Context, boot Boot) error {
	if err := boot.validate(m.spec.Name); err != nil {
		return err
	}
	if err := m.shutDown(ctx); err != nil {
		return err
	}
	return m.boot(ctx, boot)
}

// shutDown has the guest power itself off.
func (m *Machine) shutDown(ctx context.Context) error {
	// The shell may be gone before it answers, so only QEMU's end counts.
	asking, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	_, _ = m.Execute(asking, "sync; systemctl --no-block poweroff")
	m.hangUp()
	return m.awaitEnd(ctx, shutdownLimit)
}

// awaitEnd waits for the end of QEMU, and switches the machine off when that takes too long.
func (m *Machine) awaitEnd(ctx context.Context, limit time.Duration) error {
	select {
	case <-m.process.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("shutting machine %s down: %w", m.spec.Name, context.Cause(ctx))
	case <-time.After(limit):
		console := m.Console(15)
		m.switchOff()
		return fmt.Errorf("machine %s did not shut down within %s; its console ends with\n%s", m.spec.Name, limit, console)
	}
}

// hangUp closes the shell; that the other end may be gone is expected.
func (m *Machine) hangUp() {
	if m.client != nil {
		_ = m.client.Close()
		m.client = nil
	}
}

func (m *Machine) switchOff() {
	if m.process != nil {
		m.process.kill()
		<-m.process.done
	}
}

// Unplug takes a NIC out of its slot and waits until the machine's kernel has let it go.
func (m *Machine) Unplug(ctx context.Context, id string) error {
	return m.withMonitor(ctx, func(ctx context.Context, qmp *monitor) error {
		if err := qmp.execute(ctx, "device_del", map[string]any{"id": id}); err != nil {
			return err
		}
		return qmp.waitDeleted(ctx, id)
	})
}

// Plug puts a NIC that was unplugged into its slot again. The machine's kernel needs some seconds to find it.
func (m *Machine) Plug(ctx context.Context, id string) error {
	for _, nic := range m.spec.NICs {
		if nic.ID != id {
			continue
		}
		arguments := map[string]any{}
		for _, p := range m.spec.nicDevice(nic) {
			arguments[p.name] = p.value
			if p.value == "on" {
				arguments[p.name] = true
			}
		}
		return m.withMonitor(ctx, func(ctx context.Context, qmp *monitor) error {
			return qmp.execute(ctx, "device_add", arguments)
		})
	}
	return fmt.Errorf("machine %s has no NIC %q", m.spec.Name, id)
}

func (m *Machine) withMonitor(ctx context.Context, do func(context.Context, *monitor) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, unplugLimit, fmt.Errorf("no answer within %s", unplugLimit))
	defer cancel()
	qmp, err := openMonitor(ctx, m.process.files.qmp)
	if err == nil {
		err = errors.Join(do(ctx, qmp), qmp.close())
	}
	if err != nil {
		return fmt.Errorf("machine %s: %w", m.spec.Name, err)
	}
	return nil
}

// CutPower resets the machine at once, as when its power fails: what the guest has not synced to its disk is lost.
func (m *Machine) CutPower(ctx context.Context) error {
	err := m.withMonitor(ctx, func(ctx context.Context, qmp *monitor) error {
		return qmp.execute(ctx, "system_reset", nil)
	})
	m.hangUp()
	return err
}

// Save keeps the whole state of the running machine, its disk and its memory, under a name.
func (m *Machine) Save(ctx context.Context, name string) error { return m.human(ctx, "savevm "+name) }

// Load goes back to a state that was kept, and waits for the machine's shell. QEMU starts anew for that: one that runs does not let the cycle counter of
// its processors go back (cpu_get_ticks in softmmu/cpu-timers.c), so that the clock of the guest would jump ahead by the time since the state was
// kept. Its kernel then reports stalls, and systemd ends services whose watchdogs have waited for too long.
func (m *Machine) Load(ctx context.Context, name string) error {
	if err := m.quit(ctx); err != nil {
		return err
	}
	if err := m.powerOn(ctx, m.booted, "-loadvm", name); err != nil {
		return err
	}
	return m.waitForShell(ctx, true)
}

// quit ends QEMU in order, so that its disk is whole: that of a power cut would be that of the guest, and not of its image.
func (m *Machine) quit(ctx context.Context) error {
	m.hangUp()
	err := m.withMonitor(ctx, func(ctx context.Context, qmp *monitor) error { return qmp.execute(ctx, "quit", nil) })
	if err != nil {
		return err
	}
	return m.awaitEnd(ctx, shutdownLimit)
}

// human gives QEMU a command of its monitor for people, which has no other form.
func (m *Machine) human(ctx context.Context, command string) error {
	return m.withMonitor(ctx, func(ctx context.Context, qmp *monitor) error {
		return qmp.human(ctx, command)
	})
}

// Stop switches the machine off without shutting it down and removes what belongs to it. It may be called on a
// machine that has ended, and twice.
func (m *Machine) Stop() error {
	m.hangUp()
	m.switchOff()
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("removing what machine %s left: %w", m.spec.Name, err)
	}
	return nil
}

// freePort finds a port for the machine's shell. QEMU does not report which one it took, so it is chosen here;
// that another program takes it first is possible and ends the start with QEMU's message.
func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}
