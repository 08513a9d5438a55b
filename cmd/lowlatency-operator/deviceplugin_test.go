// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestDevicePluginRefusesBadFlags(t *testing.T) {
	good := []string{"--pool-file", "/pool.json", "--node-name", "worker-1"}
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"no pool":         {[]string{"--pool-file", ""}, "set --pool-file"},
		"no node":         {[]string{"--node-name", ""}, "set --node-name"},
		"no interval":     {[]string{"--interval", "0s"}, "--interval 0s is not positive"},
		"no address":      {[]string{"--host-ip", "192.0.2.1,worker-1"}, `"worker-1", which is no IP address`},
		"kubelet is away": {[]string{"--kubelet-dir", "/nowhere"}, "/nowhere/device-plugins"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(slices.Concat([]string{"device-plugin"}, good, tc.arguments))
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestDevicePluginFlags(t *testing.T) {
	flags := &devicePluginFlags{
		poolFile: filepath.Join("etc", "pool.json"), nodeName: "worker-1", root: t.TempDir(),
		hostIP: "192.0.2.1, 2001:db8::1,", kubeletFolder: "kubelet", cdiFolder: "cdi", interval: 1,
	}
	plugin, err := flags.plugin()
	if err != nil {
		t.Fatal(err)
	}
	if plugin.PoolFile != flags.poolFile || plugin.KubeletFolder != "kubelet" || plugin.CDIFolder != "cdi" || plugin.Interval != 1 {
		t.Errorf("plugin is %+v", plugin)
	}
	if _, err := plugin.Evaluate(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that there is no pool", err)
	}
}
