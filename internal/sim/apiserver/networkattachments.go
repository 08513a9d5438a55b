// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apiserver

import "path/filepath"

const networkAttachmentModule = "github.com/k8snetworkplumbingwg/network-attachment-definition-client"

// NetworkAttachmentCRD returns the file with the CRD of NetworkAttachmentDefinition, as Multus installs it, from its
// own module. It is one of Options.CRDs for tests that need the kind.
func NetworkAttachmentCRD() (string, error) {
	module, err := moduleDirectory(networkAttachmentModule)
	if err != nil {
		return "", err
	}
	return filepath.Join(module, "artifacts", "networks-crd.yaml"), nil
}
