// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"strings"
	"testing"
)

// FuzzSealedDisk: a disk that is named is the first word of a line that is no comment and names the TPM, and a table without that names none.
func FuzzSealedDisk(f *testing.F) {
	for _, table := range []string{"", "root UUID=1 none luks,tpm2-device=auto\n", "# root UUID=1 none tpm2-device=auto", "a b c d,noauto,tpm2-device=\r\n\x00"} {
		f.Add(table)
	}
	f.Fuzz(func(t *testing.T, table string) {
		disk := sealedDisk(table)
		if disk == "" {
			return
		}
		for line := range strings.Lines(table) {
			if fields := strings.Fields(line); len(fields) > 3 && fields[0] == disk && !strings.HasPrefix(disk, "#") && strings.Contains(fields[3], "tpm2-device=") {
				return
			}
		}
		t.Errorf("%q has no disk %q that a TPM opens", table, disk)
	})
}
