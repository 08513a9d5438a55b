// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"cmp"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxUserFile bounds a library: libonload.so has 1 MB, and some 10 MB with debug symbols.
	maxUserFile = 64 << 20
	// maxUserText bounds a text within a library. The message of libonload.so has some 250 characters.
	maxUserText = 4096
	// maxInterfaceVersions bounds what one library may be said to speak; libonload.so holds three.
	maxInterfaceVersions = 64
	// interfaceDigits is the length of a checksum of an interface: CI_CHSUM_STR_LEN.
	interfaceDigits = 32
)

// defaultUserSpaces are the folders in which a Snapshot looks for user files of a stack: the host's own
// installation and the folder to which images of Onload are unpacked by convention.
func defaultUserSpaces() []string { return []string{"/", "/opt/onload"} }

// libraries are the libraries of Onload, TCPDirect and ef_vi under the names by which programs are linked to them.
func libraries() []string {
	return []string{
		"libonload.so", "libonload_ext.so", "libonload_ext.so.1", "libonload_zf.so", "libonload_zf.so.1",
		"libefcp.so", "libefcp.so.1", "libciul.so", "libciul.so.1",
	}
}

// libraryFolders are where libraries are below a folder, the likeliest first. onload_install of Onload takes
// usr/lib64 or, on Debian, usr/lib/x86_64-linux-gnu.
func libraryFolders() []string {
	return []string{
		"usr/lib64", "usr/lib", "lib64", "lib", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
	}
}

func (r *reader) userSpaces(folders []string) map[string]UserSpace {
	if len(folders) == 0 {
		return nil
	}
	found := map[string]UserSpace{}
	r.addUserSpaces(found, folders)
	return found
}

func (r *reader) addUserSpaces(found map[string]UserSpace, folders []string) {
	for _, folder := range folders {
		if _, known := found[folder]; !known {
			found[folder] = UserSpace{Files: r.userFiles(folder)}
		}
	}
}

// readMoreUserSpaces looks into folders that somebody asked for.
func readMoreUserSpaces(folders []string) func(*reader, *Facts) {
	return func(r *reader, f *Facts) {
		if f.Bypass.UserSpaces == nil && len(folders) > 0 {
			f.Bypass.UserSpaces = map[string]UserSpace{}
		}
		r.addUserSpaces(f.Bypass.UserSpaces, folders)
	}
}

// userFiles looks for the files of a stack below a folder.
func (r *reader) userFiles(folder string) Fact[map[string]UserFile] {
	if !path.IsAbs(folder) || path.Clean(folder) != folder {
		return Absent[map[string]UserFile](folder, "not an absolute path without detours")
	}
	if err := r.folder(folder); err != nil {
		return Absent[map[string]UserFile](folder, reasonOf(err))
	}
	files := map[string]UserFile{}
	for _, name := range libraries() {
		r.addUserFile(files, folder, name, libraryFolders())
	}
	for _, name := range []string{"onload", "onload_stackdump"} {
		r.addUserFile(files, folder, name, []string{"usr/bin", "bin"})
	}
	return Known(files, folder)
}

// addUserFile adds the file from the first subfolder that has it.
func (r *reader) addUserFile(files map[string]UserFile, folder, name string, below []string) {
	for _, subfolder := range below {
		file := path.Join(folder, subfolder, name)
		scanned, err := r.userFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDirectory):
			continue
		case err != nil:
			r.taken.file(file, "", err)
			files[name] = UserFile{Path: file, Unreadable: reasonOf(err)}
		default:
			r.taken.file(file, scanned.extract(), nil)
			files[name] = scanned
		}
		return
	}
}

// userFile looks for what a file says about itself.
func (r *reader) userFile(file string) (UserFile, error) {
	name, err := r.regular(file)
	if err != nil {
		return UserFile{}, err
	}
	scanner := newTextScanner()
	err = r.walk.view.copyFile(name, maxUserFile, scanner)
	scanner.file.Path = file
	return scanner.file, err
}

// The messages that the libraries print when they are run as programs, and which are therefore in them as one
// constant each: onload_version_msg in src/lib/transport/unix/startup.c of Onload, and version in
// src/lib/zf/zf.c of TCPDirect. The version is what configure_version or the packager chose, followed by a space
// and the build profile, if any.
const (
	onloadMessage    = "Onload %s\nCopyright (c)"
	tcpDirectMessage = "TCPDirect Library version: %s\nTCPDirect built with Onload version: %s\n"
)

// textScanner finds the texts of a binary file that name versions. It keeps one text at a time.
type textScanner struct {
	file UserFile
	// text is the printable text that has been read up to here; it is too long when it has more than maxUserText.
	text []byte

	onload, tcpDirect *regexp.Regexp
}

func newTextScanner() *textScanner {
	return &textScanner{
		onload:    messagePattern(onloadMessage),
		tcpDirect: messagePattern(tcpDirectMessage),
	}
}

// messagePattern matches a message whatever stands for %s.
func messagePattern(message string) *regexp.Regexp {
	return regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(message), "%s", `(\S[^\n]{0,159})`))
}

// Write takes in the next piece of the file.
func (s *textScanner) Write(piece []byte) (int, error) {
	for _, c := range piece {
		switch {
		case c == '\n' || c >= ' ' && c <= '~':
			if len(s.text) <= maxUserText {
				s.text = append(s.text, c)
			}
		default:
			if c == 0 {
				s.finish()
			}
			s.text = s.text[:0]
		}
	}
	return len(piece), nil
}

// finish looks at a text that a zero ends, as the constants of C end.
func (s *textScanner) finish() {
	if len(s.text) > maxUserText {
		return
	}
	// A text may follow bytes that happen to be printable, so its end counts.
	digits := string(s.text[max(0, len(s.text)-interfaceDigits):])
	if len(digits) == interfaceDigits && isHexadecimal(digits) &&
		len(s.file.InterfaceVersions) < maxInterfaceVersions && !slices.Contains(s.file.InterfaceVersions, digits) {
		s.file.InterfaceVersions = append(s.file.InterfaceVersions, digits)
	}
	if match := s.tcpDirect.FindSubmatch(s.text); match != nil {
		s.file.Version = cmp.Or(s.file.Version, string(bytes.TrimSpace(match[1])))
		s.file.BuiltWith = cmp.Or(s.file.BuiltWith, string(bytes.TrimSpace(match[2])))
	} else if match := s.onload.FindSubmatch(s.text); match != nil {
		s.file.Version = cmp.Or(s.file.Version, string(bytes.TrimSpace(match[1])))
	}
}

// extract is a file that says of itself what this one says, for a snapshot.
func (f UserFile) extract() string {
	var text strings.Builder
	for _, version := range f.InterfaceVersions {
		text.WriteString(version + "\x00")
	}
	switch {
	case f.BuiltWith != "":
		text.WriteString(fill(tcpDirectMessage, f.Version, f.BuiltWith) + "\x00")
	case f.Version != "":
		text.WriteString(fill(onloadMessage, f.Version) + "\x00")
	}
	return text.String()
}

// fill puts values into the places of a message.
func fill(message string, values ...string) string {
	for _, value := range values {
		message = strings.Replace(message, "%s", value, 1)
	}
	return message
}
