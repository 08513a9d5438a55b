// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package inputfile

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		file    string
		most    int64
		want    string
		problem string
	}{
		"as large as it may be":      {file: file, most: 5, want: "12345"},
		"too large":                  {file: file, most: 4, problem: file + " is larger than 4 bytes"},
		"without end":                {file: "/dev/zero", most: 1 << 20, problem: "/dev/zero is larger than 1048576 bytes"},
		"a folder":                   {file: dir, most: 4, problem: dir + " is a folder: is a directory"},
		"not there":                  {file: file + "s", most: 4, problem: "open " + file + "s: no such file or directory"},
		"a path through a file":      {file: file + "/x", most: 4, problem: "not a directory"},
		"a name that no file can be": {file: "a\x00b", most: 4, problem: "invalid argument"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := Read(tc.file, tc.most)
			if string(data) != tc.want || (err == nil) != (tc.problem == "") {
				t.Fatalf("read %.20q, %v", data, err)
			}
			if err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error %q, want %q", err, tc.problem)
			}
		})
	}
}

// What another program is to write yet is waited for.
func TestReadWaitsForAWriter(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		writer, err := os.OpenFile(pipe, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		for range 3 {
			_, _ = writer.WriteString("1234\n")
		}
		_ = writer.Close()
	}()
	data, err := Read(pipe, 100)
	if want := "1234\n1234\n1234\n"; err != nil || string(data) != want {
		t.Errorf("read %q, %v, want %q", data, err, want)
	}
}
