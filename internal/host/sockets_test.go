// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSocketReports(t *testing.T) {
	const folder = "run/lowlatency/afxdp/reports/"
	cases := map[string]struct {
		host       files
		want       map[string]SocketReport
		wantReason string
	}{
		"none": {files{"run/": ""}, map[string]SocketReport{}, ""},
		"two pools": {
			files{
				folder + "orders": "0000:3b:00.0 Another XDP program is on its interface.\n* The kernel is too old.\n",
				folder + "quotes": "", folder + ".quotes.tmp": "* Half a",
			},
			map[string]SocketReport{
				"orders": {"0000:3b:00.0": "Another XDP program is on its interface.", "": "The kernel is too old."}, "quotes": {},
			}, "",
		},
		"nonsense": {files{folder + "orders": "0000:3b:00.0\n"}, nil, "not a PCI address and a sentence"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := readAll(t, tc.host).Bypass.SocketReports
			if diff := cmp.Diff(tc.want, got.Value); diff != "" {
				t.Errorf("reports (-want +got):\n%s", diff)
			}
			if got.Known != (tc.wantReason == "") || !strings.Contains(got.Reason, tc.wantReason) {
				t.Errorf("got %+v, want the reason %q", got, tc.wantReason)
			}
		})
	}
}

func FuzzSocketReport(f *testing.F) {
	f.Add("0000:3b:00.0 No link.\n* Too old.")
	f.Add("\n")
	f.Add(" a  b \t c")
	f.Fuzz(func(t *testing.T, text string) {
		report, err := parseSocketReport(text)
		if err != nil {
			return
		}
		again, err := parseSocketReport(report.String())
		if err != nil || len(again) != len(report) {
			t.Errorf("%q is read as %v, which is written as %q and read as %v, %v", text, report, report, again, err)
		}
	})
}
