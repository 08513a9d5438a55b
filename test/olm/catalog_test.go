// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package olm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/pkg/lib/config"
)

const catalogFolder = "../../catalog"

// judge says what is wrong with a file-based catalog: what opm validate says, whose one step config.Validate is, and which releases a channel
// replaces that the catalog does not have. The latter opm lets pass, because a catalog may be cut off; ours are not.
func judge(ctx context.Context, catalog fs.FS) error {
	if err := config.Validate(ctx, catalog); err != nil {
		return err
	}
	content, err := declcfg.LoadFS(ctx, catalog)
	if err != nil {
		return err
	}
	bundles := map[string]bool{"": true}
	for i := range content.Bundles {
		bundles[content.Bundles[i].Name] = true
	}
	var failures []error
	for _, channel := range content.Channels {
		for _, entry := range channel.Entries {
			for _, name := range append([]string{entry.Replaces}, entry.Skips...) {
				if !bundles[name] {
					failures = append(failures, fmt.Errorf("channel %s: %s follows %s, which the catalog does not have", channel.Name, entry.Name, name))
				}
			}
		}
	}
	return errors.Join(failures...)
}

func TestCatalog(t *testing.T) {
	if err := judge(t.Context(), os.DirFS(catalogFolder)); err != nil {
		t.Fatal(err)
	}
	catalog, err := declcfg.LoadFS(t.Context(), os.DirFS(catalogFolder))
	if err != nil {
		t.Fatal(err)
	}
	model, err := declcfg.ConvertToModel(*catalog)
	if err != nil {
		t.Fatal(err)
	}
	channel := model["lowlatency-operator"].DefaultChannel
	head, err := channel.Head()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := manifests.GetBundleFromDir(bundleFolder)
	if err != nil {
		t.Fatal(err)
	}
	if head.Name != bundle.CSV.GetName() {
		t.Errorf("the head of channel %s is %s, the bundle is %s", channel.Name, head.Name, bundle.CSV.GetName())
	}
}

// madeCatalog is what make catalog makes of the previous release's bundle and of one of now.
func madeCatalog(t *testing.T, version string) string {
	t.Helper()
	folder := t.TempDir()
	previous, err := filepath.Abs(previousFolder)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "go", "run", "-C", "../..", "./hack/bundle", "-version", version,
		"-output", filepath.Join(folder, "bundle"), "-catalog", filepath.Join(folder, "catalog"), previous)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, output)
	}
	text, err := os.ReadFile(filepath.Join(folder, "catalog", "lowlatency-operator", "catalog.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// judged is what is wrong with a catalog of one file.
func judged(t *testing.T, text string) error {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "catalog.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return judge(t.Context(), os.DirFS(folder))
}

// TestCatalogsOfSeveralReleases: of the release before and of one of now, before and after 1.0.
func TestCatalogsOfSeveralReleases(t *testing.T) {
	for version, channels := range map[string]string{"0.1.0": "candidate", "1.0.0": "candidate stable"} {
		text := madeCatalog(t, version)
		if err := judged(t, text); err != nil {
			t.Errorf("with %s: %v", version, err)
		}
		for channel := range strings.FieldsSeq(channels) {
			if !strings.Contains(text, "- name: lowlatency-operator.v"+version+"\n  replaces: lowlatency-operator.v0.0.1\nname: "+channel+"\n") {
				t.Errorf("in channel %s, %s does not replace the release before", channel, version)
			}
		}
	}
}

// TestTheJudgeOfCatalogs: a catalog with a fault does not pass, so that silence means something.
func TestTheJudgeOfCatalogs(t *testing.T) {
	const entry, older = "- name: lowlatency-operator.v0.1.0\n  replaces: lowlatency-operator.v0.0.1\n", "- name: lowlatency-operator.v0.0.1\n"
	whole := madeCatalog(t, "0.1.0")
	for name, fault := range map[string]struct{ old, new, want string }{
		"nothing":                          {"schema: olm.package", "schema: olm.package", ""},
		"two heads":                        {entry, "- name: lowlatency-operator.v0.1.0\n", "multiple channel heads found"},
		"a release replaces one not there": {entry, strings.Replace(entry, "v0.0.1", "v0.0.2\n  skips: [lowlatency-operator.v0.0.1]", 1), "v0.1.0 follows lowlatency-operator.v0.0.2"},
		"the one that is replaced is gone": {older, "", "lowlatency-operator.v0.0.1"},
		"skips one that is not there":      {entry, entry + "  skips: [lowlatency-operator.v0.0.9]\n", "v0.1.0 follows lowlatency-operator.v0.0.9"},
		"an entry without a bundle":        {entry, entry + "- name: lowlatency-operator.v0.2.0\n  replaces: lowlatency-operator.v0.1.0\n", "no olm.bundle blobs found"},
		"a circle":                         {older, older + "  replaces: lowlatency-operator.v0.1.0\n", "no channel head found"},
		"twice in a channel":               {entry, entry + entry, "duplicate"},
		"another default channel":          {"defaultChannel: candidate", "defaultChannel: stable", "must contain at least one bundle"},
		"no default channel":               {"defaultChannel: candidate", "defaultChannel: \"\"", "default channel"},
		"a version that is none":           {"version: 0.1.0\n", "version: latest\n", "error parsing bundle"},
		"another package":                  {"packageName: lowlatency-operator", "packageName: highlatency-operator", "highlatency-operator"},
		"no package":                       {"schema: olm.package", "schema: example.com/package", "unknown package"},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(whole, fault.old) {
				t.Fatalf("there is no %q", fault.old)
			}
			err := judged(t, strings.ReplaceAll(whole, fault.old, fault.new))
			if (err == nil) != (fault.want == "") || err != nil && !strings.Contains(err.Error(), fault.want) {
				t.Errorf("it says %v, want %q", err, fault.want)
			}
		})
	}
}
