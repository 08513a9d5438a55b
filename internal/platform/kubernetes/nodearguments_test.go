// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"strings"
	"testing"
)

// TestCheckNodeArguments: what a service of K3s or RKE2 tells on its Node keeps a plan from going to a folder that nobody reads, or behind flags.
func TestCheckNodeArguments(t *testing.T) {
	k3s := func(arguments string) map[string]string { return map[string]string{"k3s.io/node-args": arguments} }
	for name, tc := range map[string]struct {
		annotations map[string]string
		says        string
	}{
		"neither":                         {map[string]string{"example.com/node-args": `["--data-dir","/data"]`}, ""},
		"nothing of the kind":             {k3s(`["server","--node-ip","10.0.0.1","--disable",""]`), ""},
		"the usual folder":                {k3s(`["server","--data-dir","/var/lib/rancher/k3s/"]`), ""},
		"data elsewhere":                  {k3s(`["agent","--data-dir","/data/k3s"]`), "k3s was started with data-dir /data/k3s, and its kubelet reads files in /data/k3s/agent/etc/kubelet.conf.d"},
		"in one word":                     {k3s(`["agent","--data-dir=/data/k3s"]`), "data-dir /data/k3s"},
		"by its short name":               {k3s(`["agent","-d","/data/k3s"]`), "data-dir /data/k3s"},
		"the last counts":                 {k3s(`["agent","--data-dir","/data/k3s","--data-dir","/var/lib/rancher/k3s"]`), ""},
		"the folder of the other":         {map[string]string{"rke2.io/node-args": `["server","--data-dir","/var/lib/rancher/k3s"]`}, "rke2 was started with data-dir /var/lib/rancher/k3s"},
		"by the environment":              {map[string]string{"k3s.io/node-args": `["agent"]`, "k3s.io/node-env": `{"K3S_DATA_DIR":"/data/k3s"}`}, "data-dir /data/k3s"},
		"an argument over it":             {map[string]string{"k3s.io/node-args": `["agent","--data-dir","/var/lib/rancher/k3s"]`, "k3s.io/node-env": `{"K3S_DATA_DIR":"/data/k3s"}`}, ""},
		"a flag for a field":              {k3s(`["agent","--kubelet-arg","kube-reserved=memory=1Gi"]`), "its kubelet is started with --kube-reserved=memory=1Gi, which has more weight than any file; take it out of kubelet-arg, in /etc/rancher/k3s/config.yaml"},
		"a flag in one word":              {k3s(`["agent","--kubelet-arg=cpu-manager-policy=none"]`), "--cpu-manager-policy=none"},
		"a state elsewhere":               {map[string]string{"rke2.io/node-args": `["agent","--kubelet-arg","root-dir=/data/kubelet"]`}, "started with --root-dir=/data/kubelet, and what it remembers there is removed in /var/lib/kubelet only; take it out"},
		"its state where it is":           {k3s(`["agent","--kubelet-arg","root-dir=/var/lib/kubelet"]`), ""},
		"flags that become files":         {k3s(`["agent","--kubelet-arg","config=/etc/k.yaml","--kubelet-arg","config-dir=/etc/k.d"]`), ""},
		"a flag that bears on nothing":    {k3s(`["agent","--kubelet-arg","max-pods=250"]`), ""},
		"an argument without a value":     {k3s(`["agent","--kubelet-arg"]`), ""},
		"what is no list":                 {k3s(`agent`), "the annotation k3s.io/node-args of its Node is no list of words"},
		"an environment that is no table": {map[string]string{"k3s.io/node-args": `["agent"]`, "k3s.io/node-env": `[`}, "the annotation k3s.io/node-env of its Node is no table of variables"},
	} {
		t.Run(name, func(t *testing.T) {
			got := CheckNodeArguments(tc.annotations)
			if (got == "") != (tc.says == "") || !strings.Contains(got, tc.says) {
				t.Errorf("CheckNodeArguments() = %q, want %q", got, tc.says)
			}
		})
	}
}
