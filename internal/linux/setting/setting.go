// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package setting knows the notations in which Linux reads and writes the values of kernel parameters, of module
// parameters and of small files below /proc/sys and /sys, so that two values that mean the same compare as the same.
package setting

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

// Same reports whether the kernel takes two values of a file for the same. White space between fields does not count,
// nor do the choices that are not selected, and CPU masks, CPU lists, numbers and switches compare by what they mean
// in that file.
func Same(file, a, b string) bool {
	a, b = Selected(a), Selected(b)
	left, right := strings.Fields(a), strings.Fields(b)
	if slices.Equal(left, right) {
		return true
	}
	switch notationOf(file) {
	case mask:
		return sameSet(a, b, cpus.ParseMask)
	case list:
		return sameSet(a, b, cpus.Parse)
	case ports:
		return samePorts(a, b)
	case fields:
	}
	return slices.EqualFunc(left, right, func(x, y string) bool { return sameField(file, x, y) })
}

// HoldsWithout reports whether a kernel that was built without a file does what a value of the file asks for, namely
// nothing: "0" of a feature that it does not have.
func HoldsWithout(file, value string) bool {
	if !isOptional(file) {
		return false
	}
	switch value = Selected(strings.TrimSpace(value)); value {
	case "never":
		return true
	case "2": // Merged pages are parted again: without merging there are none.
		return path.Dir(file) == "/sys/kernel/mm/ksm"
	}
	on, ok := Boolean(value)
	number, isNumber := Integer(value)
	return isNumber && number == 0 || !isNumber && ok && !on
}

// isOptional knows the files of features that kernels are built without. A file of another name that is missing may be
// misspelled.
func isOptional(file string) bool {
	switch file {
	case "/proc/sys/kernel/numa_balancing", "/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/soft_watchdog",
		"/proc/sys/kernel/watchdog", "/proc/sys/kernel/hung_task_timeout_secs", "/proc/sys/kernel/stack_tracer_enabled",
		"/proc/sys/kernel/sched_schedstats", "/proc/sys/kernel/sched_autogroup_enabled", "/proc/sys/kernel/timer_migration",
		"/proc/sys/kernel/ftrace_enabled", "/proc/sys/kernel/softlockup_panic", "/proc/sys/kernel/hardlockup_panic",
		"/proc/sys/vm/compaction_proactiveness", "/proc/sys/vm/swappiness", "/proc/sys/vm/zone_reclaim_mode",
		"/proc/sys/vm/stat_interval", "/proc/sys/vm/numa_stat", "/proc/sys/vm/watermark_boost_factor",
		"/sys/kernel/rcu_expedited":
		return true
	}
	folder := path.Dir(file)
	return folder == "/sys/kernel/mm/ksm" || folder == "/sys/kernel/mm/transparent_hugepage" ||
		strings.HasPrefix(folder, "/sys/kernel/mm/transparent_hugepage/")
}

// Selected returns the chosen one of "always madvise [never]", as files have it that list all choices, or the value
// itself. No choice has brackets in it.
func Selected(value string) string {
	if !strings.Contains(value, "[") {
		return value
	}
	for field := range strings.FieldsSeq(value) {
		if choice, opened := strings.CutPrefix(field, "["); opened {
			if choice, closed := strings.CutSuffix(choice, "]"); closed && !strings.ContainsAny(choice, "[]") {
				return choice
			}
		}
	}
	return value
}

// notation is the way in which a file is written.
type notation int

const (
	// fields are words, numbers and switches between white space.
	fields notation = iota
	// mask is a CPU mask (bitmap_parse of lib/bitmap-str.c).
	mask
	// list is a CPU list (bitmap_parselist of lib/bitmap-str.c).
	list
	// ports is a list of port numbers (proc_do_large_bitmap of kernel/sysctl.c).
	ports
)

// notationOf tells files that hold sets apart by their names. The name alone does not always tell: watchdog_cpumask is
// a list (proc_watchdog_cpumask of kernel/watchdog.c calls proc_do_large_bitmap).
func notationOf(file string) notation {
	switch path.Base(file) {
	case "cpumask", "cpumask_requested", "cpumask_isolated", "tracing_cpumask", "rps_cpus", "xps_cpus", "rps_default_mask",
		"flow_limit_cpu_bitmap", "default_smp_affinity", "smp_affinity", "effective_affinity":
		return mask
	case "watchdog_cpumask", "smp_affinity_list", "effective_affinity_list", "cpuset.cpus", "cpuset.cpus.exclusive", "cpuset.mems":
		return list
	case "ip_local_reserved_ports":
		return ports
	default:
		return fields
	}
}

