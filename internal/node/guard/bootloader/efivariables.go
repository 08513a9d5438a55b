// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// The variables by which loaders and systems talk (systemd's Boot Loader Interface).
const (
	loaderVendor   = "-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f"
	loaderInfo     = "LoaderInfo"
	loaderFeatures = "LoaderFeatures"
	loaderOneShot  = "LoaderEntryOneShot"
	loaderDefault  = "LoaderEntryDefault"
	loaderLast     = "LoaderEntryLastBooted"
	// loaderPreferred is new in systemd 260.
	loaderPreferred = "LoaderEntryPreferred"
)

// attributeBytes are in front of the content of a variable's file.
const attributeBytes = 4

// keptAttributes: the variable survives a power cut, and both loader and system read it (EFI_VARIABLE_NON_VOLATILE,
// _BOOTSERVICE_ACCESS, _RUNTIME_ACCESS).
const keptAttributes = 0x7

// variables are those of a host's firmware.
type variables struct{ host Host }

// variableFile is where the kernel shows a variable.
func variableFile(name string) string { return hostfile.VariablesFolder + "/" + name + loaderVendor }

// get returns the bytes of a variable; none where it is not set.
func (v variables) get(name string) ([]byte, error) {
	file, err := v.host.Read(variableFile(name))
	if err != nil || file.Type == hostfile.Absent {
		return nil, err
	}
	if file.Type != hostfile.Regular || len(file.Content) < attributeBytes {
		return nil, fmt.Errorf("%s is no variable of the firmware", variableFile(name))
	}
	return file.Content[attributeBytes:], nil
}

// text returns a variable that holds a text; "" where it is not set.
func (v variables) text(name string) (string, error) {
	content, err := v.get(name)
	if err != nil {
		return "", err
	}
	return decodeText(content), nil
}

// decodeText reads UTF-16 up to its end or the first zero.
func decodeText(content []byte) string {
	var units []uint16
	for ; len(content) > 1; content = content[2:] {
		unit := binary.LittleEndian.Uint16(content)
		if unit == 0 {
			break
		}
		units = append(units, unit)
	}
	return string(utf16.Decode(units))
}

// encodeVariable is a variable with a text, as its file has it.
func encodeVariable(text string) []byte {
	content := binary.LittleEndian.AppendUint32(nil, keptAttributes)
	for _, unit := range utf16.Encode([]rune(text)) {
		content = binary.LittleEndian.AppendUint16(content, unit)
	}
	return binary.LittleEndian.AppendUint16(content, 0)
}
