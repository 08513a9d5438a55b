// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const fileEFVI = "libciul.so.1"

func efviStack() Stack {
	return Stack{
		Type: v1alpha1.StackEFVI, Sample: "market-data/efvi/pool.yaml", Section: "ef_vi",
		Measures:   "eflatency",
		hasSection: func(s *v1alpha1.BypassStack) bool { return s.EFVI != nil },
		needs:      func(s *v1alpha1.BypassStack) needs { return efviNeeds(s.EFVI) },
		supported:  (*candidate).supported,
		rules:      onloadRules((*candidate).userVersion),
		addEdits:   addOnloadEdits(nil),
		shares:     sharesByVirtualInterfaces,
	}
}

// efviNeeds: ef_vi opens /dev/sfc_char only. libefcp is for programs that use the control plane's API.
func efviNeeds(e *v1alpha1.EFVIStack) needs {
	return needs{
		moduleVersion: string(e.OnloadVersion), moduleField: "spec.stack.efvi.onloadVersion",
		userVersion: string(e.OnloadVersion), userField: "spec.stack.efvi.onloadVersion",
		userSpace:   e.UserSpace,
		unversioned: true,
		nodes:       []string{nodeSFCChar},
		nodesForAll: true,
		modules:     []string{moduleChar, moduleResource},
		library:     fileEFVI,
		files:       []string{fileEFVI},
		extras:      []string{fileCPlane},
	}
}
