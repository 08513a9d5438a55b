// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package cdi writes specifications of the Container Device Interface, by which a container runtime gives devices and
// mounts to a container. The device plugin and the DRA driver describe NICs in the same words.
package cdi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// Kind is the CDI kind of a resource. Both of its parts must begin with a letter there, which those of a resource need
// not (container-device-interface, internal/validation).
func Kind(resource string) string {
	domain, name, _ := strings.Cut(resource, "/")
	return letterFirst(domain) + "/" + letterFirst(name)
}

func letterFirst(text string) string {
	if text != "" && text[0] >= 'a' && text[0] <= 'z' {
		return text
	}
	return "nic-" + text
}

// Edits are edits in the words of CDI, without their variables: those of the device plugin depend on all units of a
// container and are part of its answer to Allocate.
func Edits(edits bypass.Edits) specs.ContainerEdits {
	var converted specs.ContainerEdits
	for _, node := range edits.DeviceNodes {
		converted.DeviceNodes = append(converted.DeviceNodes, &specs.DeviceNode{Path: node.Path, Permissions: node.Permissions})
	}
	for _, mount := range edits.Mounts {
		converted.Mounts = append(converted.Mounts, &specs.Mount{
			HostPath: mount.HostPath, ContainerPath: mount.ContainerPath, Options: []string{"ro", "nosuid", "nodev", "bind"},
		})
	}
	return converted
}

// Encode gives a specification the lowest version that has all that it uses, so that old runtimes take it, too, and
// returns the content of its file. Of says in an error what the specification is of.
func Encode(spec *specs.Spec, of string) ([]byte, error) {
	version, err := specs.MinimumRequiredVersion(spec)
	if err != nil {
		return nil, fmt.Errorf("choosing the version of the CDI specification of %s: %w", of, err)
	}
	spec.Version = version
	content, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the CDI specification of %s: %w", of, err)
	}
	return append(content, '\n'), nil
}

// Replace writes a file in one step, and makes its folder where that is missing. Runtimes read files that end in .json
// and .yaml only, so they never see the one that is being written.
func Replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating the folder of CDI specifications: %w", err)
	}
	// Runtimes may run as another user than root.
	if err := atomicfile.Replace(path, content, 0o644); err != nil {
		return fmt.Errorf("replacing a CDI specification: %w", err)
	}
	return nil
}

// RemoveLeftovers removes what a process that was killed within Replace has left of the files whose names match a pattern
// of filepath.Match.
func RemoveLeftovers(folder, pattern string) error {
	if err := atomicfile.RemoveLeftovers(folder, pattern); err != nil {
		return fmt.Errorf("cleaning up the folder of CDI specifications: %w", err)
	}
	return nil
}

// Remove removes the file of a specification, if there is one.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing the CDI specification %s: %w", path, err)
	}
	return nil
}
