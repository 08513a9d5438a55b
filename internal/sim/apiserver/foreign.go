// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
)

// The modules of these carry CRDs, and nothing of theirs is linked: hack/versions.env says of which version.
const (
	prometheusModule  = "github.com/prometheus-operator/prometheus-operator"
	certManagerModule = "github.com/cert-manager/cert-manager"
	policyModule      = "github.com/sigstore/policy-controller"
)

// PrometheusOperatorCRDs returns the files with the CRDs of PrometheusRule and ServiceMonitor. They are one of Options.CRDs for tests
// that need the kinds, and so are those of the functions below.
func PrometheusOperatorCRDs() ([]string, error) {
	return downloaded(prometheusModule, "PROMETHEUS_OPERATOR_VERSION", "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml")
}

// CertManagerCRDs returns the files with the CRDs of Certificate and Issuer.
func CertManagerCRDs() ([]string, error) {
	return downloaded(certManagerModule, "CERT_MANAGER_VERSION", "deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml")
}

// InstallationCRDs returns the files with the kinds that our manifests with monitoring want besides those of a platform's nodes: what the
// Prometheus operator reads, and OpenShift's security constraints, or elsewhere what cert-manager issues.
func InstallationCRDs(platform Platform) ([]string, error) {
	all, err := PrometheusOperatorCRDs()
	if err != nil {
		return nil, err
	}
	if platform == OpenShift {
		constraints, err := SecurityConstraintsCRD()
		return append(all, constraints), err
	}
	certificates, err := CertManagerCRDs()
	return append(all, certificates...), err
}

// OpenShiftImagePolicyCRD returns the file with the CRD of OpenShift's ClusterImagePolicy, from the openshift/api module.
func OpenShiftImagePolicyCRD() (string, error) {
	module, err := moduleDirectory(openShiftModule)
	if err != nil {
		return "", err
	}
	return filepath.Join(module, "config", "v1", "zz_generated.crd-manifests", "0000_10_config-operator_01_clusterimagepolicies.crd.yaml"), nil
}

// SigstoreImagePolicyCRD returns the file with the CRD of the ClusterImagePolicy of sigstore's policy-controller. That converts its
// versions by a webhook: a test without the controller changes the strategy to None.
func SigstoreImagePolicyCRD() (string, error) {
	files, err := downloaded(policyModule, "POLICY_CONTROLLER_VERSION", "config/300-clusterimagepolicy.yaml")
	if err != nil {
		return "", err
	}
	return files[0], nil
}

// downloaded returns files of a module that is none of this project's, of the version that a variable of hack/versions.env names. The go
// command downloads it unless it is in the module cache.
func downloaded(module, variable string, names ...string) ([]string, error) {
	root, err := moduleDirectory(projectModule)
	if err != nil {
		return nil, err
	}
	version, err := readVersion(filepath.Join(root, "hack", "versions.env"), variable)
	if err != nil {
		return nil, err
	}
	var found struct{ Dir, Error string }
	output, err := goCommand("mod", "download", "-json", module+"@"+version).Output()
	if err = errors.Join(json.Unmarshal(output, &found), err); err != nil || found.Dir == "" {
		return nil, fmt.Errorf("downloading %s@%s: %w %s", module, version, err, found.Error)
	}
	files := make([]string, 0, len(names))
	for _, name := range names {
		files = append(files, filepath.Join(found.Dir, filepath.FromSlash(name)))
	}
	return files, nil
}
