// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// isRelease tells whether what a part calls itself names a release. Packages write 9.1.1.37; builds from the
// repository "24d0c2a7 2026-07-24 v9_2", of which any word may be asked for.
func isRelease(wanted, is string) bool { return slices.Contains(strings.Fields(is), wanted) }

// moduleVersion wants the release that the spec names in the kernel.
func (c *candidate) moduleVersion() verdict {
	if c.stack.moduleVersion == "" || !c.isLoaded() {
		return passed()
	}
	version := c.bypass().Onload.Version
	if v := absent(version, "The version of the module onload", "it may not be "+c.stack.moduleVersion+" of "+
		c.stack.moduleField, "load the module onload"); v.level != levelPassed {
		return v
	}
	if isRelease(c.stack.moduleVersion, version.Value) {
		return passed()
	}
	return failed("The module onload has version %s (%s) and %s wants %s; load that release on the node, or change the "+
		"field.", shown(version.Value), version.Source, c.stack.moduleField, c.stack.moduleVersion)
}

// shown quotes what a part calls itself.
func shown(version string) string { return shorten.Sentence(strings.TrimSpace(version), valueLimit) }

// userFiles wants the user files of the stack on the node.
func (c *candidate) userFiles() verdict {
	if !c.stack.fromHost() {
		return passed()
	}
	files := c.files()
	folder := c.stack.userSpace.HostPath
	if v := absent(files, "The folder "+folder+" of spec.stack userSpace.hostPath", "the user files of "+
		string(c.stack.kind)+" may be missing", "install them there, or correct the field"); v.level != levelPassed {
		return v
	}
	missing := missingFrom(c.stack.files, func(name string) bool { _, ok := c.file(name); return ok })
	if len(missing) > 0 {
		return failed("%s is in none of usr/lib64, usr/lib, usr/bin and their like below %s of spec.stack "+
			"userSpace.hostPath; install %s there, or use userSpace.source Application.",
			strings.Join(missing, ", "), folder, c.stack.kind)
	}
	return c.unreadable()
}

// unreadable is about files that are there and cannot be read, and so not mounted for sure.
func (c *candidate) unreadable() verdict {
	for _, name := range c.stack.files {
		if file, _ := c.file(name); file.Unreadable != "" {
			return unknown("%s cannot be read (%s), so its version is not known; correct its permissions.", file.Path, file.Unreadable)
		}
	}
	return passed()
}

// files are the user files on the node.
func (c *candidate) files() host.Fact[map[string]host.UserFile] {
	space, asked := c.bypass().UserSpaces[c.stack.userSpace.HostPath]
	if !asked {
		return host.Absent[map[string]host.UserFile](c.stack.userSpace.HostPath, "not looked for")
	}
	return space.Files
}

// library returns the file whose version is that of the user space.
func (c *candidate) library() (host.UserFile, bool) {
	if !c.stack.fromHost() {
		return host.UserFile{}, false
	}
	return c.file(c.stack.library)
}

// file returns a user file by name: an installation may have a library under the name with its number only, or, when
// people made it, under the one without.
func (c *candidate) file(name string) (host.UserFile, bool) {
	files := c.files().Value
	if file, ok := files[name]; ok {
		return file, true
	}
	file, ok := files[strings.TrimSuffix(name, ".1")]
	return file, ok
}

// interfaceVersion wants libonload.so and the module to have one interface version (uk_intf_ver). With another, the
// module refuses the library, and the program runs on kernel sockets and exits 0. Other libraries hold the
// versions of other interfaces, which the kernel does not tell.
func (c *candidate) interfaceVersion() verdict {
	file, ok := c.library()
	if !ok || file.Unreadable != "" || c.stack.kind != v1alpha1.StackOnload || !c.isLoaded() {
		return passed()
	}
	version := c.bypass().Onload.InterfaceVersion
	if v := absent(version, "The interface version (uk_intf_ver) of the module onload", file.Path+" may not fit it",
		remedyProc); v.level != levelPassed {
		return v
	}
	if len(file.InterfaceVersions) == 0 {
		return unknown("No interface version was found in %s, and the module onload wants %s (uk_intf_ver of %s); see "+
			"that the file is a library of Onload.", file.Path, version.Value, version.Source)
	}
	if slices.Contains(file.InterfaceVersions, version.Value) {
		return passed()
	}
	return failed("%s%s has interface version %s and the module onload%s wants %s (uk_intf_ver of %s), so programs run "+
		"on kernel sockets; install module and user files of one build.", file.Path, inBrackets(file.Version),
		strings.Join(firstOf(file.InterfaceVersions, 2), ", "), inBrackets(c.bypass().Onload.Version.Value),
		version.Value, version.Source)
}

