// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// archiveLimits bound what an archive may cost, whoever made it.
type archiveLimits struct {
	// stream is the length of the archive once it is unpacked.
	stream int64
	// kept is the sum of all contents that are kept in memory.
	kept int
	// file is the length beyond which the content of one file is not kept.
	file int
	// nodes is the number of files, directories and links, those on the way to others included.
	nodes int
	// name is the length of one name or link target: PATH_MAX of Linux.
	name int
}

// defaultArchiveLimits leave room for a full copy of /proc and /sys of the largest hosts: a dump of 128
// CPUs has 10,000 entries and 40 MB.
func defaultArchiveLimits() archiveLimits {
	return archiveLimits{stream: 512 << 20, kept: 256 << 20, file: largeFile, nodes: 300_000, name: 4096}
}

// readArchive reads a tar archive, compressed or not.
func readArchive(source io.Reader, limits archiveLimits) (*memoryTree, error) {
	unpacked, err := decompress(bufio.NewReader(source))
	if err != nil {
		return nil, err
	}
	stream := &io.LimitedReader{R: unpacked, N: limits.stream}
	archive := archiveReader{archive: tar.NewReader(stream), tree: newMemoryTree(), limits: limits}
	for err == nil {
		err = archive.next()
	}
	if errors.Is(err, io.EOF) {
		// What follows the last entry holds the checksum of the compression.
		_, err = io.Copy(io.Discard, stream)
	}
	if stream.N <= 0 {
		return nil, tooLargeError{int(limits.stream)}
	}
	if err != nil {
		return nil, fmt.Errorf("damaged archive: %w", err)
	}
	return archive.tree, nil
}

// decompress recognises the compression by the first bytes, as file(1) does; names lie.
func decompress(source *bufio.Reader) (io.Reader, error) {
	const tarMagicOffset = 257
	head, err := source.Peek(tarMagicOffset + len("ustar"))
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		unpacked, err := gzip.NewReader(source)
		if err != nil {
			return nil, fmt.Errorf("not a sound gzip file: %w", err)
		}
		return unpacked, nil
	case bytes.HasPrefix(head, []byte("BZh")):
		return bzip2.NewReader(source), nil
	case bytes.HasSuffix(head, []byte("ustar")) && err == nil:
		return source, nil
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	return nil, errors.New("neither a directory nor a tar archive, plain or compressed with gzip or bzip2")
}

// archiveReader fills a tree from an archive.
type archiveReader struct {
	archive *tar.Reader
	tree    *memoryTree
	// limits lose what was used of them.
	limits archiveLimits
	buffer bytes.Buffer
}

// next reads one entry; io.EOF is the end.
func (a *archiveReader) next() error {
	header, err := a.archive.Next()
	if err != nil {
		return err
	}
	name, err := a.cleanName(header.Name)
	if err != nil {
		return err
	}
	added, err := a.content(header)
	if err != nil {
		return fmt.Errorf("%s: %w", abbreviate(name), err)
	}
	if added == nil {
		return nil
	}
	if err := a.tree.add(name, added); err != nil {
		return err
	}
	if len(a.tree.nodes) > a.limits.nodes {
		return tooManyError{a.limits.nodes}
	}
	return nil
}

// cleanName makes the name of an entry relative to the root, and refuses one that leaves it.
func (a *archiveReader) cleanName(name string) (string, error) {
	if len(name) > a.limits.name {
		return "", fmt.Errorf("%s: the name is %w", abbreviate(name), tooLargeError{a.limits.name})
	}
	for component := range strings.SplitSeq(name, "/") {
		if component == ".." {
			return "", fmt.Errorf("%s: the name leads out of the archive", abbreviate(name))
		}
	}
	return path.Clean(strings.TrimLeft(name, "/")), nil
}

// content turns an entry into a node; nil for entries that describe no file.
func (a *archiveReader) content(header *tar.Header) (*memoryNode, error) {
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeGNUSparse:
		return a.file(header)
	case tar.TypeDir:
		return &memoryNode{node: node{kind: kindDirectory}}, nil
	case tar.TypeSymlink:
		if len(header.Linkname) > a.limits.name {
			return nil, fmt.Errorf("the link target is %w", tooLargeError{a.limits.name})
		}
		return &memoryNode{node: node{kind: kindLink, target: header.Linkname}}, nil
	case tar.TypeLink:
		return a.hardLink(header.Linkname)
	case tar.TypeXGlobalHeader:
		return nil, nil
	case tar.TypeChar:
		return &memoryNode{node: node{
			kind: kindDevice, permissions: permissionsOf(header), major: uint32(header.Devmajor), minor: uint32(header.Devminor),
		}}, nil
	}
	return &memoryNode{node: node{kind: kindOther}}, nil
}

// file reads the content of a file, if it is not longer than any file that is ever read.
func (a *archiveReader) file(header *tar.Header) (*memoryNode, error) {
	file := &memoryNode{node: node{kind: kindFile, size: header.Size, permissions: permissionsOf(header)}}
	if header.Size > int64(a.limits.file) {
		file.oversized = a.limits.file
		return file, nil
	}
	if header.Size > int64(a.limits.kept) {
		return nil, errors.New("the archive holds more than can be kept in memory")
	}
	a.buffer.Reset()
	if _, err := a.buffer.ReadFrom(a.archive); err != nil {
		return nil, err
	}
	a.limits.kept -= a.buffer.Len()
	file.content = a.buffer.String()
	return file, nil
}

func permissionsOf(header *tar.Header) uint32 { return uint32(header.FileInfo().Mode().Perm()) }

// hardLink finds the file that an earlier entry brought.
func (a *archiveReader) hardLink(target string) (*memoryNode, error) {
	name, err := a.cleanName(target)
	if err != nil {
		return nil, err
	}
	existing, ok := a.tree.nodes[name]
	if !ok || existing.kind == kindDirectory {
		return nil, fmt.Errorf("hard link to %s, which the archive does not hold", abbreviate(name))
	}
	return existing, nil
}

// abbreviate keeps names and contents short enough for a message.
func abbreviate(text string) string {
	return shorten.Sentence(text, 80)
}
