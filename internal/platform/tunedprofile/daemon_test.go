//go:build tuned

// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package tunedprofile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// These tests need TuneD itself (Debian and Fedora package "tuned"), whose profile loader, plugins and device
// matcher judge what is rendered:
//
//	go test -tags tuned ./internal/platform/tunedprofile

// tunedUnit is a section after TuneD merged it with the parent profiles.
type tunedUnit struct {
	Type             string            `json:"type"`
	Enabled          bool              `json:"enabled"`
	Options          map[string]string `json:"options"`
	DevicesUdevRegex string            `json:"devicesUdevRegex"`
	// Supported reports whether TuneD made an instance of the plugin here; only then it looked at the options.
	Supported bool `json:"supported"`
}

// runTuned runs testdata/ask_tuned.py with the system's Python, which has TuneD's modules. The error ends with what
// TuneD said.
func runTuned(t *testing.T, stdin []byte, arguments ...string) ([]byte, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "/usr/bin/python3", append([]string{"testdata/ask_tuned.py"}, arguments...)...)
	command.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("ask_tuned.py: %w: %s", err, stderr.String())
	}
	return out, nil
}

// loadWithTuned writes a profile where TuneD finds it and has TuneD load it.
func loadWithTuned(t *testing.T, text string) (map[string]tunedUnit, error) {
	t.Helper()
	directory := t.TempDir()
	if err := os.Mkdir(filepath.Join(directory, "rendered"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(directory, "rendered", "tuned.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runTuned(t, nil, "load", directory, "rendered")
	if err != nil {
		return nil, err
	}
	var units map[string]tunedUnit
	if err := json.Unmarshal(out, &units); err != nil {
		t.Fatalf("reading TuneD's answer %q: %v", out, err)
	}
	return units, nil
}

// TestTunedAcceptsTheProfile has TuneD load each example: every section has a plugin, every option is one that the
// plugin has, and every value arrives as planned.
func TestTunedAcceptsTheProfile(t *testing.T) {
	for name, p := range goldenPlans(t) {
		t.Run(name, func(t *testing.T) {
			text, err := Text(p, parent)
			if err != nil {
				t.Fatalf("Text: %v", err)
			}
			units, err := loadWithTuned(t, text)
			if err != nil {
				t.Fatalf("TuneD refuses the profile: %v\n%s", err, text)
			}
			if _, has := units["bootloader"]; has {
				t.Errorf("the profile or a parent of it has a bootloader section")
			}
			if got := units["sysctl"].Options["net.ipv4.tcp_fastopen"]; got != "3" {
				t.Errorf("net.ipv4.tcp_fastopen = %q: openshift-node was not included", got)
			}
			rendered := readProfile(t, text)
			delete(rendered, "main")
			for section, options := range rendered {
				compareUnit(t, section, options, units[section])
			}
			wantCPU := maps.Clone(rendered["cpu"])
			delete(wantCPU, "replace")
			if units["cpu"].Enabled && !maps.Equal(wantCPU, units["cpu"].Options) {
				t.Errorf("[cpu] is %v, want %v and nothing from a parent", units["cpu"].Options, wantCPU)
			}
		})
	}
}

func compareUnit(t *testing.T, section string, options map[string]string, unit tunedUnit) {
	t.Helper()
	if unit.Type != section || !unit.Supported {
		t.Errorf("TuneD made no instance of [%s]", section)
	}
	if wantEnabled := options["enabled"] != "false"; unit.Enabled != wantEnabled {
		t.Errorf("[%s] enabled = %t, want %t", section, unit.Enabled, wantEnabled)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch name {
		case "enabled", "replace":
		case "devices_udev_regex":
			if unit.DevicesUdevRegex != options[name] {
				t.Errorf("[%s] matches %q, want %q", section, unit.DevicesUdevRegex, options[name])
			}
		default:
			if unit.Options[name] != options[name] {
				t.Errorf("[%s] %s = %q, want %q", section, name, unit.Options[name], options[name])
			}
		}
	}
}

// TestTunedComplains shows that the test above can fail.
func TestTunedComplains(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"an unknown plugin":  {"[main]\ninclude=openshift-node\n\n[warpdrive]\nspeed=9\n", "warpdrive"},
		"an unknown option":  {"[main]\ninclude=openshift-node\n\n[vm]\nhuge=never\n", "Unknown option 'huge'"},
		"an unknown command": {"[main]\ninclude=openshift-node\n\n[service]\nservice.x=halt\n", "invalid service option: 'halt'"},
		"an unknown parent":  {"[main]\ninclude=openshift-nowhere\n", "Cannot find profile 'openshift-nowhere'"},
		"no profile at all":  {"speed=9\n", "Cannot parse"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loadWithTuned(t, tc.text)
			wantError(t, err, tc.want)
		})
	}
}

// TestTunedMatchesNICs has TuneD's matcher apply rendered expressions to udev properties of real NICs.
func TestTunedMatchesNICs(t *testing.T) {
	solarflare := map[string]string{
		"DEVPATH":   "/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/net/ens1f0",
		"INTERFACE": "ens1f0", "ID_VENDOR_ID": "0x1924", "ID_MODEL_ID": "0x0b03", "ID_NET_DRIVER": "sfc", "SUBSYSTEM": "net",
	}
	virtio := map[string]string{
		"DEVPATH":   "/devices/pci0000:00/0000:00:03.0/virtio0/net/eth0",
		"INTERFACE": "eth0", "ID_VENDOR_ID": "0x1af4", "ID_MODEL_ID": "0x1000", "ID_NET_DRIVER": "virtio_net",
	}
	cases := map[string]struct {
		selectors      []v1alpha1.NICSelector
		wantSolarflare bool
		wantVirtio     bool
	}{
		"a name":                   {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"eth0"}}}, false, true},
		"the beginning of a name":  {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f"}}}, false, false},
		"a star":                   {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens*"}}}, true, false},
		"a question mark":          {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"ens1f?"}}}, true, false},
		"everything but":           {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"!eth*"}}}, true, false},
		"everything but nothing":   {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"!wlan0"}}}, true, true},
		"a vendor":                 {[]v1alpha1.NICSelector{{Vendor: "1924"}}, true, false},
		"a model":                  {[]v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0b03"}}}, true, false},
		"another model":            {[]v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0a03"}}}, false, false},
		"a driver":                 {[]v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"virtio_net"}}}, false, true},
		"a place":                  {[]v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:3b:00.0"}}}, true, false},
		"a place behind virtio":    {[]v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:00:03.0"}}}, false, true},
		"the bridge above a place": {[]v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:3a:00.0"}}}, false, false},
		"one of several names":     {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"wlan0", "ens**"}}}, true, false},
		"all names but for some":   {[]v1alpha1.NICSelector{{Interfaces: []v1alpha1.InterfacePattern{"*", "!ens?f0", "!wlan*"}}}, false, true},
		"one of several models":    {[]v1alpha1.NICSelector{{Vendor: "1924", Devices: []v1alpha1.PCIID{"0a03", "0b03"}}}, true, false},
		"one of several places":    {[]v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:00:03.0", "0000:3b:00.0"}}}, true, true},
		"either of two":            {[]v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}}, {Interfaces: []v1alpha1.InterfacePattern{"eth?"}}}, true, true},
		"both at once":             {[]v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}, Interfaces: []v1alpha1.InterfacePattern{"eth?"}}}, false, false},
	}
	type question struct {
		Expression string            `json:"expression"`
		Properties map[string]string `json:"properties"`
	}
	names := slices.Sorted(maps.Keys(cases))
	questions := make([]question, 0, 2*len(names))
	for _, name := range names {
		section, err := networkSection(plan.NetworkPlan{Queues: 4, NICs: cases[name].selectors})
		if err != nil {
			t.Fatalf("networkSection: %v", err)
		}
		expression := section.options[0].value
		questions = append(questions, question{expression, solarflare}, question{expression, virtio})
	}
	stdin, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	out, err := runTuned(t, stdin, "match")
	if err != nil {
		t.Fatal(err)
	}
	var answers []bool
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		want := []bool{cases[name].wantSolarflare, cases[name].wantVirtio}
		if diff := cmp.Diff(want, answers[2*i:2*i+2]); diff != "" {
			t.Errorf("%s: %q matches sfc and virtio (-want +got):\n%s", name, questions[2*i].Expression, diff)
		}
	}
}
