// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

const (
	// smallFile bounds the files that hold one value or a page of text.
	smallFile = 1 << 20
	// mediumFile bounds the files that grow with the number of CPUs.
	mediumFile = 16 << 20
	// largeFile bounds /proc/interrupts, which grows with CPUs and devices alike: 56 MB on a host with 1024
	// CPUs and 5000 interrupts.
	largeFile = 64 << 20
	// longLine bounds one line of a text, such as the flags of a processor.
	longLine = 64 << 10

	// maxCPUs is the number of CPUs of the largest kernel, see cpus.MaxCPU.
	maxCPUs = cpus.MaxCPU + 1
	// maxNUMANodes is MAX_NUMNODES of the largest kernel (CONFIG_NODES_SHIFT is at most 10).
	maxNUMANodes = 1024
	// maxEntries bounds every other directory: interrupts, PCI devices, interfaces, processes.
	maxEntries = 1 << 16
)

// reader reads the files of one host for one Read. Files on which everything hangs end the Read when they
// make no sense: fail keeps the first such error, and from then on every read fails at once, so that the
// sections need not check.
//
// The parsers are our own because those of github.com/prometheus/procfs open files by their path: they can
// be rooted neither in an os.Root nor in an archive, and follow links out of either.
type reader struct {
	walk     *walk
	canceled func() error
	err      error
	// taken records what is read; nil unless a snapshot is being made.
	taken *recording
	// pci are the folders of all PCI devices by PCI address, nics those of the NICs among them, once the NICs have been read.
	pci, nics map[string]string
	// unreadable are the files that could not be read when the snapshot at hand was made, missing the settings that its
	// host did not have.
	unreadable map[string]string
	missing    []string
	// complete reports whether what is not here is not on the host: of a running host, and of a copy that says so.
	complete bool
	// live reports whether this is a running kernel and not a copy of its files.
	live bool
	// undisturbed are CPUs that must not be interrupted for a reading.
	undisturbed cpus.Set
	// kubelet is the PID of a kubelet, 0 where none was seen; processesSeen tells that all processes have been looked at.
	kubelet       int
	processesSeen bool
	// sets keeps the CPU lists that were parsed: of the thousands that a host shows, few differ.
	sets map[string]cpus.Set
}

func newReader(ctx context.Context, v view, taken *recording) *reader {
	r := &reader{walk: newWalk(v), canceled: ctx.Err, taken: taken, sets: map[string]cpus.Set{}}
	r.live = r.isLive()
	r.complete = r.live
	if !r.live {
		index := r.readIndex()
		r.unreadable, r.missing, r.complete = index.Unreadable, index.Missing, index.Complete
	}
	return r
}

// isLive recognises procfs, which gives the size of files that have content as 0. A copy cannot.
func (r *reader) isLive() bool {
	const always = "proc/version"
	found, err := r.walk.resolve(always)
	if err != nil || found.node.size > 0 {
		return false
	}
	content, err := r.peek("/"+always, smallFile)
	return err == nil && content != ""
}

// fail ends the Read with an error about a file.
func (r *reader) fail(file string, err error) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: %w", file, err)
	}
}

// broken returns why reading must end: an earlier failure or a canceled context.
func (r *reader) broken() error {
	if r.err == nil {
		r.err = r.canceled()
	}
	return r.err
}

// regular finds a regular file: its name without links.
func (r *reader) regular(file string) (string, error) {
	if err := r.broken(); err != nil {
		return "", err
	}
	if reason, ok := r.unreadable[file]; ok {
		return "", unreadableError{reason}
	}
	return r.walk.regular(relative(file))
}

// peek returns the content of a regular file and leaves no trace in a snapshot.
func (r *reader) peek(file string, limit int) (string, error) {
	name, err := r.regular(file)
	if err != nil {
		return "", err
	}
	return r.walk.view.readFile(name, limit)
}

// stream writes the content of a regular file to a writer piece by piece, so that it need not be held as a whole,
// which only a snapshot does.
func (r *reader) stream(file string, limit int, to io.Writer) error {
	if r.taken != nil {
		content, err := r.content(file, limit)
		if err == nil {
			_, err = io.WriteString(to, content)
		}
		return err
	}
	name, err := r.regular(file)
	if err != nil {
		return err
	}
	return r.walk.view.copyFile(name, limit, to)
}

