// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package setting_test

import (
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/setting"
)

func TestSame(t *testing.T) {
	const (
		swappiness = "/proc/sys/vm/swappiness"
		pages      = "/sys/kernel/mm/transparent_hugepage/enabled"
		workqueue  = "/sys/devices/virtual/workqueue/cpumask"
		watchdog   = "/proc/sys/kernel/watchdog_cpumask"
		module     = "/sys/module/workqueue/parameters/power_efficient"
		ports      = "/proc/sys/net/ipv4/ip_local_reserved_ports"
		frequency  = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq"
	)
	cases := map[string]struct {
		file, a, b string
		want       bool
	}{
		"equal":                         {swappiness, "10", "10", true},
		"another number":                {swappiness, "10", "60", false},
		"a line break":                  {swappiness, "10\n", "10", true},
		"a hexadecimal number":          {swappiness, "0xa", "10", true},
		"a parameter is read in base 8": {swappiness, "010", "8", true},
		"and not in base 10":            {swappiness, "010", "10", false},
		"a file is not":                 {frequency, "010", "8", false},
		"nor in base 10":                {frequency, "010", "10", false},
		"zeros are zero":                {frequency, "00", "0", true},
		"one digit is the same in both": {frequency, "07", "7", true},
		"a negative number":             {"/proc/sys/kernel/sched_rt_runtime_us", "-1", "-1 ", true},
		"another sign":                  {"/proc/sys/kernel/sched_rt_runtime_us", "-1", "1", false},
		"a number is no size":           {"/proc/sys/vm/dirty_bytes", "1G", "1073741824", false},
		"tabs between numbers":          {"/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456", "4096 131072 6291456", true},
		"one number of several":         {"/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456", "4096 131072", false},
		"another order of numbers":      {"/proc/sys/net/ipv4/tcp_rmem", "4096 131072", "131072 4096", false},
		"a choice":                      {pages, "always madvise [never]", "never", true},
		"another choice":                {pages, "always [madvise] never", "never", false},
		"a choice of another order":     {pages, "[never] always", "always [never]", true},
		"an open bracket":               {pages, "always [never", "never", false},
		"brackets in a word":            {"/proc/sys/kernel/core_pattern", "core[1]x", "core", false},
		"a mask with leading zeros":     {workqueue, "00000003", "3", true},
		"a mask in groups":              {workqueue, "00000000,00000003", "3", true},
		"a mask in capitals":            {workqueue, "FF", "ff", true},
		"another mask":                  {workqueue, "3", "30", false},
		"a mask that is longer":         {workqueue, "3,00000000", "3", false},
		"a mask is no list":             {workqueue, "0-1", "3", false},
		"a mask is no decimal number":   {workqueue, "10", "16", false},
		"steering":                      {"/sys/class/net/eth0/queues/rx-0/rps_cpus", "0000,00000003", "3", true},
		"default steering":              {"/proc/sys/net/core/rps_default_mask", "00000003", "3", true},
		"a number is no mask":           {swappiness, "0a", "a", false},
		"a list":                        {watchdog, "0,1", "0-1", true},
		"another list":                  {watchdog, "0-2", "0-1", false},
		"a list is no mask":             {watchdog, "3", "0-1", false},
		"a switch of a module":          {module, "Y", "1", true},
		"a switch in a word":            {module, "N", "off", true},
		"a switch in small letters":     {module, "y", "Y", true},
		"a switch the other way":        {module, "N", "1", false},
		"a word that is no switch":      {module, "N", "disabled", false},
		"numbers are no switches":       {"/sys/module/kvm/parameters/halt_poll_ns", "1", "on", false},
		"ports":                         {ports, "8080,9000-9001,9002", "9000-9002,8080", true},
		"other ports":                   {ports, "8080", "8081", false},
		"no ports":                      {ports, "", "\n", true},
		"not a port":                    {ports, "80800", "80801", false},
		"ports backwards":               {ports, "9-8", "8-9", false},
		"not ports":                     {ports, "http", "80", false},
		"words":                         {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n", "tsc", true},
		"words in capitals":             {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "TSC", "tsc", false},
		"nothing and zero":              {swappiness, "", "0", false},
		"numbers that are too large":    {swappiness, "99999999999999999999", "99999999999999999998", false},
		"a sign alone":                  {swappiness, "-", "+", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := setting.Same(tc.file, tc.a, tc.b); got != tc.want {
				t.Errorf("%q and %q are the same: %t, want %t", tc.a, tc.b, got, tc.want)
			}
			if got := setting.Same(tc.file, tc.b, tc.a); got != tc.want {
				t.Errorf("%q and %q are the same: %t, want %t", tc.b, tc.a, got, tc.want)
			}
		})
	}
}

