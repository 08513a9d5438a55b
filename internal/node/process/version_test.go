// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package process

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	cases := map[string]struct {
		info debug.BuildInfo
		want string
	}{
		"a released module":   {debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "v1.2.3"},
		"a commit":            {debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{setting("vcs.revision", "abc")}}, "abc"},
		"a changed work tree": {debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", "abc"), setting("vcs.modified", "true")}}, "abc-dirty"},
		"no information":      {debug.BuildInfo{}, "unknown"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := versionOf(&tc.info); got != tc.want {
				t.Errorf("version is %q, want %q", got, tc.want)
			}
		})
	}
	if got := Version("v2.0.0"); got != "v2.0.0" {
		t.Errorf("version is %q, not what the build states", got)
	}
}
