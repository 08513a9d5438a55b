// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// deviceClass lets pods ask for the NICs of a pool, by a ResourceClaim or by the name of the device plugin's resource:
// the scheduler makes a claim of its own for that on every node whose kubelet does not advertise the resource
// (kube-scheduler, plugin DynamicResources; feature DRAExtendedResource, alpha in 1.34, on since 1.36). Without that name
// there are claims only.
func deviceClass(in PoolInput) *resourcev1.DeviceClass {
	name := bypass.DriverName(in.Pool.Name)
	class := &resourcev1.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: in.metadata(name, "", "device-class"),
		Spec: resourcev1.DeviceClassSpec{
			Selectors: []resourcev1.DeviceSelector{{
				CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", name)},
			}},
		},
	}
	if !in.Nameless {
		class.Spec.ExtendedResourceName = &in.Pool.Spec.ResourceName
	}
	return class
}
