// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

const crypttab = "/etc/crypttab"

// Sealed says which disk of the host is opened with a key that its TPM keeps; "" where crypttab(5) names none. GRUB and systemd's boot stub
// measure the kernel's command line into the TPM's registers 8, 9 and 12, and a key that is bound to them is not given to a kernel with other
// arguments: the start waits for a passphrase, before anything of ours runs. To which registers a key is bound only the disk itself says.
func Sealed(h Host) (string, error) {
	file, err := h.Read(crypttab)
	if err != nil || file.Type != hostfile.Regular {
		return "", err
	}
	for line := range strings.Lines(string(file.Content)) {
		fields := strings.Fields(line)
		if len(fields) < 4 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		options := strings.Split(fields[3], ",")
		isSealed := slices.ContainsFunc(options, func(option string) bool { return strings.HasPrefix(option, "tpm2-device=") })
		if isSealed && !slices.Contains(options, "noauto") {
			return fmt.Sprintf("the disk %s is opened with a key that the TPM keeps (%s), and that it may not give to a kernel with other arguments", fields[0], crypttab), nil
		}
	}
	return "", nil
}

// CheckSealed refuses arguments for a host whose start may wait for a passphrase with them, unless that is accepted by name. The way back to
// the former arguments is refused to nobody.
func CheckSealed(sealed string, change Arguments) error {
	if sealed == "" || len(change.Add) == 0 || change.Fallback == operation.ByHandAccepted {
		return nil
	}
	return fmt.Errorf("%s. Where the key is bound to neither of the registers 8, 9 and 12 (cryptsetup luksDump), or where somebody can type the passphrase or start "+
		"the host again, accept that by name (spec.rollout.bootFallback of the profile, or fallback of the operation: %s)", sealed, operation.ByHandAccepted)
}
