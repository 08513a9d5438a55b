// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package uevent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/uevent"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		message string
		want    uevent.Event
		wantErr bool
	}{
		"a driver that is bound": {
			message: "bind@/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0\x00ACTION=bind\x00DEVPATH=/devices/pci0000:3a\x00SUBSYSTEM=pci\x00SEQNUM=4711\x00",
			want:    uevent.Event{Action: "bind", Device: "/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0", Subsystem: "pci"},
		},
		"a CPU that goes": {
			message: "offline@/devices/system/cpu/cpu5\x00ACTION=offline\x00SUBSYSTEM=cpu\x00",
			want:    uevent.Event{Action: "offline", Device: "/devices/system/cpu/cpu5", Subsystem: "cpu"},
		},
		"without variables": {message: "change@/x", want: uevent.Event{Action: "change", Device: "/x"}},
		"udev's own":        {message: "libudev\x00\xfe\xed\xca\xfe", wantErr: true},
		"nothing":           {wantErr: true},
		"no action":         {message: "@/x", wantErr: true},
		"no device":         {message: "add@x", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := uevent.Parse([]byte(tc.message))
			if (err != nil) != tc.wantErr {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("bind@/devices/pci\x00SUBSYSTEM=pci\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		event, err := uevent.Parse(message)
		if err == nil && (event.Action == "" || !strings.HasPrefix(event.Device, "/")) {
			t.Errorf("%q was read as %+v", message, event)
		}
	})
}
