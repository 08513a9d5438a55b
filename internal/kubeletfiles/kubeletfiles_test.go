// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubeletfiles

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// whole is what adds up.
const whole = `{"memoryManagerPolicy": "Static", "systemReserved": {"memory": "1Gi"}, "kubeReserved": {"memory": "512Mi", "cpu": "1"},
	"evictionHard": {"memory.available": "524288Ki"}, "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1Gi"}}, {"numaNode": 1, "limits": {"memory": 1073741824}}]}`

func TestCheckMemory(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"adds up in unlike units":   {"", "", ""},
		"another policy":            {`"Static"`, `"None"`, ""},
		"a byte too much":           {"1073741824", "1073741825", "adds up to 2147483649"},
		"a part of no amount":       {`"524288Ki"`, `"5%"`, `evictionHard[memory.available] is "5%"`},
		"a part that is not stated": {`"memory": "512Mi", `, ``, `kubeReserved[memory] is ""`},
		"hugepages besides":         {`"memory": "1Gi"}}, {`, `"memory": "1Gi", "hugepages-2Mi": "2Mi"}}, {`, "reserves hugepages-2Mi"},
		"a list that is none":       {`"reservedMemory": [`, `"reservedMemory": 7, "x": [`, "cannot unmarshal"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(whole, tc.from) {
				t.Fatalf("there is no %s", tc.from)
			}
			err := CheckMemory(strings.Replace(whole, tc.from, tc.to, 1))
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}

// TestFlags: which flags keep a plan from a kubelet.
func TestFlags(t *testing.T) {
	for flag, want := range map[string]struct{ elsewhere, outweighs bool }{
		"--config=/etc/kubelet.yaml":   {false, false},
		"--config-dir=/etc/kubelet.d":  {false, false},
		"--root-dir=/var/lib/kubelet/": {false, false},
		"--root-dir=/data/kubelet":     {true, false},
		"--cpu-manager-policy=none":    {false, true},
		"--system-reserved=memory=1Gi": {false, true},
		"--protect-kernel-defaults=1":  {false, false},
		"--topology-manager-scope=pod": {false, true},
	} {
		if IsElsewhere(flag) != want.elsewhere || Outweighs(flag) != want.outweighs {
			t.Errorf("%s: elsewhere %t, outweighs %t", flag, IsElsewhere(flag), Outweighs(flag))
		}
	}
}

func TestProtectsKernel(t *testing.T) {
	set := map[string]any{"protectKernelDefaults": true}
	for name, tc := range map[string]struct {
		flags  []string
		merged map[string]any
		want   bool
	}{
		"nothing":          {nil, nil, false},
		"its files":        {[]string{"--config=/etc/kubelet.yaml"}, set, true},
		"a flag":           {[]string{"--protect-kernel-defaults=true"}, nil, true},
		"a flag outweighs": {[]string{"--protect-kernel-defaults=true", "--protect-kernel-defaults=F"}, set, false},
		"what is no word":  {[]string{"--protect-kernel-defaults=maybe"}, nil, true},
	} {
		if got := ProtectsKernel(tc.flags, tc.merged); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOverridden(t *testing.T) {
	for name, tc := range map[string]struct {
		file, merged string
		want         []string
	}{
		"as it is":                      {`{"a": 1, "b": {"c": "x"}}`, `{"a": 1, "b": {"c": "x", "d": "y"}, "e": 2}`, nil},
		"YAML":                          {"a: 1\nb: {c: x}\n", `{"a": 1, "b": {"c": "x"}}`, nil},
		"another value, and none":       {`{"b": 1, "a": [1]}`, `{"a": [1, 2]}`, []string{"a", "b"}},
		"a name of an object otherwise": {`{"b": {"c": "x"}}`, `{"b": {"c": "y"}}`, []string{"b"}},
		"an object that is none":        {`{"b": {"c": "x"}}`, `{"b": 1}`, []string{"b"}},
		"removed, and it is":            {`{"b": {"c": null}, "a": null}`, `{"b": {}}`, nil},
		"removed, and it is not":        {`{"b": {"c": null}, "a": null}`, `{"b": {"c": "x"}, "a": 1}`, []string{"a", "b"}},
	} {
		got, err := Overridden(tc.file, tc.merged)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got), %v:\n%s", name, err, diff)
		}
	}
	if _, err := Overridden("[", "{}"); err == nil {
		t.Error("no error of a file that is none")
	}
}

func FuzzCheckMemory(f *testing.F) {
	f.Add(whole)
	f.Add(`{"memoryManagerPolicy": "Static", "reservedMemory": [{}]}`)
	f.Fuzz(func(t *testing.T, merged string) {
		_ = CheckMemory(merged)
		if names, err := Overridden(merged, merged); err == nil && len(names) > 0 {
			t.Errorf("%q is overridden by itself: %v", merged, names)
		}
	})
}
