// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKernelRelease(t *testing.T) {
	whole := make([]byte, 0x400)
	binary.LittleEndian.PutUint16(whole[0x20e:], 0x100)
	copy(whole[0x300:], "6.1.0-56-amd64 (debian) #1 SMP\x00")
	beyond := make([]byte, 0x300)
	binary.LittleEndian.PutUint16(beyond[0x20e:], 0x100)
	cases := map[string]struct {
		content       []byte
		want, problem string
	}{
		"a kernel":         {whole, "6.1.0-56-amd64", ""},
		"a short file":     {whole[:0x20f], "", "too short"},
		"text at the end":  {beyond, "", "does not say"},
		"no text":          {make([]byte, 0x400), "", "does not say"},
		"text without end": {whole[:0x310], "", "does not say"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "vmlinuz")
			if err := os.WriteFile(path, tc.content, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := kernelRelease(path)
			if got != tc.want || (err == nil) != (tc.problem == "") || err != nil && !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("got %q and %v", got, err)
			}
		})
	}
	if _, err := kernelRelease(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there has a release")
	}
}
