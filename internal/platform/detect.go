// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of platform.
type Kind string

const (
	// OpenShift changes nodes by MachineConfigs.
	OpenShift Kind = "OpenShift"
	// Kubernetes has nothing that changes nodes.
	Kubernetes Kind = "Kubernetes"
)

// Detect finds out on which platform the operator runs, by the kinds that the API server serves. The
// error is that of asking the API server.
func Detect(mapper meta.RESTMapper) (Kind, error) {
	found, err := Serves(mapper, schema.GroupVersionKind{
		Group: "machineconfiguration.openshift.io", Version: "v1", Kind: "MachineConfigPool",
	})
	if err != nil {
		return "", err
	}
	if found {
		return OpenShift, nil
	}
	return Kubernetes, nil
}

// Serves reports whether the API server serves a kind.
func Serves(mapper meta.RESTMapper, kind schema.GroupVersionKind) (bool, error) {
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	switch {
	case meta.IsNoMatchError(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("asking the API server for %s: %w", kind.Kind, err)
	}
	return true, nil
}
