// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package onload_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	module = "github.com/lowlatency-dev/lowlatency-operator"
	// limit bounds each wait.
	limit = 5 * time.Minute

	// The NIC that Onload is told of, and the one of the peer, which is in a network namespace of its own, on the same wire.
	fast, fastMAC = "fast", "52:54:00:00:01:01"
	peer, peerMAC = "peer", "52:54:00:00:01:02"
	// The pods' network namespace has an interface on the NIC, and one that leads to the host alone, as pods have for the kubelet.
	pods        = "pods"
	fastAddress = "192.0.2.11"
	slowAddress = "198.51.100.2"
	hostAddress = "198.51.100.1"
	peerAddress = "192.0.2.99"

	// programPath is the program of containers and peers; containers have it with the file system of the machine.
	programPath = "/usr/local/lib/lab/program.py"
	poolFile    = "/etc/lab/pool.yaml"
	pluginFile  = "/etc/lab/pool.json"
	kubeletFile = "/run/lab/kubelet.json"
	resource    = "lowlatency.dev/onload"
)

// scene is a machine with Onload, and what was seen on it.
type scene struct {
	machine *lab.Machine
	rows    []string
}

// row is a line of the table: what is expected, and what was seen.
func (s *scene) row(t *testing.T, name, expected string, do func(t *testing.T) string) bool {
	t.Helper()
	start, seen := time.Now(), ""
	ok := t.Run(name, func(t *testing.T) { seen = do(t) })
	if !ok {
		seen = "FAILED " + seen
	}
	s.rows = append(s.rows, fmt.Sprintf("%s\t%s\t%s\t%.0f s", name, expected, seen, time.Since(start).Seconds()))
	_, _ = fmt.Fprintf(os.Stderr, "lab: %s: %s\n", name, seen)
	return ok
}

func (s *scene) print() {
	writer := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(writer, "\nCASE\tEXPECTED\tSEEN\tTIME\n%s\n\n", strings.Join(s.rows, "\n"))
	_ = writer.Flush()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run runs a command in the machine that must succeed, and returns what it prints.
func (s *scene) run(t *testing.T, command string) string {
	t.Helper()
	out, err := s.machine.Run(t.Context(), command)
	must(t, err)
	return strings.TrimSpace(out)
}

// wait looks again and again until something is true. The text is what it saw last.
func (s *scene) wait(t *testing.T, what string, look func() (bool, string)) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	for {
		done, seen := look()
		if done {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waiting for %s: %v; last seen: %s\n%s", what, context.Cause(ctx), seen, s.machine.Console(20))
		case <-time.After(time.Second):
		}
	}
}

// boot builds what the machine needs, and boots it.
func (s *scene) boot(t *testing.T) string {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	must(t, err)
	onload, err := image.OpenOnload(t.Context(), lab.Standard, os.Stderr)
	must(t, err)
	folder := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", folder+"/", module+"/cmd/...", module+"/test/lab/onload/kubelet")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	must(t, lab.AddTrafficProgram(t.Context(), folder))
	must(t, os.CopyFS(folder, os.DirFS(onload)))
	must(t, os.CopyFS(filepath.Join(folder, "testdata"), os.DirFS("testdata")))
	s.machine, err = image.Start(context.WithoutCancel(t.Context()), lab.Spec{
		Name:     "onload",
		Topology: lab.Topology{Packages: 1, CoresPerPackage: 4, ThreadsPerCore: 1, NUMANodes: 1, MebibytesPerNode: 2048},
		NICs:     []lab.NIC{{ID: fast, Model: lab.Virtio, NUMANode: 0}, {ID: peer, Model: lab.Virtio, NUMANode: 0}},
		Boot:     lab.Boot{Kernel: lab.Standard, Arguments: []string{"net.ifnames=0"}},
		Files:    folder,
	}, os.Stderr)
	must(t, err)
	s.run(t, "cp -r "+lab.FilesPath+"/onload /opt/onload && chmod -R a+rX /opt/onload && chmod 755 /opt/onload/usr/bin/* /opt/onload/sbin/*; "+
		"install -D "+lab.FilesPath+"/testdata/program.py "+programPath+"; install -D -m 644 "+lab.FilesPath+"/testdata/pool.yaml "+poolFile+
		fmt.Sprintf("; install %[1]s/%[2]s %[1]s/%[3]s /usr/local/bin/", lab.FilesPath, lab.TrafficProgram, filepath.Base(probeProgram)))
	return s.run(t, "uname -r")
}

// load loads the modules, and tells them of the NIC. Flow filters are off: no emulated NIC has any.
func (s *scene) load(t *testing.T) string {
	s.run(t, "set -e; cd "+lab.FilesPath+"/modules; insmod sfc_resource.ko enable_af_xdp_flow_filters=0; insmod sfc_char.ko; "+
		"insmod onload.ko cplane_server_path=/opt/onload/sbin/onload_cp_server; chmod 666 /dev/onload /dev/onload_epoll /dev/sfc_char")
	for name, mac := range map[string]string{fast: fastMAC, peer: peerMAC} {
		s.run(t, fmt.Sprintf("now=$(basename $(dirname $(grep -l %s /sys/class/net/*/address))); ip link set $now down; ip link set $now name %s", mac, name))
	}
	s.run(t, fmt.Sprintf("set -e; ip addr add 192.0.2.1/24 dev %s; ip link set %[1]s up; ", fast)+
		fmt.Sprintf("ip netns add %[1]s; ip link set %[1]s netns %[1]s; ip -n %[1]s addr add %[2]s/24 dev %[1]s; ip -n %[1]s link set %[1]s up; ", peer, peerAddress)+
		fmt.Sprintf("ip netns add %s; ip link add pod link %s type macvlan mode bridge; ip link set pod netns %[1]s; ", pods, fast)+
		fmt.Sprintf("ip -n %s addr add %s/24 dev pod; ip -n %[1]s link set pod up; ip -n %[1]s link set lo up; ", pods, fastAddress)+
		fmt.Sprintf("ip link add probes type veth peer name eth0 netns %s; ip addr add %s/24 dev probes; ip link set probes up; ", pods, hostAddress)+
		fmt.Sprintf("ip -n %s addr add %s/24 dev eth0; ip -n %[1]s link set eth0 up", pods, slowAddress))
	s.run(t, "echo "+fast+" >/sys/module/sfc_resource/afxdp/register")
	if log := s.run(t, "dmesg | grep -i 'hardware init failed' || true"); log != "" {
		t.Fatalf("the NIC cannot be used, and the next program would end the kernel: %s", log)
	}
	return s.run(t, "sed -n 's/^onload_version: *//p' /proc/driver/onload/version")
}

// said is what a program in the machine prints that need not succeed.
func (s *scene) said(t *testing.T, command string) (string, int) {
	t.Helper()
	result, err := s.machine.Execute(t.Context(), command)
	must(t, err)
	return strings.TrimSpace(result.Stdout + result.Stderr), result.ExitCode
}
