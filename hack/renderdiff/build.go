// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// prepared are the files of an input for one build, and what importing printed.
type prepared struct {
	files []string
	text  string
}

// prepare imports what is to be imported, into the folder.
func (i input) prepare(b build, folder string) (prepared, error) {
	if i.imported == "" {
		files := make([]string, 0, len(i.files))
		for _, file := range i.files {
			files = append(files, filepath.Join(b.tree, file))
		}
		return prepared{files: files}, nil
	}
	out, complaints, err := b.execute("import", "-f", i.imported)
	if err != nil {
		return prepared{}, fmt.Errorf("importing %s with %s: %w: %s", i.imported, b.binary, err, complaints)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return prepared{}, err
	}
	file := filepath.Join(folder, filepath.Base(i.imported))
	if err := os.WriteFile(file, out, 0o600); err != nil {
		return prepared{}, err
	}
	return prepared{files: []string{file}, text: string(out)}, nil
}

// rendered is what one build renders of one input for one host.
type rendered struct {
	objects []map[string]any
	// refusal is what the build says where it renders nothing; "" where it renders.
	refusal string
}

// render runs the render command.
func (b build) render(p prepared, host string) rendered {
	arguments := make([]string, 0, 5+2*len(p.files))
	arguments = append(arguments, "render", "-o", "json", "--root", host)
	for _, file := range p.files {
		arguments = append(arguments, "-f", file)
	}
	out, complaints, err := b.execute(arguments...)
	if err != nil {
		return rendered{refusal: err.Error() + ": " + complaints}
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal(out, &list); err != nil {
		return rendered{refusal: "output that is no JSON: " + err.Error()}
	}
	return rendered{objects: list.Items}
}

// execute returns the standard output and the standard error. The error is the exit status.
func (b build) execute(arguments ...string) ([]byte, string, error) {
	var out, complaints bytes.Buffer
	command := exec.Command(b.binary, arguments...)
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("exit status %d", exit.ExitCode())
	}
	return out.Bytes(), complaints.String(), err
}
