// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestManagementCPUsOf(t *testing.T) {
	const header = "[crio.runtime.workloads.management]\nactivation_annotation = \"target.workload.openshift.io/management\"\nannotation_prefix = \"resources.workload.openshift.io\"\n"
	cases := map[string]struct {
		content, want string
		found         bool
	}{
		"nothing":                {"", "", false},
		"another table":          {"[crio.runtime]\ninfra_ctr_cpuset = \"0-1\"\n", "", false},
		"another workload":       {"[crio.runtime.workloads.batch]\nresources = { \"cpuset\" = \"0-1\" }\n", "", false},
		"as the platform writes": {header + "resources = { \"cpushares\" = 0, \"cpuset\" = \"0-1,52-53\" }\n", "0-1,52-53", true},
		"without CPUs":           {header + "resources = { \"cpushares\" = 0, \"cpuset\" = \"\" }\n", "", true},
		"nothing but the header": {"[crio.runtime.workloads.management]\n", "", true},
		"plain keys":             {header + "resources = {cpushares = 0, cpuset = '2-3'}", "2-3", true},
		"a table of its own":     {header + "[crio.runtime.workloads.management.resources]\ncpushares = 0\ncpuset = \"4\"\n", "4", true},
		"a dotted key":           {header + "resources.cpuset = \"5\"", "5", true},
		"quoted header":          {"[ crio . runtime . workloads . \"management\" ] # ours\nresources = { cpuset = \"6\" }", "6", true},
		"a comment":              {header + "# resources = { \"cpuset\" = \"9\" }\nresources = { \"cpuset\" = \"7\" }", "7", true},
		"a key that ends so":     {header + "resources = { \"infra_cpuset\" = \"9\" }", "", true},
		"after another table":    {header + "resources = { \"cpuset\" = \"8\" }\n[crio.runtime]\nresources = { \"cpuset\" = \"9\" }", "8", true},
		"outside of resources":   {header + "cpuset = \"9\"\n", "", true},
		"commented out":          {"# [crio.runtime.workloads.management]\nresources = { \"cpuset\" = \"9\" }", "", false},
	}
	for name, tc := range cases {
		if got, found := managementCPUsOf(tc.content); got != tc.want || found != tc.found {
			t.Errorf("%s: %q, %t; want %q, %t", name, got, found, tc.want, tc.found)
		}
	}
}

func FuzzManagementCPUsOf(f *testing.F) {
	f.Add("[crio.runtime.workloads.management]\nresources = { \"cpushares\" = 0, \"cpuset\" = \"0-1\" }\n")
	f.Fuzz(func(t *testing.T, content string) {
		got, found := managementCPUsOf(content)
		if !strings.Contains(content, got) || !found && got != "" {
			t.Errorf("%q, %t is read from %q", got, found, content)
		}
	})
}

// The file that comes last decides, and a host that cannot say so has no value.
func TestManagementCPUs(t *testing.T) {
	table := func(cpuset string) string {
		return "[crio.runtime.workloads.management]\nresources = { \"cpushares\" = 0, \"cpuset\" = \"" + cpuset + "\" }\n"
	}
	cases := map[string]struct {
		files        map[string]string
		want, source string
		reason       string
	}{
		"no CRI-O":        {nil, "", RuntimeFolder, "no such file"},
		"no partitioning": {map[string]string{"00-default": "[crio.runtime]\n"}, "", RuntimeFolder, "no file has a table crio.runtime.workloads.management"},
		"as installed":    {map[string]string{"00-default": "[crio]\n", "01-workload-pinning-default.conf": table("")}, "", RuntimeFolder + "/01-workload-pinning-default.conf", ""},
		"ours": {
			map[string]string{"01-workload-pinning-default.conf": table(""), "99-lowlatency-trading.conf": table("0-1")},
			"0-1", RuntimeFolder + "/99-lowlatency-trading.conf", "",
		},
		"a later one": {
			map[string]string{"99-lowlatency-trading.conf": table("0-1"), "99-workload-pinning.conf": table("0-7")},
			"0-7", RuntimeFolder + "/99-workload-pinning.conf", "",
		},
		"not text": {map[string]string{"99-a.conf": "\x01"}, "", RuntimeFolder + "/99-a.conf", "binary content"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(file, content string) {
				target := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(target, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/sys/kernel/hostname", "n")
			for file, content := range tc.files {
				write(RuntimeFolder+"/"+file, content)
			}
			opened, err := Open(root)
			if err != nil {
				t.Fatal(err)
			}
			facts, err := opened.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got := facts.ManagementCPUs
			if got.Known != (tc.reason == "") || got.Value != tc.want || got.Source != tc.source || got.Reason != tc.reason {
				t.Errorf("%+v, want %q from %s (%s)", got, tc.want, tc.source, tc.reason)
			}
		})
	}
}

// TestPlatformPods: a host without the file says so, a copy only if its maker looked for it.
func TestPlatformPods(t *testing.T) {
	host := files{"sys/devices/system/cpu/present": "0-3", "proc/sys/kernel/ostype": "Linux"}
	file := strings.TrimPrefix(PlatformPodsFile, "/")
	cases := map[string]struct {
		tree files
		want string
	}{
		"the file":                  {host.with(files{file: `{"management": {"cpuset": "0-1"}}`}), "true"},
		"an empty file":             {host.with(files{file: ""}), "true"},
		"a copy that says nothing":  {host, "absent: no such file"},
		"a copy that has looked":    {host.with(files{indexFile: `{"missing": ["` + PlatformPodsFile + `"]}`}), "false"},
		"a complete copy":           {host.with(files{indexFile: `{"complete": true}`}), "false"},
		"a copy that could not see": {host.with(files{indexFile: `{"unreadable": {"` + PlatformPodsFile + `": "permission denied"}}`}), "absent: permission denied"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { expect(t, "platform pods", readAll(t, tc.tree).PlatformPods, tc.want) })
	}
}
