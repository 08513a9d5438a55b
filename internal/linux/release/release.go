// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package release reads and compares the releases of Linux kernels. It is pure.
package release

import (
	"cmp"
	"strconv"
	"strings"
)

// Release are the first two numbers of uname -r, such as {5, 14} for 5.14.0-427.el9.x86_64. The zero Release is one
// that is not known. What distributors add behind these numbers says nothing about what the kernel can do.
type Release struct{ Major, Minor int }

// Parse reads uname -r: two numbers with a dot between them, and anything that is not a digit behind the second. It
// reports whether there are two such numbers; if not, the Release is the zero one.
func Parse(text string) (Release, bool) {
	first, rest, _ := strings.Cut(text, ".")
	second := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return !isDigit(r) }); end >= 0 {
		second = rest[:end]
	}
	major, majorOK := number(first)
	minor, minorOK := number(second)
	if !majorOK || !minorOK || major == 0 {
		return Release{}, false
	}
	return Release{Major: major, Minor: minor}, true
}

// number reads digits; the kernel has 8 bits for each number (KERNEL_VERSION in include/linux/version.h), and some
// distributors more.
func number(text string) (int, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return !isDigit(r) }) {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err == nil
}

func isDigit(r rune) bool { return r >= '0' && r <= '9' }

// IsKnown reports whether the release is known.
func (r Release) IsKnown() bool { return r != Release{} }

// Compare is negative where r came before the other release, positive where it came later, and 0 where both are the
// same.
func (r Release) Compare(other Release) int {
	return cmp.Or(cmp.Compare(r.Major, other.Major), cmp.Compare(r.Minor, other.Minor))
}

// AtLeast reports whether the release is known and the given one or a later one.
func (r Release) AtLeast(major, minor int) bool {
	return r.IsKnown() && r.Compare(Release{Major: major, Minor: minor}) >= 0
}

// String is "5.14", or "" for a release that is not known.
func (r Release) String() string {
	if !r.IsKnown() {
		return ""
	}
	return strconv.Itoa(r.Major) + "." + strconv.Itoa(r.Minor)
}
