// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// foreign is what is not made of Go: files for an image, and what a bill of materials says of them.
type foreign struct {
	files []file
	parts []*v2_3.Package
}

// target is an architecture as Go names it, in the words of others.
type target struct {
	// triple is the prefix of gcc for it, and the folder of Debian's libraries.
	triple string
	// librarySum is the SHA-256 sum of Debian's package with the C library.
	librarySum string
}

// library and libraryVersion are Debian's package with the C library, of Debian 12. Mirrors keep the newest version alone: when Debian has
// mended the library, hack/debian-package.sh says which version there is, and this and the sums are to follow.
const (
	library        = "libc6"
	libraryVersion = "2.36-9+deb12u14"
)

func targetOf(architecture string) (target, error) {
	switch architecture {
	case "amd64":
		return target{"x86_64-linux-gnu", "ba4f88f73dbc3ae9055f3c20f4523bfdbaf1ad13ff95e258924f77d20b4fbedf"}, nil
	case "arm64":
		return target{"aarch64-linux-gnu", "01f4330719fd4f65580e16ea5a0527f372fca750e8f588d26deaf09f2d3b1cf4"}, nil
	}
	return target{}, fmt.Errorf("lowlatency-traffic is not built for %s", architecture)
}

// trafficProgram builds lowlatency-traffic into a file.
func trafficProgram(ctx context.Context, s source, architecture, into string) (foreign, error) {
	on, err := targetOf(architecture)
	if err != nil {
		return foreign{}, err
	}
	compiler := on.triple + "-gcc"
	if _, err := exec.LookPath(compiler); err != nil {
		return foreign{}, fmt.Errorf("building lowlatency-traffic for %s: %w; make packages installs it on Debian", architecture, err)
	}
	built, err := output(ctx, s.folder, []string{"CC=" + compiler}, "hack/traffic.sh")
	if err != nil {
		return foreign{}, err
	}
	about, err := output(ctx, s.folder, nil, compiler, "--version")
	if err != nil {
		return foreign{}, err
	}
	content, err := os.ReadFile(strings.TrimSpace(built))
	if err != nil {
		return foreign{}, err
	}
	if err := os.WriteFile(into, content, 0o755); err != nil { //nolint:gosec // A program.
		return foreign{}, err
	}
	version, _, _ := strings.Cut(about, "\n")
	return foreign{
		files: []file{{path: trafficImage, from: into, mode: 0o755}},
		parts: []*v2_3.Package{ownProgram(s, trafficImage, content, version)},
	}, nil
}

// trafficWithLibrary is lowlatency-traffic with the C library that it is linked to.
func trafficWithLibrary(ctx context.Context, s source, architecture, folder string) (foreign, error) {
	program, err := trafficProgram(ctx, s, architecture, filepath.Join(folder, trafficImage))
	if err != nil {
		return foreign{}, err
	}
	on, err := targetOf(architecture)
	if err != nil {
		return foreign{}, err
	}
	text, err := output(ctx, s.folder, nil, "hack/debian-package.sh", library, libraryVersion, architecture, on.librarySum)
	if err != nil {
		return foreign{}, err
	}
	archive := strings.TrimSpace(text)
	files, err := unpackLibrary(ctx, archive, on.triple, filepath.Join(folder, library))
	if err != nil {
		return foreign{}, err
	}
	// Scanners of images read here what Debian's packages are in one without Debian's package manager, as in "distroless" images.
	control, err := output(ctx, s.folder, nil, "dpkg-deb", "--field", archive)
	if err != nil {
		return foreign{}, err
	}
	status := filepath.Join(folder, library+".control")
	if err := os.WriteFile(status, []byte(control), 0o600); err != nil {
		return foreign{}, err
	}
	files = append(files, file{path: "var/lib/dpkg/status.d/" + library, from: status, mode: 0o644})
	return foreign{files: append(program.files, files...), parts: append(program.parts, libraryPart(on, architecture))}, nil
}

// libraryPart is the C library in a bill of materials.
func libraryPart(on target, architecture string) *v2_3.Package {
	debian := part("debian-"+library, library, libraryVersion)
	debian.PackageChecksums = []common.Checksum{{Algorithm: common.SHA256, Value: on.librarySum}}
	debian.PackageLicenseDeclared = "LGPL-2.1-or-later"
	debian.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: "Debian"}
	debian.PackageExternalReferences = []*v2_3.PackageExternalReference{{
		Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
		Locator: "pkg:deb/debian/" + library + "@" + libraryVersion + "?arch=" + architecture + "&distro=debian-12",
	}}
	return debian
}

// unpackLibrary takes the shared libraries and the licence out of Debian's package, into a folder; what converts character sets is left.
func unpackLibrary(ctx context.Context, archive, triple, folder string) ([]file, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	text, err := output(ctx, folder, nil, "dpkg-deb", "--fsys-tarfile", archive)
	if err != nil {
		return nil, err
	}
	var files []file
	for reader := tar.NewReader(strings.NewReader(text)); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", archive, err)
		}
		name := strings.TrimPrefix(header.Name, "./")
		if !isOfLibrary(name, triple) {
			continue
		}
		switch header.Typeflag {
		case tar.TypeSymlink:
			files = append(files, file{path: name, link: header.Linkname})
		case tar.TypeReg:
			from := filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
			content, err := io.ReadAll(reader)
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", archive, err)
			}
			if err := os.WriteFile(from, content, 0o600); err != nil {
				return nil, err
			}
			files = append(files, file{path: name, from: from, mode: header.Mode})
		}
	}
}

// isOfLibrary reports whether a file of the package belongs into the image: libraries, the dynamic linker where programs name it, and the
// licence.
func isOfLibrary(name, triple string) bool {
	switch path.Dir(name) {
	case "lib/" + triple, "usr/lib/" + triple, "lib", "lib64":
		return path.Base(name) != triple && strings.Contains(path.Base(name), ".so")
	}
	return name == "usr/share/doc/"+library+"/copyright"
}
