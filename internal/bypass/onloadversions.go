// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// isRelease reports whether what a part calls itself names a release. Packages write 9.1.1.37; builds from the
// repository "24d0c2a7 2026-07-24 v9_2", of which any word may be asked for.
func isRelease(wanted, is string) bool { return slices.Contains(strings.Fields(is), wanted) }

// moduleVersion wants the release that the spec names in the kernel.
func (c *candidate) moduleVersion() verdict {
	if c.needs.moduleVersion == "" || !c.isLoaded() {
		return passed()
	}
	version := c.bypass().Onload.Version
	if v := absent(version, "The version of the module onload", "it may not be "+c.needs.moduleVersion+" of "+
		c.needs.moduleField, "load the module onload"); v.level != levelPassed {
		return v
	}
	if isRelease(c.needs.moduleVersion, version.Value) {
		return passed()
	}
	return failed("The module onload has version %s (%s) and %s wants %s; load that release on the node, or change %[3]s.",
		shown(version.Value), version.Source, c.needs.moduleField, c.needs.moduleVersion)
}

// shown quotes what a part calls itself.
func shown(version string) string { return shorten.Sentence(strings.TrimSpace(version), valueLimit) }

// userFiles wants the user files of the stack on the node.
func (c *candidate) userFiles() verdict {
	if !c.needs.fromHost() {
		return passed()
	}
	files := c.files()
	folder := c.needs.userSpace.HostPath
	if v := absent(files, "The folder "+folder+" of spec.stack userSpace.hostPath", "the user files of "+
		string(c.stack.Type)+" may be missing", "install them there, or correct the folder"); v.level != levelPassed {
		return v
	}
	missing := missingFrom(c.needs.files, func(name string) bool { _, ok := c.file(name); return ok })
	if len(missing) > 0 {
		return failed("%s is in none of usr/lib64, usr/lib, usr/bin and their like below %s of spec.stack "+
			"userSpace.hostPath; install %s there, or use userSpace.source Application.",
			strings.Join(missing, ", "), folder, c.stack.Type)
	}
	return c.unreadable()
}

// unreadable is about files that are there and cannot be read, and so not mounted for sure.
func (c *candidate) unreadable() verdict {
	for _, name := range c.needs.files {
		if file, _ := c.file(name); file.Unreadable != "" {
			return unknown("%s cannot be read (%s), so its version is not known; correct its permissions.", file.Path, file.Unreadable)
		}
	}
	return passed()
}

// files are the user files on the node.
func (c *candidate) files() host.Fact[map[string]host.UserFile] {
	space, asked := c.bypass().UserSpaces[c.needs.userSpace.HostPath]
	if !asked {
		return host.Absent[map[string]host.UserFile](c.needs.userSpace.HostPath, "not looked for")
	}
	return space.Files
}

// library returns the file whose version is that of the user space.
func (c *candidate) library() (host.UserFile, bool) {
	if !c.needs.fromHost() {
		return host.UserFile{}, false
	}
	return c.file(c.needs.library)
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
		return failed("%s has version %s and %s wants %s; install that release below %s%s.",
			file.Path, shown(file.Version), origin, shown(wanted), c.needs.userSpace.HostPath, c.orField("change"))
	case c.needs.unversioned:
		return noted("%s does not say which release it is of, and %s wants %s; every release of libciul.so works with "+
			"every module of Onload.", file.Path, origin, shown(wanted))
	case c.needs.sameBuild && c.holdsInterface(file):
		return passed()
	default:
		return unknown("%s does not say which release it is of, and %s wants %s; see where the file comes from%s.", file.Path, origin,
			shown(wanted), c.orField("omit"))
	}
}

// orField is what else may be done when it is a field of the spec that asks for a release of the user files.
func (c *candidate) orField(do string) string {
	if c.needs.userVersion == "" {
		return ""
	}
	return ", or " + do + " " + c.needs.userField
}

// holdsInterface reports whether a file holds the module's interface version: a checksum of the build, which tells
// more than a release does.
func (c *candidate) holdsInterface(file host.UserFile) bool {
	version, known := c.bypass().Onload.InterfaceVersion.Get()
	return known && file.HoldsChecksum(version)
}

// wantedUserVersion returns the release that the user files must have and who wants it; "" for any.
func (c *candidate) wantedUserVersion() (wanted, origin string) {
	version := c.bypass().Onload.Version
	if c.needs.sameBuild && c.needs.userVersion == "" && c.isLoaded() {
		return version.Value, "the module onload (" + version.Source + ")"
	}
	return c.needs.userVersion, c.needs.userField
}

// lastWord of a version is the release.
func lastWord(version string) string {
	words := strings.Fields(version)
	if len(words) == 0 {
		return ""
	}
	return words[len(words)-1]
}

// versions returns what the parts of the stack call themselves.
func (c *candidate) versions() Versions {
	if c.needs.library == "" {
		return Versions{}
	}
	file, _ := c.library()
	return Versions{Module: shown(c.bypass().Onload.Version.Value), User: shown(file.Version)}
}
