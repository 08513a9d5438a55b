// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package footprint

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/tunedhost"
)

const (
	kibPerMiB                  = 1024
	microsecondsPerMillisecond = 1000
)

// BenchmarkCommand runs the command line as people do, on a worker of 80 CPUs in a folder and in a snapshot. What it
// reports is what the operating system says of the finished process: processor time of user and system together, the least
// and the median of all runs, and the largest resident memory. LOWLATENCY_HOST names another host, a folder or snapshot, to
// measure on.
func BenchmarkCommand(b *testing.B) {
	program, runner := build(b, "cmd/kubectl-lowlatency"), build(b, "test/footprint/run")
	profile, err := filepath.Abs("../../docs/examples/worker-as-it-is.yaml")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("version", func(b *testing.B) { measure(b, runner, program, "version") })
	for name, root := range hosts(b) {
		for _, command := range []string{"plan", "render", "check"} {
			b.Run(command+"/"+name, func(b *testing.B) { measure(b, runner, program, command, "-f", profile, "--root", "worker-1="+root) })
		}
	}
}

// BenchmarkPool shows the NICs of a pool of Onload on a busy worker: hundreds of processes, and libraries with symbols for
// debuggers as their makefiles leave them.
func BenchmarkPool(b *testing.B) {
	program, runner := build(b, "cmd/kubectl-lowlatency"), build(b, "test/footprint/run")
	pool, err := filepath.Abs("../../config/samples/tick-to-trade/pool.yaml")
	if err != nil {
		b.Fatal(err)
	}
	root := os.Getenv("LOWLATENCY_HOST")
	if root == "" {
		root = filepath.Join(b.TempDir(), "host")
		if err := busyWorker(root); err != nil {
			b.Fatal(err)
		}
	}
	measure(b, runner, program, "pool", "-f", pool, "--root", "worker-1="+root)
}

// busyWorker writes a worker with Onload loaded, 500 processes, and 6 MiB of symbols in libonload.so.
func busyWorker(root string) error {
	const processes, symbols = 500, 6 << 20
	worker := machine()
	worker.Onload = hosttree.NewOnload()
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := worker.Write(root); err != nil {
		return err
	}
	for pid := range processes {
		if err := hosttree.WriteProcess(root, hosttree.Process{PID: 20000 + pid, Name: "sleep"}); err != nil {
			return err
		}
	}
	library, err := os.OpenFile(filepath.Join(root, worker.Onload.UserFolder, "usr/lib64/libonload.so"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = library.Write(bytes.Repeat([]byte("ci_netif_poll\x00\x00\x00\x01"), symbols/17))
	return errors.Join(err, library.Close())
}

// hosts are the worker in both forms, or the one that the environment names.
func hosts(b *testing.B) map[string]string {
	b.Helper()
	if given := os.Getenv("LOWLATENCY_HOST"); given != "" {
		return map[string]string{"given": given}
	}
	folder := b.TempDir()
	root := filepath.Join(folder, "host")
	worker, err := tunedhost.New(b.Context(), root, machine(), tunedhost.Profile())
	if err != nil {
		b.Fatal(err)
	}
	if err := worker.Apply(); err != nil {
		b.Fatal(err)
	}
	opened, err := host.Open(root)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	snapshot := filepath.Join(folder, "host.tar.gz")
	file, err := os.Create(snapshot)
	if err != nil {
		b.Fatal(err)
	}
	if err := opened.Snapshot(b.Context(), file); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
	return map[string]string{"folder": root, "snapshot": snapshot}
}

// measure runs a program again and again. Findings are an exit code, and no failure.
func measure(b *testing.B, runner, program string, arguments ...string) {
	b.Helper()
	var spent []float64
	largest := 0.0
	for b.Loop() {
		var said bytes.Buffer
		command := exec.CommandContext(b.Context(), runner, append([]string{program}, arguments...)...)
		command.Stderr = &said
		printed, err := command.Output()
		if err != nil || said.Len() > 0 {
			b.Fatalf("%s %v: %v: %s", program, arguments, err, said.String())
		}
		var code int
		var microseconds, peak float64
		if _, err := fmt.Sscan(string(printed), &code, &microseconds, &peak); err != nil || code != 0 && code != 1 {
			b.Fatalf("%s %v ended with %d, %v", program, arguments, code, err)
		}
		spent = append(spent, microseconds/microsecondsPerMillisecond)
		largest = max(largest, peak/kibPerMiB)
	}
	slices.Sort(spent)
	b.ReportMetric(spent[0], "CPU-ms-least")
	b.ReportMetric(spent[len(spent)/2], "CPU-ms-median")
	b.ReportMetric(largest, "MiB-peak")
}

// build builds a program as a release is built.
func build(b *testing.B, folder string) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), filepath.Base(folder))
	command := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "../../"+folder)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		b.Fatalf("building %s: %v\n%s", folder, err, output)
	}
	return program
}
