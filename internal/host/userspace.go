// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	// maxUserFile bounds a library: what is loaded of libonload.so has 1 MB, and the file some 10 MB with debug symbols.
	maxUserFile = 64 << 20
	// maxUserText bounds a text within a library. The message of libonload.so has some 250 characters.
	maxUserText = 4096
	// minDigits is the least number of hexadecimal digits that may be half a checksum of an interface.
	minDigits = checksumDigits / 2
	// maxDigits bounds the runs of digits that are kept of one library; libonload.so holds three.
	maxDigits = 256
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
	scanned := map[string]UserFile{}
	for _, name := range libraries() {
		r.addUserFile(files, folder, name, libraryFolders(), func(file string) (UserFile, error) { return r.library(scanned, file) })
	}
	for _, name := range []string{"onload", "onload_stackdump"} {
		r.addUserFile(files, folder, name, []string{"usr/bin", "bin"}, r.program)
	}
	return Known(files, folder)
}

// addUserFile adds the file from the first subfolder that has it.
func (r *reader) addUserFile(
	files map[string]UserFile, folder, name string, below []string, look func(file string) (UserFile, error),
) {
	for _, subfolder := range below {
		file := path.Join(folder, subfolder, name)
		scanned, err := look(file)
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

// program tells whether a program can be read. Nobody asks what it says about itself.
func (r *reader) program(file string) (UserFile, error) {
	name, err := r.regular(file)
	if err != nil {
		return UserFile{}, err
	}
	err = r.walk.view.copyFile(name, maxUserFile, enough{})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return UserFile{Path: file}, err
}

// library looks for what a library says about itself, once for all names that lead to it.
func (r *reader) library(scanned map[string]UserFile, file string) (UserFile, error) {
	name, err := r.regular(file)
	if err != nil {
		return UserFile{}, err
	}
	found, known := scanned[name]
	if !known {
		scanner := newTextScanner()
		if err := r.walk.view.copyFile(name, maxUserFile, scanner); err != nil && !errors.Is(err, errEnough) {
			return UserFile{}, err
		}
		found = scanner.found()
		scanned[name] = found
	}
	found.Path = file
	return found, nil
}

// errEnough ends the reading of a file of which nothing more is wanted.
var errEnough = errors.New("enough was read")

// enough is satisfied with the first piece.
type enough struct{}

func (enough) Write([]byte) (int, error) { return 0, errEnough }

// The messages that the libraries print when they are run as programs, and which are therefore in them as one
// constant each: onload_version_msg in src/lib/transport/unix/startup.c of Onload, and version in
// src/lib/zf/zf.c of TCPDirect. The version is what configure_version or the packager chose, followed by a space
// and the build profile, if any.
const (
	onloadMessage    = "Onload %s\nCopyright (c)"
	tcpDirectMessage = "TCPDirect Library version: %s\nTCPDirect built with Onload version: %s\n"
)

// textScanner finds the texts of a library that name versions, and runs of hexadecimal digits, in what the dynamic linker
// loads of it. It keeps one text at a time.
type textScanner struct {
	file UserFile
	// head is the beginning of the file until it tells what is loaded; then it is not kept any more.
	head    []byte
	isBegun bool
	// left is how many bytes of the file are still looked at.
	left int
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

// Write takes in the next piece of the file, and refuses what is not loaded.
func (s *textScanner) Write(piece []byte) (int, error) {
	if !s.isBegun {
		s.head = append(s.head, piece...)
		if len(s.head) < elfHead {
			return len(piece), nil
		}
		s.begin()
	} else {
		s.look(piece)
	}
	if s.left == 0 {
		return len(piece), errEnough
	}
	return len(piece), nil
}

// begin looks at the head of the file, now that it is there, or that the file has no more.
func (s *textScanner) begin() {
	s.isBegun = true
	s.left = loadedBytes(s.head[:min(len(s.head), elfHead)])
	s.look(s.head)
	s.head = nil
}

// found is what the file says about itself, after all of it was written.
func (s *textScanner) found() UserFile {
	if !s.isBegun {
		s.begin()
	}
	s.endText(false)
	return s.file
}

// look goes through a piece from text to text.
func (s *textScanner) look(piece []byte) {
	piece = piece[:min(len(piece), s.left)]
	s.left -= len(piece)
	for len(piece) > 0 {
		end := 0
		for end < len(piece) && isText(piece[end]) {
			end++
		}
		if room := maxUserText + 1 - len(s.text); room > 0 && end > 0 {
			s.text = append(s.text, piece[:min(room, end)]...)
		}
		if end == len(piece) {
			return
		}
		s.endText(piece[end] == 0)
		piece = piece[end:]
		for len(piece) > 0 && !isText(piece[0]) {
			piece = piece[1:]
		}
	}
}

func isText(c byte) bool { return c >= ' ' && c <= '~' || c == '\n' }

// endText looks at a text. Constants of C end with a zero. Digits also count where another constant follows: a compiler
// that copies a text of known length needs no zero behind it.
func (s *textScanner) endText(byZero bool) {
	text := s.text
	s.text = s.text[:0]
	if len(text) < minDigits || len(text) > maxUserText {
		return
	}
	s.addDigits(text)
	if byZero {
		s.addMessage(text)
	}
}

// addDigits adds the runs of hexadecimal digits within a text.
func (s *textScanner) addDigits(text []byte) {
	for at := 0; at+minDigits <= len(text); {
		start := at
		for start < len(text) && !isHexadecimalDigit(text[start]) {
			start++
		}
		for at = start; at < len(text) && isHexadecimalDigit(text[at]); {
			at++
		}
		// One more than are kept tells that there were more.
		if at-start >= minDigits && len(s.file.Digits) <= maxDigits && !slices.Contains(s.file.Digits, string(text[start:at])) {
			s.file.Digits = append(s.file.Digits, string(text[start:at]))
		}
	}
}

func isHexadecimalDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }

// addMessage takes the release from a text that is a message with it.
func (s *textScanner) addMessage(text []byte) {
	if match := s.tcpDirect.FindSubmatch(text); match != nil {
		s.file.Version = cmp.Or(s.file.Version, string(bytes.TrimSpace(match[1])))
		s.file.BuiltWith = cmp.Or(s.file.BuiltWith, string(bytes.TrimSpace(match[2])))
	} else if match := s.onload.FindSubmatch(text); match != nil {
		s.file.Version = cmp.Or(s.file.Version, string(bytes.TrimSpace(match[1])))
	}
}

// What of an ELF file tells which part of it is loaded (elf(5)): the header, and the program headers behind it.
const (
	elfMagic = "\x7fELF\x02\x01" // of 64 bits, least significant byte first
	// elfHead is how much of a file is looked at for that. Linkers put a dozen program headers right behind the header.
	elfHead = 4096
	// elfEntry is the size of a program header, elfLoad the type of one whose part is loaded.
	elfEntry, elfLoad = 56, 1
)

// loadedBytes is up to where a file is loaded by the dynamic linker. Behind that are symbols for debuggers, nine tenths of
// a library that has them. A file of which this cannot be told, such as the one that stands for a library in a snapshot,
// counts as a whole.
func loadedBytes(head []byte) int {
	const offsetAt, sizeAt, countAt, headerEnd = 32, 54, 56, 64
	if len(head) < headerEnd || !bytes.HasPrefix(head, []byte(elfMagic)) || binary.LittleEndian.Uint16(head[sizeAt:]) != elfEntry {
		return maxUserFile
	}
	entries := binary.LittleEndian.Uint64(head[offsetAt:])
	count := uint64(binary.LittleEndian.Uint16(head[countAt:]))
	if entries > uint64(len(head)) || entries+count*elfEntry > uint64(len(head)) {
		return maxUserFile
	}
	end := uint64(0)
	for i := range count {
		end = max(end, loadedEnd(head[entries+i*elfEntry:]))
	}
	if end == 0 || end > maxUserFile {
		return maxUserFile
	}
	return int(end)
}

// loadedEnd is where the part of a program header ends in the file; 0 for a part that is not loaded.
func loadedEnd(entry []byte) uint64 {
	const offsetAt, lengthAt = 8, 32
	if binary.LittleEndian.Uint32(entry) != elfLoad {
		return 0
	}
	offset, length := binary.LittleEndian.Uint64(entry[offsetAt:]), binary.LittleEndian.Uint64(entry[lengthAt:])
	if offset > maxUserFile || length > maxUserFile {
		return 2 * maxUserFile
	}
	return offset + length
}

// extract is a file that says of itself what this one says, for a snapshot.
func (f UserFile) extract() string {
	var text strings.Builder
	for _, digits := range f.Digits {
		text.WriteString(digits + "\x00")
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
