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
	"time"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
)

func TestDRADriverRefusesBadFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", "/does/not/exist")
	good := []string{"--pool=x2", "--pool-file=/pool.json", "--node-name=worker-1"}
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"no file of the pool": {[]string{"--pool-file="}, "set --pool-file"},
		"no pool":             {[]string{"--pool="}, "set --pool to the name"},
		"no node":             {[]string{"--node-name="}, "set --node-name"},
		"no address":          {[]string{"--host-ip=worker-1"}, `"worker-1", which is no IP address`},
		"host is writable":    {[]string{"--root=/"}, "the host is mounted writable at /"},
		"no API server":       {nil, "finding the API server"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(slices.Concat([]string{"dra-driver"}, good, tc.arguments))
			if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestDRADriverFlags(t *testing.T) {
	flags := &draDriverFlags{pool: "x2", drain: true, devicePluginFlags: devicePluginFlags{
		NodeFlags: process.NodeFlags{NodeName: "worker-1", Root: t.TempDir()},
		poolFile:  filepath.Join("etc", "pool.json"), kubeletFolder: "kubelet", cdiFolder: "cdi", interval: time.Minute,
	}}
	driver, err := flags.driver()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{driver.Pool, driver.Draining, driver.NodeName, driver.PoolFile, driver.KubeletFolder, driver.CDIFolder, driver.Interval}
	if want := []any{"x2", true, "worker-1", flags.poolFile, "kubelet", "cdi", time.Minute}; !slices.Equal(got, want) {
		t.Errorf("the driver has the settings %v, want %v", got, want)
	}
	if _, err := driver.Evaluate(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v, want that there is no pool", err)
	}
	if containers := driver.Containers(t.Context()); containers.Known || !strings.HasPrefix(containers.Source, flags.Root) {
		t.Errorf("containers are %+v, want that no kubelet answers below the root", containers)
	}
}
