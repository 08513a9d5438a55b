// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cmdline

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImpersonal(t *testing.T) {
	cases := map[string]struct {
		line, want string
		left       []string
	}{
		"what operators write stays": {
			line: "isolcpus=managed_irq,domain,2-7 nohz_full=2-7 rcu_nocbs=2-7 nosmt tsc=reliable intel_pstate=disable hugepagesz=1G hugepages=16 rcutree.nohz_full_patience_delay=1000 quiet",
			want: "isolcpus=managed_irq,domain,2-7 nohz_full=2-7 rcu_nocbs=2-7 nosmt tsc=reliable intel_pstate=disable hugepagesz=1G hugepages=16 rcutree.nohz_full_patience_delay=1000 quiet",
		},
		"hyphens":                        {line: "rcu-nocbs=1 nohz-full=1", want: "rcu-nocbs=1 nohz-full=1"},
		"disks and addresses":            {line: "root=UUID=1 ip=10.0.0.1::x quiet ip=10.0.0.1::x ip=dhcp", want: "root=redacted-1 ip=redacted-2 quiet ip=redacted-2 ip=redacted-3", left: []string{"root", "ip"}},
		"a password for an initial disk": {line: "rd.iscsi.password=hunter2", want: "rd.iscsi.password=redacted-1", left: []string{"rd.iscsi.password"}},
		"an unknown word":                {line: "hunter2 acme=1 acme=2", want: "redacted_1 redacted_2=redacted-1 redacted_2=redacted-2", left: []string{"redacted_1", "redacted_2"}},
		"quotes":                         {line: `acme="a b" quiet`, want: "redacted_1=redacted-1 quiet", left: []string{"redacted_1"}},
		"what init gets":                 {line: "quiet -- hunter2", want: "quiet"},
		"a sysctl with a name":           {line: "sysctl.kernel.hostname=hunter2", want: "redacted_1=redacted-1", left: []string{"redacted_1"}},
		"nothing":                        {},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			line, err := Parse(tc.line)
			if err != nil {
				t.Fatal(err)
			}
			got, left := line.Impersonal()
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("arguments without value (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzImpersonal: no argument of another's making is left, and what is written can be read.
func FuzzImpersonal(f *testing.F) {
	f.Add("root=hunter2 quiet")
	f.Add(`"hunter2 x"=1 hunter2="a b" -- hunter2`)
	f.Add(`ro=ntui" `)
	f.Add(`quiet"a b"=1 ro`)
	f.Fuzz(func(t *testing.T, text string) {
		line, err := Parse("acme=hunter2 " + text)
		if err != nil || strings.Contains(text, "hunter2") && !strings.Contains(text, "=hunter2") {
			return
		}
		written, _ := line.Impersonal()
		again, err := Parse(written)
		if err != nil {
			t.Fatalf("%q cannot be read: %v", written, err)
		}
		if len(again.Args()) != len(line.Args()) {
			t.Errorf("%d arguments become %d: %q", len(line.Args()), len(again.Args()), written)
		}
		if value, _ := again.Get("acme"); value != "" {
			t.Errorf("acme has the value %q", value)
		}
	})
}