// content returns what facts are made of in a regular file, see essential.
func (r *reader) content(file string, limit int) (string, error) {
	content, err := r.peek(file, limit)
	content = essential(file, content)
	r.taken.file(file, content, err)
	return content, err
}

// text returns the content of a text file without surrounding white space.
func (r *reader) text(file string) (string, error) {
	content, err := r.content(file, smallFile)
	if err != nil {
		return "", err
	}
	return plainText(content)
}

// plainText trims a text and refuses binary content. Zeros at the end are no content: Linux 5.15 appended
// one to the CPU lists of NUMA nodes.
func plainText(content string) (string, error) {
	content = strings.TrimRight(content, "\x00")
	if !utf8.ValidString(content) || strings.ContainsFunc(content, isBinary) {
		return "", errors.New("binary content")
	}
	return strings.TrimSpace(content), nil
}

func isBinary(c rune) bool { return unicode.IsControl(c) && !unicode.IsSpace(c) }

// link returns the target of a symbolic link as it is written.
func (r *reader) link(file string) (string, error) {
	target, err := r.readLink(file)
	r.taken.link(file, err)
	return target, err
}

func (r *reader) readLink(file string) (string, error) {
	if err := r.broken(); err != nil {
		return "", err
	}
	if reason, ok := r.unreadable[file]; ok {
		return "", unreadableError{reason}
	}
	dir, err := r.walk.parentOf(relative(file))
	if err != nil {
		return "", err
	}
	found, err := r.walk.view.lstat(join(dir, path.Base(file)))
	if err != nil {
		return "", err
	}
	if found.kind != kindLink {
		return "", errNotLink
	}
	return found.target, nil
}

// directory returns where a directory really is, as an absolute path of the host.
func (r *reader) directory(dir string) (string, error) {
	if err := r.broken(); err != nil {
		return "", err
	}
	found, err := r.walk.folder(relative(dir))
	if err != nil {
		return "", err
	}
	r.taken.directory(dir)
	return path.Join("/", found), nil
}

// folder tells why a directory cannot be looked into; a snapshot records that, or that the directory is there.
func (r *reader) folder(dir string) error {
	if reason, ok := r.unreadable[dir]; ok {
		return unreadableError{reason}
	}
	_, err := r.directory(dir)
	if err != nil {
		r.taken.file(dir, "", err)
	}
	return err
}

// list returns the wanted names of a directory in ascending order.
func (r *reader) list(dir string, wanted func(entry) bool) ([]string, error) {
	names, err := r.peekList(dir, func(e entry) bool { return e.kind != kindDevice && wanted(e) })
	r.taken.list(dir, names, err)
	return names, err
}

