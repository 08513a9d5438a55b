// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// Where the parts of a struct linux_dirent64 are, see getdents(2).
const (
	direntLength = 16
	direntType   = 18
	direntName   = 19
)

// appendEntries reads the records that getdents64 has written about a directory.
func appendEntries(entries []entry, dir int, records []byte) []entry {
	for len(records) > direntName {
		length := int(binary.NativeEndian.Uint16(records[direntLength:]))
		if length <= direntName || length > len(records) {
			return entries
		}
		name, _, _ := bytes.Cut(records[direntName:length], []byte{0})
		if text := string(name); text != "." && text != ".." {
			entries = append(entries, entry{text, kindOfEntry(dir, text, records[direntType])})
		}
		records = records[length:]
	}
	return entries
}

// kindOfEntry reads the type of an entry. Some file systems do not report it there.
func kindOfEntry(dir int, name string, fileType byte) kind {
	switch fileType {
	case unix.DT_REG:
		return kindFile
	case unix.DT_DIR:
		return kindDirectory
	case unix.DT_LNK:
		return kindLink
	case unix.DT_CHR:
		return kindDevice
	case unix.DT_UNKNOWN:
		if stat, err := statAt(dir, name); err == nil {
			return kindOfMode(stat.Mode)
		}
	}
	return kindOther
}
