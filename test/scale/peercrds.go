// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// peerCRDs are the files with the kinds that the Node Tuning Operator works with: its own from a checkout, and OpenShift's.
func peerCRDs(checkout, folder string) ([]string, error) {
	own, err := ownCRDs(checkout, folder)
	if err != nil {
		return nil, err
	}
	machines, err := apiserver.OpenShiftCRDs()
	if err != nil {
		return nil, err
	}
	for _, path := range machines {
		if !strings.Contains(path, filepath.Join("config", "tuned")) {
			own = append(own, path)
		}
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		return nil, fmt.Errorf("looking for OpenShift's kinds: %w", err)
	}
	configuration := filepath.Join(strings.TrimSpace(string(module)), "config", "v1", "zz_generated.crd-manifests")
	for _, name := range []string{
		"0000_00_cluster-version-operator_01_clusteroperators.crd.yaml", "0000_00_cluster-version-operator_01_clusterversions-Default.crd.yaml",
		"0000_10_config-operator_01_apiservers-Default.crd.yaml", "0000_10_config-operator_01_featuregates.crd.yaml",
		"0000_10_config-operator_01_infrastructures-Default.crd.yaml",
	} {
		own = append(own, filepath.Join(configuration, name))
	}
	return own, nil
}

// ownCRDs writes the operator's own without their webhooks: nothing here is of an old version.
func ownCRDs(checkout, folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(checkout, "manifests", "20-*.crd.yaml"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s is no checkout of the Node Tuning Operator: no CRDs in its folder manifests (%w)", checkout, err)
	}
	for i, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a CRD: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		crd.Spec.Conversion = nil
		if text, err = yaml.Marshal(crd); err != nil {
			return nil, fmt.Errorf("printing %s: %w", crd.Name, err)
		}
		paths[i] = filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(paths[i], text, 0o600); err != nil {
			return nil, fmt.Errorf("writing %s: %w", crd.Name, err)
		}
	}
	return paths, nil
}