// A kernel that was built without a file holds the planned value if that is nothing, unless the file may be misspelled.
func TestHoldsWithout(t *testing.T) {
	const transparent = "/sys/kernel/mm/transparent_hugepage/"
	cases := map[string]struct {
		file, value string
		want        bool
	}{
		"a feature that is off":            {"/proc/sys/kernel/numa_balancing", "0", true},
		"a feature that is off in words":   {"/sys/kernel/rcu_expedited", "N", true},
		"a feature that is on":             {"/proc/sys/kernel/numa_balancing", "1", false},
		"a feature at its limit":           {"/proc/sys/vm/stat_interval", "10", false},
		"no transparent hugepages":         {transparent + "enabled", "always madvise [never]", true},
		"no transparent hugepages by size": {transparent + "hugepages-64kB/enabled", "never", true},
		"transparent hugepages":            {transparent + "enabled", "madvise", false},
		"no merging":                       {"/sys/kernel/mm/ksm/run", "0", true},
		"no merging, and pages parted":     {"/sys/kernel/mm/ksm/run", "2", true},
		"merging":                          {"/sys/kernel/mm/ksm/run", "1", false},
		"2 of something else":              {"/proc/sys/kernel/numa_balancing", "2", false},
		"a misspelled parameter":           {"/proc/sys/kernel/numa_balancng", "0", false},
		"nothing":                          {"/proc/sys/kernel/numa_balancing", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := setting.HoldsWithout(tc.file, tc.value); got != tc.want {
				t.Errorf("%s without %s: %t", tc.value, tc.file, got)
			}
		})
	}
}

func TestInteger(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "10": 10, "+10": 10, "-10": -10, "0x1F": 31, "0X1f": 31, "-0x10": -16, "010": 8, "-010": -8, "9223372036854775807": 1<<63 - 1,
		"-9223372036854775808": -1 << 63,
	} {
		if got, ok := setting.Integer(text); got != want || !ok {
			t.Errorf("%q is %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "-", "+", "--1", "+-1", "1_0", "0x", "0b1", "0o7", "08", "1 ", "ten", "9223372036854775808", "0x+1"} {
		if got, ok := setting.Integer(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "4096": 4096, "4k": 4096, "2M": 2 << 20, "1024M": 1 << 30, "1G": 1 << 30, "1g": 1 << 30, "1T": 1 << 40, "1P": 1 << 50, "1E": 1 << 60,
		"0x10M": 16 << 20, "0x1E": 30, "010K": 8 << 10,
	} {
		if got, ok := setting.Size(text); got != want || !ok {
			t.Errorf("%q is %d, %t; want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "G", "-1G", "+1G", "1Gi", "1GB", "1.5G", "16E", "99999999999999999999", "1 G", "50%", "1G@2G"} {
		if got, ok := setting.Size(text); ok {
			t.Errorf("%q is %d", text, got)
		}
	}
	for bytes, want := range map[uint64]string{0: "0", 1: "1", 1024: "1K", 1536: "1536", 2 << 20: "2M", 1 << 30: "1G", 3 << 29: "1536M", 1 << 60: "1E"} {
		if got := setting.SizeText(bytes); got != want {
			t.Errorf("%d bytes are %q, want %q", bytes, got, want)
		}
	}
}

func TestBoolean(t *testing.T) {
	for text, want := range map[string]bool{
		"1": true, "y": true, "Y": true, "yes": true, "on": true, "ON": true, "oN": true, "0": false, "n": false, "N": false, "no": false, "off": false, "OFF": false,
	} {
		if got, ok := setting.Boolean(text); got != want || !ok {
			t.Errorf("%q is %t, %t; want %t", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "o", "ok", "true", "false", "2", "-1", "enable", " 1"} {
		if _, ok := setting.Boolean(text); ok {
			t.Errorf("%q is a switch", text)
		}
	}
}

// FuzzSame checks that comparing is reflexive and symmetric for every file.
func FuzzSame(f *testing.F) {
	for _, seed := range [][2]string{{"10", "0xa"}, {"always [never]", "never"}, {"0-1", "0,1"}, {"ff,00000000", "ff"}, {"Y", "1"}, {"8080-8090", ""}, {"[", "]"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, file := range []string{"/proc/sys/vm/swappiness", "/sys/kernel/mm/ksm/run", "/sys/devices/virtual/workqueue/cpumask",
			"/proc/sys/kernel/watchdog_cpumask", "/proc/sys/net/ipv4/ip_local_reserved_ports"} {
			if !setting.Same(file, a, a) {
				t.Errorf("%s: %q is not what it is", file, a)
			}
			if setting.Same(file, a, b) != setting.Same(file, b, a) {
				t.Errorf("%s: %q and %q are the same in one order only", file, a, b)
			}
			if !setting.Same(file, setting.Selected(a), a) {
				t.Errorf("%s: %q is not its own choice", file, a)
			}
		}
	})
}

func FuzzSize(f *testing.F) {
	for _, seed := range []string{"1024M", "1G", "0x1E", "16E", "", "K", "1e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		bytes, ok := setting.Size(text)
		if !ok {
			return
		}
		if again, ok := setting.Size(setting.SizeText(bytes)); !ok || again != bytes {
			t.Errorf("%q was read as %d, written as %q and read as %d", text, bytes, setting.SizeText(bytes), again)
		}
	})
}
