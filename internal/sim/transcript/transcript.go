// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package transcript holds what a program under test has said so far, while it goes on.
package transcript

import (
	"bytes"
	"sync"
)

// Transcript is text that one goroutine writes while another reads it. Its zero value is empty.
type Transcript struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

// Write implements io.Writer.
func (t *Transcript) Write(p []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.text.Write(p)
}

// String is what was written so far.
func (t *Transcript) String() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return t.text.String()
}