func sameSet(a, b string, parse func(string) (cpus.Set, error)) bool {
	left, leftErr := parse(a)
	right, rightErr := parse(b)
	return leftErr == nil && rightErr == nil && left.Equal(right)
}

// samePorts compares "8080,9000-9002" number by number.
func samePorts(a, b string) bool {
	left, leftOK := portsOf(a)
	right, rightOK := portsOf(b)
	return leftOK && rightOK && *left == *right
}

// portBits has a bit for each port number.
type portBits [1 << 16 / 64]uint64

func portsOf(text string) (*portBits, bool) {
	bits := &portBits{}
	for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.ParseUint(from, 10, 16)
		if err != nil {
			return nil, false
		}
		last := first
		if ranged {
			if last, err = strconv.ParseUint(to, 10, 16); err != nil || last < first {
				return nil, false
			}
		}
		for port := first; port <= last; port++ {
			bits[port/64] |= 1 << (port % 64)
		}
	}
	return bits, true
}

// sameField compares one word, number or switch. The kernel prints a switch of a module as Y or N and takes other words
// for it (param_get_bool and param_set_bool of kernel/params.c); other files have numbers where they mean a switch.
func sameField(file, a, b string) bool {
	if a == b {
		return true
	}
	if isSwitch(a) || isSwitch(b) {
		left, leftOK := Boolean(a)
		right, rightOK := Boolean(b)
		return leftOK && rightOK && left == right
	}
	left, leftOK := Integer(a)
	right, rightOK := Integer(b)
	if !leftOK || !rightOK || left != right {
		return false
	}
	// Kernel parameters are read in base 0 (proc_get_long of kernel/sysctl.c). Files below /sys have no common rule, so
	// what only base 8 makes equal is not the same there.
	return strings.HasPrefix(file, "/proc/sys/") || !isOctal(a) && !isOctal(b)
}

func isSwitch(text string) bool { return text == "Y" || text == "N" }

// isOctal reports whether base 8 and base 10 read a number differently.
func isOctal(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return len(digits) > 1 && digits[0] == '0' && len(strings.TrimLeft(digits, "0")) > 1 && digits[1] != 'x' && digits[1] != 'X'
}

// Boolean reads a switch as kstrtobool of lib/kstrtox.c does, which looks at the first characters alone: y, Y, 1 and on
// are true; n, N, 0 and off are false. What only some releases take, such as true, is none.
func Boolean(text string) (value, ok bool) {
	if text == "" {
		return false, false
	}
	switch text[0] {
	case 'y', 'Y', '1':
		return true, true
	case 'n', 'N', '0':
		return false, true
	case 'o', 'O':
		if len(text) > 1 {
			return text[1] == 'n' || text[1] == 'N', strings.ContainsRune("nNfF", rune(text[1]))
		}
	}
	return false, false
}

// Integer reads a number as kstrtoll of lib/kstrtox.c does in base 0: 0x begins a hexadecimal number, another 0 an octal
// one.
func Integer(text string) (int64, bool) {
	negative := strings.HasPrefix(text, "-")
	if text != "" && (text[0] == '-' || text[0] == '+') {
		text = text[1:]
	}
	number, ok := natural(text)
	switch {
	case !ok || number > 1<<63 || number == 1<<63 && !negative:
		return 0, false
	case negative:
		return -int64(number), true
	default:
		return int64(number), true
	}
}

// natural reads a number without a sign.
func natural(text string) (uint64, bool) {
	base := 10
	if len(text) > 1 && text[0] == '0' {
		base = 8
		if text[1] == 'x' || text[1] == 'X' {
			base, text = 16, text[2:]
		}
	}
	number, err := strconv.ParseUint(text, base, 64)
	return number, err == nil
}

// Size reads a number of bytes as memparse of lib/cmdline.c does: a number that K, M, G, T, P or E in either case may
// follow. Anything behind it is an error, although the kernel leaves that to who asks.
func Size(text string) (bytes uint64, ok bool) {
	if number, ok := natural(text); ok || text == "" {
		return number, ok
	}
	end := len(text) - 1
	power := 1 + strings.IndexByte("KMGTPE", text[end]&^0x20)
	number, ok := natural(text[:end])
	shift := 10 * power
	if !ok || power == 0 || number<<shift>>shift != number {
		return 0, false
	}
	return number << shift, true
}

// SizeText writes a number of bytes with the largest unit that divides it, as the kernel takes it: "1G".
func SizeText(bytes uint64) string {
	units := ""
	for _, unit := range "KMGTPE" {
		if bytes == 0 || bytes%1024 != 0 {
			break
		}
		bytes /= 1024
		units = string(unit)
	}
	return strconv.FormatUint(bytes, 10) + units
}
