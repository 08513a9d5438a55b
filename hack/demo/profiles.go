// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	_ "embed"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// bypassInterface is the first port of the bypass NIC of the simulated hosts.
const bypassInterface = "ens2f0np0"

//go:embed trading.yaml
var profileYAML string

//go:embed pool.yaml
var poolYAML string

//go:embed thismachine.yaml
var realHostYAML string

func parseProfile(text string) (*v1alpha1.LowLatencyNodeProfile, error) {
	profile := &v1alpha1.LowLatencyNodeProfile{}
	if err := yaml.UnmarshalStrict([]byte(text), profile); err != nil {
		return nil, fmt.Errorf("reading the demo's profile: %w", err)
	}
	return profile, nil
}

func parsePool(text string) (*v1alpha1.BypassNICPool, error) {
	pool := &v1alpha1.BypassNICPool{}
	if err := yaml.UnmarshalStrict([]byte(text), pool); err != nil {
		return nil, fmt.Errorf("reading the demo's pool: %w", err)
	}
	return pool, nil
}

// specOf is the spec of an object as it stands in a file.
func specOf(yaml string) string {
	_, spec, _ := strings.Cut(yaml, "\nspec:")
	return "spec:" + strings.TrimRight(spec, "\n")
}
