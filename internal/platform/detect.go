// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind of platform.
type Kind string

const (
	// OpenShift changes nodes by MachineConfigs.
	OpenShift Kind = "OpenShift"
	// Kubernetes changes ordinary hosts by a guard on each.
	Kubernetes Kind = "Kubernetes"
	// Nowhere changes no node: plans are made, and nodes are verified against them.
	Nowhere Kind = "None"
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{OpenShift, Kubernetes, Nowhere} }

// Choose returns the kind that was asked for, or the one that the API server serves where none was. Ordinary hosts are changed only
// where somebody asks for it: an operator that is upgraded must not begin to reboot nodes whose plans others bring to them. An
// unknown kind, and OpenShift where the API server serves none of its kinds, are errors.
func Choose(asked Kind, mapper meta.RESTMapper) (Kind, error) {
	found, err := Detect(mapper)
	switch {
	case err != nil:
		return "", err
	case asked == "" && found == OpenShift:
		return OpenShift, nil
	case asked == "":
		return Nowhere, nil
	case !slices.Contains(Kinds(), asked):
		return "", fmt.Errorf("there is no platform %q: it is one of %v", asked, Kinds())
	case asked == OpenShift && found != OpenShift:
		return "", errors.New("the platform is to be OpenShift, and the API server serves no MachineConfigPools")
	case asked == Kubernetes && found == OpenShift:
		return "", errors.New("the platform is to be Kubernetes, and the API server serves MachineConfigPools: the hosts of OpenShift " +
			"are changed by the machine-config operator, and not by two")
	default:
		return asked, nil
	}
}

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
