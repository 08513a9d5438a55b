// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
