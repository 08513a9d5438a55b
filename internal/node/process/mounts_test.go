// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

// TestRefuseWritable: an agent does not run where it could write what it need not.
func TestRefuseWritable(t *testing.T) {
	readOnly := func(points ...string) []host.Mount {
		mounts := make([]host.Mount, 0, len(points))
		for _, point := range points {
			mounts = append(mounts, host.Mount{Point: point, Root: "/", ReadOnly: true})
		}
		return mounts
	}
	writable := func(mounts []host.Mount, points ...string) []host.Mount {
		for _, point := range points {
			mounts = append(mounts, host.Mount{Point: point, Root: "/"})
		}
		return mounts
	}
	all := readOnly("/host/proc", "/host/sys")
	cases := map[string]struct {
		mounts []host.Mount
		root   string
		repair bool
		want   string
	}{
		"read-only":                             {all, "/host", false, ""},
		"a host that is a folder of files":      {nil, "/tmp/host", false, ""},
		"/proc is writable":                     {writable(readOnly("/host/sys"), "/host/proc"), "/host", false, "mounted writable at /host/proc;"},
		"file systems below are writable":       {writable(all, "/host/sys/fs/bpf", "/host/proc/sys/fs/binfmt_misc"), "/host/", false, "writable at /host/proc/sys/fs/binfmt_misc, /host/sys/fs/bpf;"},
		"what is repaired":                      {writable(all, "/host/proc/irq", "/host/sys/kernel/mm"), "/host", true, ""},
		"what is repaired, by one that may not": {writable(all, "/host/proc/irq"), "/host", false, "writable at /host/proc/irq;"},
		"packet steering":                       {writable(all, "/host/sys/devices"), "/host", true, ""},
		"more than is repaired":                 {writable(all, "/host/proc/sys/kernel"), "/host", true, "writable at /host/proc/sys/kernel;"},
		"a name that begins like":               {writable(all, "/host/proc/irqs"), "/host", true, "writable at /host/proc/irqs;"},
		"all of a host, outside of a container": {writable(nil, "/", "/proc", "/sys"), "/", false, "writable at /, /proc, /sys;"},
		"the same, to repair":                   {writable(nil, "/", "/proc", "/sys"), "/", true, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := refuseWritable(tc.mounts, tc.root, tc.repair)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

// TestRefuseReplaced: a file that was replaced on the host is not read any more.
func TestRefuseReplaced(t *testing.T) {
	mounts := []host.Mount{
		{Point: "/host/etc/default", Root: "/etc/default"},
		{Point: "/host/etc/kubernetes/kubelet.conf", Root: "/etc/kubernetes/kubelet.conf//deleted"},
	}
	if err := refuseReplaced(mounts[:1]); err != nil {
		t.Errorf("error is %v", err)
	}
	if err := refuseReplaced(mounts); !errors.Is(err, errReplaced) || !strings.HasPrefix(err.Error(), "/host/etc/kubernetes/kubelet.conf was replaced") {
		t.Errorf("error is %v", err)
	}
}

func TestWatchMountsEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watchMounts(ctx, t.TempDir(), time.Millisecond) }()
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("error is %v", err)
	}
}
