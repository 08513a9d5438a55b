// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package bounded keeps what other programs print, up to a bound.
package bounded

import "bytes"

// Writer keeps what is written to it up to Left bytes, and calls Full, which may be nil, when there is more. It is for one goroutine at a time.
type Writer struct {
	Text bytes.Buffer
	Left int
	Full func()
}

// Write takes everything, so that nobody complains about a writer that does not.
func (w *Writer) Write(piece []byte) (int, error) {
	kept := piece[:min(len(piece), w.Left)]
	w.Left -= len(kept)
	_, _ = w.Text.Write(kept)
	if len(kept) < len(piece) && w.Full != nil {
		w.Full()
	}
	return len(piece), nil
}
