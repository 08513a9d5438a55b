// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// TestReadMore comes to what reading everything at once does, and leaves the first facts as they are.
func TestReadMore(t *testing.T) {
	tree := files{
		"proc/sys/net/core/wmem_max":                                 "212992\n",
		"proc/7/status":                                              "Name:\tapp\nState:\tS (sleeping)\nCpus_allowed_list:\t1\n",
		"sys/devices/system/cpu/present":                             "0-1\n",
		"sys/devices/system/cpu/online":                              "0-1\n",
		"sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us": "0\n",
		"usr/lib/systemd/system/cups.service":                        "[Unit]\n",
		"opt/onload/usr/lib64/libonload.so":                          library(moduleInterface),
	}
	request := Request{
		Settings:   []string{"/proc/sys/net/core/wmem_max", "/sys/devices/system/cpu/cpu1/power/pm_qos_resume_latency_us", "/etc/shadow"},
		UserSpaces: []string{"/opt/onload"},
		Tasks:      cpus.Of(1),
		Units:      []string{"cups.service"},
	}
	opened := open(t, tree.with(files{"proc/": ""}).write(t))
	first, err := opened.Read(t.Context())
	must(t, err)
	more, err := opened.ReadMore(t.Context(), first, request)
	must(t, err)
	want, err := opened.ReadWith(t.Context(), request)
	must(t, err)
	if diff := cmp.Diff(want, more); diff != "" {
		t.Errorf("other facts than when asked at once (-at once +more):\n%s", diff)
	}
	again, err := opened.Read(t.Context())
	must(t, err)
	if diff := cmp.Diff(again, first); diff != "" {
		t.Errorf("the first facts have changed (-want +got):\n%s", diff)
	}
	if cmp.Equal(first, more) {
		t.Error("nothing more was read")
	}
}
