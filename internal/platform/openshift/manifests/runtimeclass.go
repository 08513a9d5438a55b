// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
)

// RuntimeClass is how a pod asks for the container runtime's handler of latency-critical pods; it also brings the pod
// to the profile's nodes. There is one for each profile. All machine config pools of a profile render the same one, so
// it names no plan: its bytes must not depend on which machine config pool was rendered last.
func RuntimeClass(in Input) (*nodev1.RuntimeClass, error) {
	in, err := in.checked()
	if err != nil {
		return nil, err
	}
	return crioconfig.RuntimeClass(in.Plan, in.planHash), nil
}
