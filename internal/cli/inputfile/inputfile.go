// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package inputfile reads files that people name on the command line, whatever they are.
package inputfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Read reads a whole file of at most so many bytes. A named pipe is waited for until somebody writes to it, and read to its end. Errors name the file.
func Read(file string, most int64) ([]byte, error) {
	opened, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	// Nothing was written, so nothing can be lost on closing.
	defer func() { _ = opened.Close() }()
	return ReadFrom(opened, file, most)
}

// ReadFrom is Read of a stream with a name.
func ReadFrom(in io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(in, most+1))
	if failure, ok := errors.AsType[*fs.PathError](err); ok {
		// The file is named already.
		err = failure.Err
	}
	switch {
	case errors.Is(err, syscall.EISDIR):
		return nil, fmt.Errorf("%s is a folder: %w", name, err)
	case err != nil:
		return nil, fmt.Errorf("reading %s: %w", name, err)
	case int64(len(data)) > most:
		return nil, fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, nil
}
