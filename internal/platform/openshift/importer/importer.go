// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package importer turns the PerformanceProfile of OpenShift's Node Tuning Operator into a
// LowLatencyNodeProfile that means the same: the same CPU sets, hugepages, kernel arguments and kubelet
// behaviour. What PerformanceProfile leaves to its operator is written out, so that the meaning does not
// depend on the defaults of this one. It is pure.
package importer

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// converter carries one conversion: from source to spec, with remarks on what has no exact counterpart.
type converter struct {
	source  *performanceProfile
	spec    *v1alpha1.LowLatencyNodeProfileSpec
	remarks []string
	// driver is the argument that has decided about spec.power.frequencyDriver; "" when none has.
	driver string
}

// FromPerformanceProfile converts one PerformanceProfile (performance.openshift.io/v2, v1 or v1alpha1), a
// YAML or JSON document. The remarks are sentences, each beginning with a field of the PerformanceProfile,
// about everything that has no exact counterpart. An error names the field that is invalid.
func FromPerformanceProfile(document []byte) (*v1alpha1.LowLatencyNodeProfile, []string, error) {
	source, remarks, err := decode(document)
	if err != nil {
		return nil, nil, err
	}
	profile := &v1alpha1.LowLatencyNodeProfile{
		TypeMeta: metav1.TypeMeta{
			APIVersion: v1alpha1.GroupVersion.String(),
			Kind:       "LowLatencyNodeProfile",
		},
	}
	c := &converter{source: source, spec: &profile.Spec, remarks: remarks}
	profile.Name = c.name()
	for _, step := range []func() error{
		c.selectors, c.cpus, c.memory, c.interrupts, c.numa, c.power, c.kernel, c.arguments, c.network,
		c.kubelet, c.containerRuntime, c.system, c.rollout,
	} {
		if err := step(); err != nil {
			return nil, nil, err
		}
	}
	c.unknownAnnotations()
	return profile, c.remarks, nil
}

// remark notes that a field has no exact counterpart.
func (c *converter) remark(field, format string, args ...any) {
	c.remarks = append(c.remarks, field+": "+fmt.Sprintf(format, args...))
}

// invalid is an error about a field of the PerformanceProfile.
func invalid(field, format string, args ...any) error {
	return fmt.Errorf("%s: "+format, append([]any{field}, args...)...)
}

// name returns the name of the new object, which is shorter than that of a PerformanceProfile may be.
func (c *converter) name() string {
	name := c.source.Metadata.Name
	if len(name) <= v1alpha1.MaxObjectNameLength {
		return name
	}
	short := strings.TrimRight(name[:v1alpha1.MaxObjectNameLength], "-.")
	c.remark("metadata.name", "%q is longer than %d characters; it became %q.", name, v1alpha1.MaxObjectNameLength, short)
	return short
}
