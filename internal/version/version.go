// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package version says which build a program is.
package version

import (
	"cmp"
	"fmt"
	"runtime/debug"
	"strings"
)

const unknown = "unknown"

// Build is which build a program is. What is not known is "unknown".
type Build struct {
	// Version is what the release states, else the module's version, else the commit.
	Version string
	// Commit is the commit that was built, with "-dirty" when files were changed beside it.
	Commit string
	// Committed is when the commit was made, as in RFC 3339. A build states no other time, because then two builds of one
	// commit would differ.
	Committed string
	// Go is the version of the compiler, and Platform what it compiled for, for example linux/amd64.
	Go, Platform string
}

// Of returns the build of the running program, for which a release build states VERSION or VERSION,COMMIT,TIME: what it states does
// not depend on whether the compiler found a repository around the source.
func Of(release string) Build {
	info, known := debug.ReadBuildInfo()
	if !known {
		info = &debug.BuildInfo{}
	}
	return of(release, info)
}

func of(release string, info *debug.BuildInfo) Build {
	settings := map[string]string{}
	for _, setting := range info.Settings {
		settings[setting.Key] = setting.Value
	}
	commit, committed := settings["vcs.revision"], settings["vcs.time"]
	if settings["vcs.modified"] == "true" {
		commit += "-dirty"
	}
	stated, source, isStated := strings.Cut(release, ",")
	if isStated {
		commit, committed, _ = strings.Cut(source, ",")
	}
	module := info.Main.Version
	if module == "(devel)" {
		module = ""
	}
	return Build{
		Version:   cmp.Or(stated, module, commit, unknown),
		Commit:    cmp.Or(commit, unknown),
		Committed: cmp.Or(committed, unknown),
		Go:        cmp.Or(info.GoVersion, unknown),
		Platform:  platform(settings["GOOS"], settings["GOARCH"]),
	}
}

func platform(system, architecture string) string {
	if system == "" || architecture == "" {
		return unknown
	}
	return system + "/" + architecture
}

// String is the build in one line.
func (b Build) String() string {
	return fmt.Sprintf("%s (commit %s of %s, compiler %s, platform %s)", b.Version, b.Commit, b.Committed, b.Go, b.Platform)
}
