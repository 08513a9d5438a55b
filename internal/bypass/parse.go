// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// ParsePool reads the JSON text of a pool. It refuses a field that it does not know: a pool file of a newer
// operator may ask for something that this program would not do.
func ParsePool(text []byte) (Pool, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var pool Pool
	if err := decoder.Decode(&pool); err != nil {
		return Pool{}, fmt.Errorf("the text of a BypassNICPool cannot be read: %w", err)
	}
	if err := decoder.Decode(&struct{}{}); !errors.Is(err, io.EOF) {
		return Pool{}, errors.New("the text of a BypassNICPool has something after its end")
	}
	if pool.Name == "" {
		return Pool{}, errors.New("the text of a BypassNICPool has no name")
	}
	if !hasSection(&pool.Spec.Stack) {
		return Pool{}, fmt.Errorf("BypassNICPool %s has spec.stack.type %q and not exactly the section of that type",
			pool.Name, pool.Spec.Stack.Type)
	}
	return pool, nil
}

// hasSection tells whether the section of the type is there, and no other. VFIO may go without one, because all its
// fields have defaults.
func hasSection(s *v1alpha1.BypassStack) bool {
	sections := map[v1alpha1.StackType]bool{
		v1alpha1.StackOnload: s.Onload != nil, v1alpha1.StackTCPDirect: s.TCPDirect != nil,
		v1alpha1.StackEFVI: s.EFVI != nil, v1alpha1.StackVFIO: s.VFIO != nil || s.Type == v1alpha1.StackVFIO,
		v1alpha1.StackAFXDP: s.AFXDP != nil,
	}
	count := 0
	for _, is := range sections {
		if is {
			count++
		}
	}
	return count == 1 && sections[s.Type]
}
