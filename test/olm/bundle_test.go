// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package olm puts bundle and catalog before the validators of Operator Lifecycle Manager: those that operator-sdk bundle validate
// runs with the suite operatorframework and the optional good practices, and that of opm validate.
package olm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-framework/api/pkg/manifests"
	"github.com/operator-framework/api/pkg/validation"
	interfaces "github.com/operator-framework/api/pkg/validation/interfaces"
)

const bundleFolder = "../../bundle"

// misread is what a validator says of rules for events and runtimeclasses: it takes them for rules for versions of these kinds that are
// gone, but rules have no versions.
const misread = "using APIs which were deprecated and removed in v1.25"

// validators are what a bundle must satisfy, by the name that operator-sdk gives them. The one for architectures is missing: it
// pulls the image with docker.
func validators() map[string]interfaces.Validators {
	return map[string]interfaces.Validators{
		"csv":            {validation.ClusterServiceVersionValidator},
		"crd":            {validation.CustomResourceDefinitionValidator},
		"bundle":         {validation.BundleValidator},
		"operatorhubv2":  {validation.OperatorHubV2Validator},
		"capabilities":   {validation.StandardCapabilitiesValidator},
		"categories":     {validation.StandardCategoriesValidator},
		"object":         {validation.ObjectValidator},
		"good-practices": {validation.GoodPracticesValidator},
	}
}

// complaints are errors and warnings about the bundle in a folder.
func complaints(t *testing.T, folder string) []string {
	t.Helper()
	bundle, err := manifests.GetBundleFromDir(folder)
	if err != nil {
		return []string{err.Error()}
	}
	var all []string
	for name, group := range validators() {
		for _, result := range group.Validate(bundle.ObjectsToValidate()...) {
			for _, one := range append(result.Errors, result.Warnings...) {
				if !strings.Contains(one.Error(), misread) {
					all = append(all, name+": "+one.Error())
				}
			}
		}
	}
	return all
}

func TestBundle(t *testing.T) {
	for _, complaint := range complaints(t, bundleFolder) {
		t.Error(complaint)
	}
}

// TestValidatorsJudge: a bundle with a fault does not pass, so that silence means something.
func TestValidatorsJudge(t *testing.T) {
	for name, fault := range map[string][2]string{
		"a kind that is not there":      {"kind: BypassNICPool\n", "kind: BypassNICPond\n"},
		"no requests":                   {"requests:", "requested:"},
		"a version that is none":        {"version: 0.1.0", "version: latest"},
		"an unknown level":              {"capabilities: Basic Install", "capabilities: Perfect"},
		"a category that is not listed": {"categories: OpenShift Optional", "categories: Speed"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.CopyFS(folder, os.DirFS(bundleFolder)); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, "manifests", "lowlatency-operator.clusterserviceversion.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			broken := strings.ReplaceAll(string(text), fault[0], fault[1])
			if broken == string(text) {
				t.Fatalf("there is no %q", fault[0])
			}
			if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			if len(complaints(t, folder)) == 0 {
				t.Error("no validator complains")
			}
		})
	}
}
