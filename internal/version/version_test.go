// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package version

import (
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
)

func TestOf(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	commit := []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.time", "2026-11-22T10:00:00Z"), setting("vcs.modified", "false")}
	cases := map[string]struct {
		release string
		info    debug.BuildInfo
		want    string
	}{
		"a release": {"v2.0.0", debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"}, Settings: slices.Concat(commit, []debug.BuildSetting{setting("GOOS", "linux"), setting("GOARCH", "arm64")})},
			"v2.0.0 (commit abc of 2026-11-22T10:00:00Z, compiler go1.26.8, platform linux/arm64)"},
		"a release that states its source": {"v2.0.0,def,2026-11-23T10:00:00Z", debug.BuildInfo{Settings: commit},
			"v2.0.0 (commit def of 2026-11-23T10:00:00Z, compiler unknown, platform unknown)"},
		"a release that states no source": {"v2.0.0,,", debug.BuildInfo{}, "v2.0.0 (commit unknown of unknown, compiler unknown, platform unknown)"},
		"a module": {"", debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}},
			"v1.2.3 (commit unknown of unknown, compiler unknown, platform unknown)"},
		"a commit": {"", debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit},
			"abc (commit abc of 2026-11-22T10:00:00Z, compiler unknown, platform unknown)"},
		"a changed work tree": {"", debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "true")}},
			"abc-dirty (commit abc-dirty of unknown, compiler unknown, platform unknown)"},
		"no information": {"", debug.BuildInfo{}, "unknown (commit unknown of unknown, compiler unknown, platform unknown)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := of(tc.release, &tc.info).String(); got != tc.want {
				t.Errorf("the build is %q, want %q", got, tc.want)
			}
		})
	}
	if got := Of("v2.0.0"); got.Version != "v2.0.0" || got.Go != runtime.Version() {
		t.Errorf("this program is %+v", got)
	}
}
