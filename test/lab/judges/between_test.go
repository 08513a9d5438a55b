// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package judges

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	// cable is what the wire's interface is called in both machines.
	cable = "cable"

	clientAddress, serverAddress = "192.0.2.1", "192.0.2.2"
	// carried is the folder of the machines with the programs of others and what they load.
	carried = lab.FilesPath + "/carried"
	// startLimit bounds how long servers take to listen.
	startLimit = 2 * time.Minute
)

// TestBetweenMachines has the judges compare our measurements with those of sockperf and qperf between two machines of the lab that a wire joins, and with
// delays of the network emulator on that wire: make lab-judges. It fails for a row that is missing or that does not say why it does not hold; times of emulated
// machines mean little, so that one does not hold is no error.
func TestBetweenMachines(t *testing.T) {
	image, err := lab.OpenImage(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	folder := programs(t)
	carry(t, "lab-judges", folder, "sockperf", "qperf")
	one, other := lab.NewWire(t.TempDir())
	// Both boot at the same time.
	starting := make(chan *lab.Machine)
	go func() { starting <- start(t, image, end("server", other, folder)) }()
	client := start(t, image, end("client", one, folder))
	server := <-starting
	if client == nil || server == nil {
		t.FailNow()
	}
	join(t, client, one, clientAddress)
	join(t, server, other, serverAddress)
	serve(t, server)
	waited := watch(t, client, server)
	command := fmt.Sprintf("modprobe sch_netem && PATH=%s:$PATH judge -program %[1]s/lowlatency-traffic -server %s -delayed %s -sizes 64,1024", lab.FilesPath, serverAddress, cable)
	result, err := client.Execute(t.Context(), command)
	if err != nil {
		t.Fatal(err)
	}
	if result.ExitCode != 0 {
		t.Errorf("the judges end with %d: %s", result.ExitCode, result.Stderr)
	}
	table := result.Stdout + "\n" + waited()
	t.Logf("on kernel %s:\n%s", kernelOf(t, client), table)
	for _, wrong := range incomplete(result.Stdout) {
		t.Error(wrong)
	}
	keep(t, table)
}

// end is a machine at an end of the wire.
func end(name string, wire lab.Wire, folder string) lab.Spec {
	return lab.Spec{
		Name: name,
		// On one CPU, nothing is ever moved to another within a run.
		Topology: lab.Topology{Packages: 1, CoresPerPackage: 1, ThreadsPerCore: 1},
		NICs:     []lab.NIC{{ID: cable, Model: lab.Virtio, Wire: wire}},
		Boot:     lab.Boot{Arguments: []string{"net.ifnames=0"}},
		Files:    folder,
	}
}

// join gives the wire's interface its name and an address.
func join(t *testing.T, machine *lab.Machine, end lab.Wire, address string) {
	t.Helper()
	command := fmt.Sprintf("set -e; now=$(basename $(dirname $(grep -l %s /sys/class/net/*/address))); ip link set $now down; ip link set $now name %s; "+
		"ip addr add %s/24 dev %[2]s; ip link set %[2]s up", end.MAC(0, 0), cable, address)
	if _, err := machine.Run(t.Context(), command); err != nil {
		t.Fatal(err)
	}
}

// serve starts the servers of all three programs, and waits until they listen.
func serve(t *testing.T, machine *lab.Machine) {
	t.Helper()
	for name, command := range map[string]string{
		"ours": "lowlatency-traffic server port=2048 buffer=16000000", "qperf": "qperf",
		"udp": "sockperf server -i " + serverAddress + " -p 11111", "tcp": "sockperf server --tcp -i " + serverAddress + " -p 11111",
	} {
		if _, err := machine.Run(t.Context(), fmt.Sprintf("PATH=%s:$PATH setsid %s >/run/%s.log 2>&1 </dev/null &", lab.FilesPath, command, name)); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(startLimit)
	for {
		listening, err := machine.Run(t.Context(), "ss -Hltun")
		if err != nil {
			t.Fatal(err)
		}
		absent := absentServers(listening)
		if len(absent) == 0 {
			return
		}
		if time.Now().After(deadline) {
			logs, _ := machine.Run(t.Context(), "tail -n 5 /run/*.log")
			t.Fatalf("nothing listens at %s after %s:\n%s\n%s", strings.Join(absent, ", "), startLimit, listening, logs)
		}
		time.Sleep(time.Second)
	}
}

// watch tells, when it is asked, for how long the emulators had no CPU since: a processor that stands still does not know it, so that the judges in the
// machine cannot say it.
func watch(t *testing.T, client, server *lab.Machine) func() string {
	t.Helper()
	waited := func() (time.Duration, time.Duration) {
		one, err := client.Waited()
		if err != nil {
			t.Error(err)
		}
		other, err := server.Waited()
		if err != nil {
			t.Error(err)
		}
		return one, other
	}
	begin := time.Now()
	clientBefore, serverBefore := waited()
	return func() string {
		one, other := waited()
		return busyness(one-clientBefore, other-serverBefore, time.Since(begin))
	}
}
