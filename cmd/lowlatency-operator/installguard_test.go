// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestInstallGuardRefusesBadFlags(t *testing.T) {
	folder := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := []string{
		"--root", t.TempDir(), "--program", file("program", "x"), "--public-key", file("key", strings.Repeat("k", 32)),
		"--instruction", file("instruction", "x"), "--node-name", "worker-1", "--node-uid", "uid-1",
	}
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"no node":          {[]string{"--node-name", ""}, "set --node-name"},
		"no UID":           {[]string{"--node-uid", ""}, "set --node-uid"},
		"no key":           {[]string{"--public-key", ""}, "set --public-key"},
		"a short key":      {[]string{"--public-key", file("short", "k")}, "has 1 bytes, and a public key of Ed25519 has 32"},
		"no program":       {[]string{"--program", "/nowhere"}, "reading the guard's program"},
		"no instruction":   {[]string{"--instruction", "/nowhere"}, "reading the instruction"},
		"an empty one":     {[]string{"--instruction", file("empty", "")}, "is empty, and no instruction"},
		"no time":          {[]string{"--timeout", "0s"}, "--timeout 0s is not positive"},
		"its own root":     {[]string{"--root", "/"}, "this program's own file system"},
		"no host is there": {[]string{"--root", "/nowhere"}, "opening the root /nowhere"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(slices.Concat([]string{"install-guard"}, good, tc.arguments))
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want one with %q", err, tc.want)
			}
		})
	}
}
