// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// CDIKind is the CDI kind of a resource, for others that write specifications of its devices.
func CDIKind(resource string) string { return kind(resource) }

// CDIEdits are edits in the words of CDI, without their variables.
func CDIEdits(edits bypass.Edits) specs.ContainerEdits { return containerEdits(edits) }

// ReplaceFile replaces a CDI specification in one step, so that no runtime reads a part of it.
func ReplaceFile(path string, content []byte) error { return replaceFile(path, content) }
