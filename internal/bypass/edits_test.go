// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

func TestContainerEdits(t *testing.T) {
	onload := func(change func(*v1alpha1.OnloadStack)) Input {
		in := onloadInput()
		change(in.Pool.Spec.Stack.Onload)
		return in
	}
	direct := tcpDirectInput()
	direct.Pool.Spec.Stack.TCPDirect.Attributes = []v1alpha1.TCPDirectAttribute{
		{Name: "ctpio_mode", Value: "ct"}, {Name: "reactor_spin_count", Value: "256"}, {Name: "spin", Value: "1"},
	}
	attached := tcpDirectInput()
	attached.Pool.Spec.NetworkAttachment = &v1alpha1.NetworkAttachmentSpec{Type: v1alpha1.AttachmentHostDevice}
	attached.Pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{firstX2}}}
	unconfined := vfioInput()
	unconfined.Pool.Spec.Stack.VFIO.Isolation = v1alpha1.VFIOIsolationNoIOMMU
	unconfined.Facts.Bypass.VFIO.NoIOMMU.Value = true
	unconfined.Facts.Bypass.DeviceNodes.Value["/dev/vfio/noiommu-42"] = host.DeviceNode{}
	cases := map[string]Input{
		"onload-preload": onload(func(*v1alpha1.OnloadStack) {}),
		"onload-launcher": onload(func(o *v1alpha1.OnloadStack) {
			o.Start, o.Profile = v1alpha1.StartLauncher, v1alpha1.OnloadProfileNone
			o.Options = []v1alpha1.OnloadOption{{Name: "EF_POLL_USEC", Value: "-1"}, {Name: "EF_NO_FAIL", Value: "2"}}
		}),
		"onload-best": onload(func(o *v1alpha1.OnloadStack) {
			o.Profile = v1alpha1.OnloadProfileLatencyBest
			o.Options = []v1alpha1.OnloadOption{{Name: "EF_EPOLL_MT_SAFE", Value: "0"}}
		}),
		"onload-application": onload(func(o *v1alpha1.OnloadStack) {
			o.UserSpace = v1alpha1.UserSpaceSpec{Source: v1alpha1.UserSpaceApplication}
		}),
		"tcpdirect":          direct,
		"tcpdirect-attached": attached,
		"efvi":               efviInput(),
		"vfio":               vfioInput(),
		"vfio-noiommu":       unconfined,
		"vfio-functions":     virtualInput(2),
	}
	for name, in := range cases {
		t.Run(name, func(t *testing.T) {
			devices := Devices(in)
			// A share of a NIC that the container holds already adds nothing.
			edits, err := ContainerEdits(in, append(devices, devices[0]))
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, name, edits)
		})
	}
}

func compareGolden(t *testing.T, name string, edits Edits) {
	t.Helper()
	got, err := json.MarshalIndent(edits, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, string(got)+"\n", name+".json")
}

// latency-best cuts through only where no X2 is too fast for the CPU.
func TestCutThrough(t *testing.T) {
	speed := func(address string, speed host.Fact[int64]) func(Input) {
		return func(in Input) { nicAt(in, address).SpeedMegabits = speed }
	}
	cases := map[string]struct {
		change func(Input)
		want   string
	}{
		"X2 at 10 Gbit/s":         {func(Input) {}, "ct"},
		"X2 at 25 Gbit/s":         {speed(firstX2, host.Known[int64](25000, "")), ""},
		"another X2 at 25 Gbit/s": {speed(secondX2, host.Known[int64](25000, "")), ""},
		"X2 of unknown speed":     {speed(firstX2, nothingRead[int64]("speed")), ""},
		"E810 at 100 Gbit/s":      {speed(firstE810, host.Known[int64](100000, "")), "ct"},
		"X2 that no program can use": {
			func(in Input) {
				speed(secondX2, nothingRead[int64]("speed"))(in)
				nicAt(in, secondX2).Driver.Value = "vfio-pci"
			},
			"ct",
		},
		"X4 at 100 Gbit/s": {
			func(in Input) {
				nicAt(in, secondX2).Device.Value = "0x0c03"
				speed(secondX2, host.Known[int64](100000, ""))(in)
			},
			"ct",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := onloadInput()
			tc.change(in)
			if got := profileOptions(in, v1alpha1.OnloadProfileLatencyBest)["EF_CTPIO_MODE"]; got != tc.want {
				t.Errorf("EF_CTPIO_MODE is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRefusedEdits(t *testing.T) {
	cases := map[string]struct {
		input  Input
		change func(*Input)
		none   bool
		want   string
	}{
		"no device": {input: onloadInput(), none: true, want: "no device of the pool"},
		"ineligible": {
			input:  onloadInput(),
			change: func(in *Input) { in.Facts.Bypass.Networks.Value[0].Interface = "ens1f0" },
			want:   "NIC 0000:3b:00.0 must not be handed out: Interface ens1f0 carries the default route",
		},
		"missing library": {
			input: tcpDirectInput(), change: removeFile("libefcp.so.1"),
			want: "libefcp.so.1 was not found below /opt/onload of spec.stack userSpace.hostPath",
		},
		"no group": {
			input: vfioInput(), change: func(in *Input) { in.Facts.Bypass.VFIO.Groups = nil },
			want: "the IOMMU group of NIC 0000:af:00.0 is not known",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.change != nil {
				tc.change(&tc.input)
			}
			devices := Devices(tc.input)
			if tc.none {
				devices = nil
			}
			edits, err := ContainerEdits(tc.input, devices)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the error is %v, want %q in it", err, tc.want)
			}
			if !cmp.Equal(edits, Edits{}) {
				t.Errorf("edits besides an error: %+v", edits)
			}
		})
	}
}