// peekList lists like list and leaves no trace in a snapshot.
func (r *reader) peekList(dir string, wanted func(entry) bool) ([]string, error) {
	if err := r.broken(); err != nil {
		return nil, err
	}
	if reason, ok := r.unreadable[dir]; ok {
		return nil, unreadableError{reason}
	}
	entries, err := r.walk.list(relative(dir), maxEntries)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if _, err := plainText(e.name); err == nil && e.kind != kindOther && wanted(e) {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// members lists a directory on which the structure of the host hangs: one with more names than any host
// has ends the Read; one that is missing or closed to us has none.
func (r *reader) members(dir string, limit int, wanted func(entry) bool) []string {
	names, err := r.list(dir, wanted)
	if err == nil && len(names) > limit {
		err = tooManyError{limit}
	}
	if err != nil && !isAbsent(err) {
		r.fail(dir, err)
	}
	return names
}

// numbered lists the numbers of the names of the form prefix, number, suffix, in ascending order.
func (r *reader) numbered(dir, prefix, suffix string, limit int) []int {
	return numbersIn(r.members(dir, limit, numberedBy(prefix, suffix)), prefix, suffix)
}

// numberedBy accepts names of the form prefix, number, suffix.
func numberedBy(prefix, suffix string) func(entry) bool {
	return func(e entry) bool {
		_, ok := numberIn(e.name, prefix, suffix)
		return ok
	}
}

// each turns every number into a value, in their order.
func each[T any](numbers []int, make func(number int) T) []T {
	values := slices.Grow([]T(nil), len(numbers))
	for _, number := range numbers {
		values = append(values, make(number))
	}
	return values
}

// numbersIn returns the numbers of names that numberIn accepts, in ascending order.
func numbersIn(names []string, prefix, suffix string) []int {
	numbers := make([]int, len(names))
	for i, name := range names {
		numbers[i], _ = numberIn(name, prefix, suffix)
	}
	slices.Sort(numbers)
	return numbers
}

// numberIn takes the number out of a name such as cpu12 or hugepages-2048kB.
func numberIn(name, prefix, suffix string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok {
		return 0, false
	}
	digits, ok = strings.CutSuffix(digits, suffix)
	if !ok {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 31)
	return int(number), err == nil && strconv.FormatUint(number, 10) == digits
}

// isAbsent tells an error that leaves a fact absent from one that shows a damaged or hostile host.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, errHidden)
}

// relative makes a path of the host relative to the root.
func relative(file string) string {
	if name := strings.TrimPrefix(path.Clean(file), "/"); name != "" {
		return name
	}
	return "."
}

// source is one file that may hold a value, and how the value is written there.
type source[T any] struct {
	file  string
	parse func(text string) (T, error)
}

// read reads one value from the first of several files that is there.
func read[T any](r *reader, sources ...source[T]) Fact[T] {
	fact, _ := tryRead(r, sources...)
	return fact
}

// demand reads a value on which the structure of the host hangs: a file that is there and makes no sense
// ends the Read.
func demand[T any](r *reader, sources ...source[T]) Fact[T] {
	fact, err := tryRead(r, sources...)
	if err != nil && !isAbsent(err) {
		r.fail(fact.Source, err)
	}
	return fact
}

func tryRead[T any](r *reader, sources ...source[T]) (Fact[T], error) {
	var missing error
	for _, s := range sources {
		text, err := r.text(s.file)
		if errors.Is(err, fs.ErrNotExist) {
			missing = err
			continue
		}
		if err != nil {
			return Absent[T](s.file, reasonOf(err)), err
		}
		value, err := s.parse(text)
		if err != nil {
			return Absent[T](s.file, err.Error()), err
		}
		return Known(value, s.file), nil
	}
	return Absent[T](sources[0].file, reasonMissing), missing
}

// parseSet reads a CPU list.
func (r *reader) parseSet(list string) (cpus.Set, error) { return r.remember(list, cpus.Parse) }

// parseMask reads a CPU mask.
func (r *reader) parseMask(mask string) (cpus.Set, error) {
	return r.remember("mask "+mask, cpus.ParseMask)
}

func (r *reader) remember(text string, parse func(string) (cpus.Set, error)) (cpus.Set, error) {
	if set, ok := r.sets[text]; ok {
		return set, nil
	}
	set, err := parse(strings.TrimPrefix(text, "mask "))
	if err == nil && len(text) <= smallFile/1024 {
		r.sets[text] = set
	}
	return set, err
}

// set names the list of CPUs in a file and the mask in another, which older kernels have instead.
func (r *reader) set(list, mask string) []source[cpus.Set] {
	return []source[cpus.Set]{{list, r.parseSet}, {mask, r.parseMask}}
}

// The notations that single values have, as facts.

func (r *reader) textFact(file string) Fact[string] {
	return read(r, source[string]{file, func(text string) (string, error) { return text, nil }})
}

// nameFact is a text that says nothing if it is empty.
func (r *reader) nameFact(file string) Fact[string] { return read(r, source[string]{file, parseName}) }

func (r *reader) numberFact(file string) Fact[int64] {
	return read(r, source[int64]{file, parseNumber})
}

func (r *reader) countFact(file string) Fact[uint64] {
	return read(r, source[uint64]{file, parseCount})
}

func (r *reader) identifierFact(file string) Fact[int] {
	return read(r, source[int]{file, parseIdentifier})
}

func (r *reader) switchFact(file string) Fact[bool] { return read(r, source[bool]{file, parseSwitch}) }
