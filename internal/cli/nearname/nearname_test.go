// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nearname

import "testing"

func TestOf(t *testing.T) {
	names := []string{"cpus", "derived", "explicit", "isolation", "tick", "vendor", "nodeSelector"}
	for text, want := range map[string]string{
		"derivd": "derived", "derived2": "derived", "Derived": "derived", "vednor": "vendor", "nodeselector": "nodeSelector", "isolations": "isolation",
		"hugepages": "", "x": "", "": "", "cpu": "cpus",
		"itck": "tick", "tikc": "tick", "node": "nodeSelector", "no": "",
		"node-tikc": "tick", "the-vednor": "vendor", "tick-vendor": "", "tick-is": "tick", "-": "", "cpu-set": "",
	} {
		if got := Of(text, names); got != want {
			t.Errorf("near %q is %q, want %q", text, got, want)
		}
	}
}
