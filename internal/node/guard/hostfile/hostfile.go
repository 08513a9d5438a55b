// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package hostfile reads and changes the files of a host below a root, in steps that each survive a power cut or have not
// happened, and without following a link on the way.
package hostfile

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Type is what is at a path.
type Type string

const (
	// Absent tells that nothing is at the path; it is the zero value.
	Absent Type = ""
	// Regular is a file.
	Regular Type = "File"
	// Link is a symbolic link; its content is where it points to.
	Link Type = "Link"
	// Folder is a folder.
	Folder Type = "Folder"
	// Other is a device, a socket, a pipe: nothing that a plan changes.
	Other Type = "Other"
)

// State is what is at a path, to the last bit that has to be put back.
type State struct {
	Type Type `json:"type,omitempty"`
	// Mode are the permission bits, those above 0o777 included.
	Mode uint32 `json:"mode,omitempty"`
	UID  int    `json:"uid,omitempty"`
	GID  int    `json:"gid,omitempty"`
	// Label is the security context of SELinux; "" where the file system has none. What is written without one gets that
	// of its folder.
	Label string `json:"label,omitempty"`
	// Content of a file, or where a link points to.
	Content []byte `json:"content,omitempty"`
}

// File is a regular file of root.
func File(content string, mode uint32) State {
	return State{Type: Regular, Mode: mode, Content: []byte(content)}
}

// LinkTo is a symbolic link of root.
func LinkTo(target string) State { return State{Type: Link, Mode: 0o777, Content: []byte(target)} }

// NewFolder is a folder of root that everybody may read.
func NewFolder() State { return State{Type: Folder, Mode: 0o755} }

// Equal reports whether two states are the same to the last bit. A label that is not known is not compared: what is written
// without one gets that of its folder.
func (s State) Equal(other State) bool {
	labels := s.Label == other.Label || s.Label == "" || other.Label == ""
	return s.Type == other.Type && s.Mode == other.Mode && s.UID == other.UID && s.GID == other.GID && labels &&
		bytes.Equal(s.Content, other.Content)
}

// String describes a state for people, without its content.
func (s State) String() string {
	switch s.Type {
	case Absent:
		return "absent"
	case Regular:
		return fmt.Sprintf("a file of %d bytes with mode %#o, owner %d:%d", len(s.Content), s.Mode, s.UID, s.GID)
	case Link:
		return "a link to " + string(s.Content)
	default:
		return strings.ToLower(string(s.Type))
	}
}

// Disk is what the guard needs of a file system. Each method is one step: when it has returned without an error, what it did
// survives a power cut, except where its comment says otherwise. Paths are absolute paths of the host.
type Disk interface {
	// Read returns what is at a path. It is an error when a folder on the way is a link.
	Read(name string) (State, error)
	// Create puts a file, a link or a folder at a path where nothing is. Its content survives a power cut, its name may not.
	Create(name string, s State) error
	// Rename replaces what is at a path by what is at another of the same folder. It may be undone by a power cut.
	Rename(from, to string) error
	// Remove removes a file, a link or an empty folder. It may be undone by a power cut.
	Remove(name string) error
	// Sync makes the names in a folder survive a power cut.
	Sync(folder string) error
	// Append adds bytes to a file that exists. A power cut may leave any number of the first of them.
	Append(name string, content []byte) error
	// Truncate cuts a file.
	Truncate(name string, size int64) error
	// SetVariable gives a variable of the firmware its content, and removes it where that is empty.
	SetVariable(name string, content []byte) error
}

// VariablesFolder is where the kernel shows the variables of an EFI firmware (efivarfs). Each is written whole and at once: there is
// nothing beside it, and nothing to sync.
const VariablesFolder = "/sys/firmware/efi/efivars"

func isVariable(name string) bool { return path.Dir(name) == VariablesFolder }

// Beside is the name under which the next content of a path waits to be renamed. It begins with a dot and has no suffix that
// any reader of a folder of drop-ins takes.
func Beside(name string) string {
	return path.Join(path.Dir(name), "."+path.Base(name)+".lowlatency-next")
}

// Replace brings a path into a state, in one step as far as readers and power cuts see it.
func Replace(disk Disk, name string, s State) error {
	if isVariable(name) {
		if err := disk.SetVariable(name, s.Content); err != nil {
			return fmt.Errorf("writing a variable of the firmware: %w", err)
		}
		return nil
	}
	if s.Type == Absent {
		if err := disk.Remove(name); err != nil {
			return fmt.Errorf("removing %s: %w", name, err)
		}
		return disk.Sync(path.Dir(name))
	}
	if s.Type == Folder {
		if err := disk.Create(name, s); err != nil {
			return fmt.Errorf("making %s: %w", name, err)
		}
		return disk.Sync(path.Dir(name))
	}
	beside := Beside(name)
	if err := RemoveLeftover(disk, name); err != nil {
		return err
	}
	if err := disk.Create(beside, s); err != nil {
		// What did not fit must not fill the disk of a host.
		return errors.Join(fmt.Errorf("writing %s: %w", name, err), RemoveLeftover(disk, name))
	}
	if err := disk.Rename(beside, name); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return disk.Sync(path.Dir(name))
}

// RemoveLeftover removes what a power cut within Replace has left beside a path.
func RemoveLeftover(disk Disk, name string) error {
	if isVariable(name) {
		return nil
	}
	left, err := disk.Read(Beside(name))
	if err != nil || left.Type == Absent {
		return err
	}
	if err := disk.Remove(Beside(name)); err != nil {
		return fmt.Errorf("removing what an interrupted write has left: %w", err)
	}
	return disk.Sync(path.Dir(name))
}
