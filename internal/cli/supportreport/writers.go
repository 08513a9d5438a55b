// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package supportreport

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	// Nobody but the user who made it may read a report.
	fileMode   = 0o600
	folderMode = 0o700
)

// Archive writes a report as a .tar.gz.
type Archive struct {
	packed  *gzip.Writer
	archive *tar.Writer
	made    time.Time
}

// NewArchive begins an archive. The caller must Close it.
func NewArchive(to io.Writer, made time.Time) *Archive {
	packed := gzip.NewWriter(to)
	return &Archive{packed: packed, archive: tar.NewWriter(packed), made: made}
}

// Add implements Writer.
func (a *Archive) Add(name string, content []byte) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: fileMode, ModTime: a.made.Truncate(time.Second)}
	if err := a.archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := a.archive.Write(content)
	return err
}

// Close ends the archive.
func (a *Archive) Close() error { return errors.Join(a.archive.Close(), a.packed.Close()) }

// Directory writes a report as files below a folder that exists.
type Directory struct{ root *os.Root }

// NewDirectory prepares a folder, which must not hold a report. The caller must Close it.
func NewDirectory(folder string) (*Directory, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("writing the report: %w", err)
	}
	// All files are below a folder that is made now, so that no link of somebody else can be among them.
	if err := root.Mkdir(Folder, folderMode); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is there already", filepath.Join(folder, Folder))
		}
		return nil, errors.Join(fmt.Errorf("writing the report: %w", err), root.Close())
	}
	return &Directory{root: root}, nil
}

// Add implements Writer.
func (d *Directory) Add(name string, content []byte) error {
	if err := d.root.MkdirAll(filepath.Dir(name), folderMode); err != nil {
		return err
	}
	file, err := d.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}

// Close ends the writing.
func (d *Directory) Close() error { return d.root.Close() }
