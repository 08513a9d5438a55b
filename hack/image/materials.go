// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/common"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
)

// unsaid is what SPDX has for what nobody has looked into.
const unsaid = "NOASSERTION"

// materialsOf lists what the programs of something named are made of, as the compiler has recorded it in them, with the licences that their
// modules come with, and what is beside them that is not of Go: SPDX 2.3 in JSON.
func materialsOf(s source, name string, platform v1.Platform, built []file, known []licences.Module, beside []*v2_3.Package) ([]byte, error) {
	terms := map[string]string{}
	for _, module := range known {
		terms[module.Path] = strings.Join(module.Licences, " AND ")
	}
	document := &v2_3.Document{
		SPDXVersion: v2_3.Version, DataLicense: v2_3.DataLicense, SPDXIdentifier: "DOCUMENT",
		DocumentName:      fmt.Sprintf("%s %s for %s", name, s.version, platform),
		DocumentNamespace: fmt.Sprintf("https://github.com/lowlatency-dev/lowlatency-operator/spdx/%s/%s/%s", s.revision, name, platform),
		CreationInfo: &v2_3.CreationInfo{
			Creators: []common.Creator{{CreatorType: "Tool", Creator: "lowlatency-operator/hack/image"}},
			Created:  s.committed.Format("2006-01-02T15:04:05Z"),
		},
	}
	modules := map[string]*v2_3.Package{}
	for _, f := range built {
		program, parts, err := programMaterials(s, f, terms)
		if err != nil {
			return nil, err
		}
		document.Packages = append(document.Packages, program)
		document.Relationships = append(document.Relationships, relation("DOCUMENT", "DESCRIBES", program.PackageSPDXIdentifier))
		for _, id := range slices.Sorted(maps.Keys(parts)) {
			modules[id] = parts[id]
			document.Relationships = append(document.Relationships,
				relation(program.PackageSPDXIdentifier, "CONTAINS", parts[id].PackageSPDXIdentifier))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(modules)) {
		document.Packages = append(document.Packages, modules[id])
	}
	for _, one := range beside {
		document.Packages = append(document.Packages, one)
		document.Relationships = append(document.Relationships, relation("DOCUMENT", "DESCRIBES", one.PackageSPDXIdentifier))
	}
	var text bytes.Buffer
	if err := json.Write(document, &text, json.Indent("  ")); err != nil {
		return nil, fmt.Errorf("printing the bill of materials: %w", err)
	}
	return text.Bytes(), nil
}

// programMaterials are a program, and the modules in it by their identifiers. The terms are the licences of modules by path.
func programMaterials(s source, f file, terms map[string]string) (*v2_3.Package, map[string]*v2_3.Package, error) {
	content, err := os.ReadFile(f.from)
	if err != nil {
		return nil, nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, nil, fmt.Errorf("reading what %s was built from: %w", f.path, err)
	}
	program := ownProgram(s, f.path, content, info.GoVersion)
	parts := map[string]*v2_3.Package{}
	for _, module := range append([]*debug.Module{{Path: "stdlib", Version: info.GoVersion[len("go"):]}}, info.Deps...) {
		if module.Replace != nil {
			module = module.Replace
		}
		id := "module-" + module.Path + "-" + module.Version
		parts[id] = part(id, module.Path, module.Version)
		if licence, ok := terms[module.Path]; ok {
			parts[id].PackageLicenseConcluded, parts[id].PackageLicenseDeclared = licence, licence
		}
		parts[id].PackageExternalReferences = []*v2_3.PackageExternalReference{{
			Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL,
			Locator: "pkg:golang/" + module.Path + "@" + module.Version,
		}}
	}
	return program, parts, nil
}

// ownProgram is a program of this repository, with its content and what has compiled it.
func ownProgram(s source, path string, content []byte, compiler string) *v2_3.Package {
	name := strings.TrimSuffix(path, ".exe")
	program := part("program-"+name, name, s.version)
	program.PackageFileName = "/" + path
	program.PackageLicenseDeclared = "Apache-2.0"
	program.PrimaryPackagePurpose = "APPLICATION"
	program.PackageChecksums = checksum(content)
	program.PackageSourceInfo = "built from commit " + s.revision + " by " + compiler
	return program
}

func checksum(content []byte) []common.Checksum {
	sum := sha256.Sum256(content)
	return []common.Checksum{{Algorithm: common.SHA256, Value: hex.EncodeToString(sum[:])}}
}

func part(id, name, version string) *v2_3.Package {
	return &v2_3.Package{
		PackageName: name, PackageSPDXIdentifier: identifier(id), PackageVersion: version,
		PackageDownloadLocation: unsaid, PackageLicenseConcluded: unsaid, PackageLicenseDeclared: unsaid, PackageCopyrightText: unsaid,
	}
}

// notInIdentifiers are the characters that SPDX has not in identifiers (SPDX 2.3, section 7.2).
var notInIdentifiers = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func identifier(text string) common.ElementID {
	return common.ElementID(notInIdentifiers.ReplaceAllString(text, "-"))
}

func relation(from common.ElementID, kind string, to common.ElementID) *v2_3.Relationship {
	return &v2_3.Relationship{
		RefA: common.MakeDocElementID("", string(from)), Relationship: kind, RefB: common.MakeDocElementID("", string(to)),
	}
}
