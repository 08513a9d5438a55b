// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// UserSpaceFolders are the folders of the host in which the user files of the pool's stack are looked for: what to ask
// host.Request for before Devices is called. A pool whose user files come with the application has none.
func UserSpaceFolders(spec *v1alpha1.BypassNICPoolSpec) []string {
	var from *v1alpha1.UserSpaceSpec
	switch stack := &spec.Stack; {
	case stack.Onload != nil:
		from = &stack.Onload.UserSpace
	case stack.TCPDirect != nil:
		from = &stack.TCPDirect.UserSpace
	case stack.EFVI != nil:
		from = &stack.EFVI.UserSpace
	}
	if from == nil || from.Source != v1alpha1.UserSpaceHostPath {
		return nil
	}
	return []string{from.HostPath}
}
