// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"
	"testing"

	"github.com/coreos/ignition/v2/config/v3_2/types"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
)

// TestHostWritingIsTheMachineConfig: what is shown of a host is what Ignition's parser finds in the MachineConfig, no more and no less.
func TestHostWritingIsTheMachineConfig(t *testing.T) {
	for name, in := range plannedExamples(t) {
		t.Run(name, func(t *testing.T) {
			written, err := hostWriting(fleet.Shape{Hash: "17304b9f96e3aaaa", Nodes: []string{"worker-1"}, Plan: in.Plan})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, file := range written.Files {
				got[file.Path] = file.Mode + " " + file.Content
			}
			for _, link := range written.Links {
				got[link.Path] = link.Target
			}
			for _, unit := range written.EnabledUnits {
				got["enabled "+unit] = ""
			}
			machineConfig, err := MachineConfig(in)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(machineConfig.Spec.KernelArguments, written.KernelArguments); diff != "" {
				t.Errorf("kernel arguments (-MachineConfig +shown):\n%s", diff)
			}
			if diff := cmp.Diff(onHost(t, ignitionOf(t, in)), got); diff != "" {
				t.Errorf("(-MachineConfig +shown):\n%s", diff)
			}
		})
	}
}

// onHost is what Ignition makes of a configuration, by path.
func onHost(t *testing.T, config types.Config) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range config.Storage.Files {
		found[file.Path] = fmt.Sprintf("%04o ", ptr.Deref(file.Mode, 0)) + content(t, file)
	}
	for _, unit := range config.Systemd.Units {
		if text := ptr.Deref(unit.Contents, ""); text != "" {
			found["/etc/systemd/system/"+unit.Name] = "0644 " + text
		}
		if ptr.Deref(unit.Mask, false) {
			found["/etc/systemd/system/"+unit.Name] = "/dev/null"
		}
		if ptr.Deref(unit.Enabled, false) {
			found["enabled "+unit.Name] = ""
		}
		for _, dropIn := range unit.Dropins {
			found["/etc/systemd/system/"+unit.Name+".d/"+dropIn.Name] = "0644 " + ptr.Deref(dropIn.Contents, "")
		}
	}
	return found
}

// TestWritten: what comes to the nodes is told of each platform.
func TestWritten(t *testing.T) {
	own, carried := &rendering.HostWriting{PlanHash: "a"}, &rendering.HostWriting{PlanHash: "b"}
	if got := (&rendering.Bundle{Host: own, Carried: carried}).Written(); got != own {
		t.Errorf("%+v", got)
	}
	if got := (&rendering.Bundle{Carried: carried}).Written(); got != carried {
		t.Errorf("%+v", got)
	}
}
