// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"errors"
	"fmt"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubeletconfig"
)

// Rules are what OpenShift keeps to itself on a node.
func Rules() plan.PlatformRules {
	rules := plan.PlatformRules{
		// The units of machine-config-operator's templates, and of what it updates a node with; "*" stands for any text.
		Services: []string{
			"machine-config-daemon-*", "rpm-ostreed.*", "rpm-ostree-*", "kubelet-*", "kubens.*", "crio-*", "ocp-tuned-*", "node-valid-hostname.*",
			"wait-for-primary-ip.*", "coreos-*", "afterburn*", "aws-*", "azure-*", "gcp-*", "vsphere-*",
		},
	}
	for _, field := range platformFields() {
		name, _, _ := strings.Cut(field.path, ".")
		rules.KubeletFields = append(rules.KubeletFields, name)
	}
	return rules
}

// platformField is a field of KubeletConfiguration that the machine-config operator sets itself.
type platformField struct {
	path  string
	isSet func(*kubeletv1beta1.KubeletConfiguration) bool
}

// platformFields are those with which the machine-config operator refuses a KubeletConfig
// (pkg/controller/kubelet-config, validateUserKubeletConfig), by name.
func platformFields() []platformField {
	type configuration = *kubeletv1beta1.KubeletConfiguration
	return []platformField{
		{"cgroupDriver", func(c configuration) bool { return c.CgroupDriver != "" }},
		{"clusterDNS", func(c configuration) bool { return len(c.ClusterDNS) > 0 }},
		{"clusterDomain", func(c configuration) bool { return c.ClusterDomain != "" }},
		{"failSwapOn", func(c configuration) bool { return c.FailSwapOn != nil }},
		{"featureGates", func(c configuration) bool { return len(c.FeatureGates) > 0 }},
		{"memorySwap.swapBehavior", func(c configuration) bool { return c.MemorySwap.SwapBehavior != "" }},
		{"staticPodPath", func(c configuration) bool { return c.StaticPodPath != "" }},
	}
}

// checkPlatformFields refuses the fields that the machine-config operator sets itself: it would reject the whole object.
func checkPlatformFields(configuration *kubeletv1beta1.KubeletConfiguration) error {
	var problems []error
	for _, field := range platformFields() {
		if field.isSet(configuration) {
			problems = append(problems, fmt.Errorf("%s.%s belongs to OpenShift's machine-config operator, which "+
				"refuses a KubeletConfig that sets it", kubeletconfig.Kind, field.path))
		}
	}
	return errors.Join(problems...)
}