func firstOf(texts []string, count int) []string { return texts[:min(count, len(texts))] }

func inBrackets(version string) string {
	if version = shown(version); version == "" {
		return ""
	}
	return " (" + version + ")"
}

// userVersion wants the user files to have the release that the spec names. For Onload without one, it is that of the
// module, which compares releases besides interface versions (oo_version_check_impl). libciul.so names no release:
// every one of them speaks the interface of 2014, and the module accepts that (ef_vi_set_intf_ver).
func (c *candidate) userVersion() verdict {
	file, ok := c.library()
	wanted, origin := c.wantedUserVersion()
	if !ok || file.Unreadable != "" || wanted == "" || isRelease(lastWord(wanted), file.Version) {
		return passed()
	}
	switch {
	case file.Version != "":
		return failed("%s has version %s and %s wants %s; install that release below %s, or change the field.",
			file.Path, shown(file.Version), origin, shown(wanted), c.stack.userSpace.HostPath)
	case c.stack.kind == v1alpha1.StackEFVI:
		return noted("%s does not say which release it is of, and %s wants %s; every release of libciul.so works with "+
			"every module of Onload.", file.Path, origin, shown(wanted))
	case c.stack.kind == v1alpha1.StackOnload && c.holdsInterface(file):
		return passed()
	default:
		return unknown("%s does not say which release it is of, and %s wants %s; see where the file comes from, or omit "+
			"the field.", file.Path, origin, shown(wanted))
	}
}

// holdsInterface tells whether a file holds the module's interface version: a checksum of the build, which tells
// more than a release does.
func (c *candidate) holdsInterface(file host.UserFile) bool {
	version, known := c.bypass().Onload.InterfaceVersion.Get()
	return known && slices.Contains(file.InterfaceVersions, version)
}

// wantedUserVersion returns the release that the user files must have and who wants it; "" for any.
func (c *candidate) wantedUserVersion() (wanted, origin string) {
	version := c.bypass().Onload.Version
	if c.stack.kind == v1alpha1.StackOnload && c.stack.userVersion == "" && c.isLoaded() {
		return version.Value, "the module onload (" + version.Source + ")"
	}
	return c.stack.userVersion, c.stack.userField
}

// builtWith wants libonload_zf.so to be built with the release of Onload that the kernel runs: "TCPDirect must be used
// with a matching version of Onload" (release notes of TCPDirect 9.0).
func (c *candidate) builtWith() verdict {
	file, ok := c.library()
	if !ok || file.Unreadable != "" || c.stack.kind != v1alpha1.StackTCPDirect || !c.isLoaded() {
		return passed()
	}
	version := c.bypass().Onload.Version
	if v := absent(version, "The version of the module onload", file.Path+" may not fit it", remedyProc); v.level != levelPassed {
		return v
	}
	if file.BuiltWith == "" {
		return unknown("%s does not say which release of Onload it was built with, and the module onload has %s (%s); see "+
			"where the file comes from.", file.Path, shown(version.Value), version.Source)
	}
	if isSameRelease(file.BuiltWith, version.Value) {
		return passed()
	}
	return failed("%s%s was built with Onload %s and the module onload has %s (%s); install the TCPDirect that belongs to "+
		"that release.", file.Path, inBrackets(file.Version), shown(file.BuiltWith), shown(version.Value), version.Source)
}

// isSameRelease tells whether two parts are of one release: by their last words, "v9_2" in "24d0c2a7 2026-07-24 v9_2",
// and of 9.0.1.31 by the first three numbers, because the fourth counts the packages of one product.
func isSameRelease(a, b string) bool {
	return lastWord(a) != "" && releaseNumber(lastWord(a)) == releaseNumber(lastWord(b))
}

// lastWord of a version is the release.
func lastWord(version string) string {
	words := strings.Fields(version)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// releaseNumber cuts the fourth number off.
func releaseNumber(version string) string {
	numbers := strings.Split(version, ".")
	return strings.Join(numbers[:min(len(numbers), 3)], ".")
}

// versions returns what the parts of the stack call themselves.
func (c *candidate) versions() Versions {
	if !c.stack.isOnloads() {
		return Versions{}
	}
	file, _ := c.library()
	return Versions{Module: shown(c.bypass().Onload.Version.Value), User: shown(file.Version)}
}
