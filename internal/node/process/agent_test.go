// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/agent"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

func TestAddresses(t *testing.T) {
	cases := map[string]struct {
		text, wantError string
		want            []netip.Addr
	}{
		"none": {},
		"one":  {text: "10.0.0.5", want: []netip.Addr{netip.MustParseAddr("10.0.0.5")}},
		"both families": {
			text: "10.0.0.5, fd00::5,", want: []netip.Addr{netip.MustParseAddr("10.0.0.5"), netip.MustParseAddr("fd00::5")},
		},
		"a name": {text: "10.0.0.5,worker-1", wantError: `--host-ip holds "worker-1", which is no IP address`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := (&NodeFlags{HostIP: tc.text}).Addresses()
			if (err == nil) != (tc.wantError == "") || err != nil && err.Error() != tc.wantError {
				t.Errorf("error %v, want %q", err, tc.wantError)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheAgentRefusesAWrongAddress(t *testing.T) {
	command := NewAgentCommand()
	command.SetArgs([]string{"--node-name", "n", "--namespace", "x", "--host-ip", "here"})
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `--host-ip holds "here"`) {
		t.Errorf("error is %v", err)
	}
}

func TestTheAgentRefusesWrongFlags(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"a negative interval":      {[]string{"--interval", "-1s"}, "--interval -1s is negative"},
		"a negative full interval": {[]string{"--full-interval", "-1s"}, "--full-interval -1s is negative"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := NewAgentCommand()
			command.SetArgs(append([]string{"--node-name", "n", "--namespace", "x"}, tc.args...))
			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// The report names what is weak on a node, so it is not for the network.
func TestTheAgentServesItsReportOnItsMachineOnly(t *testing.T) {
	worker := &agent.Agent{Root: t.TempDir(), Reports: &agent.ReportServer{}}
	err := superviseAgent(t.Context(), worker, "0.0.0.0:9470")
	if err == nil || !strings.Contains(err.Error(), `not on "0.0.0.0:9470"`) {
		t.Errorf("error is %v", err)
	}
}

// TestSnapshotsAreOfTheHost takes snapshots with the name of the host and without.
func TestSnapshotsAreOfTheHost(t *testing.T) {
	root := t.TempDir()
	machine := hosttree.Xeon().Small()
	machine.Hostname = "tradefloor-7"
	if err := machine.Write(root); err != nil {
		t.Fatal(err)
	}
	for disclosure, want := range map[host.Disclosure]bool{host.Disclosed: true, host.Redacted: false} {
		var taken bytes.Buffer
		if err := snapshotOf(root)(t.Context(), &taken, disclosure); err != nil {
			t.Fatal(err)
		}
		unpacked, err := gzip.NewReader(&taken)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(unpacked)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(content, []byte("tradefloor-7")) != want || !bytes.Contains(content, []byte("proc/cmdline")) {
			t.Errorf("the name of the host is in a snapshot that is to have it: %v; %d bytes", !want, len(content))
		}
	}
	if err := snapshotOf(filepath.Join(root, "nothing"))(t.Context(), io.Discard, host.Redacted); err == nil {
		t.Error("there is a snapshot of nothing")
	}
}
