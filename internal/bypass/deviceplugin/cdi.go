// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	specs "tags.cncf.io/container-device-interface/specs-go"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/cdi"
)

// specFolder is the folder of CDI specifications.
type specFolder struct {
	path  string
	log   logr.Logger
	mutex sync.Mutex
	// name and content are the specification that was written last; written is its file.
	name    string
	content []byte
	written fs.FileInfo
}

// specName is the name of the file. It follows from the resource, not from the pool, because two files with the same
// device make that device unusable: the pool that takes a resource over must replace the file of the one before.
func specName(resource string) string {
	return strings.ReplaceAll(cdi.Kind(resource), "/", "-") + ".json"
}

// write writes the specification of an inventory unless it is there. A resource with nothing to give has none: a
// specification without devices is invalid.
func (f *specFolder) write(v *inventory) error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	name := specName(v.resource)
	if f.name != name {
		if err := cdi.RemoveLeftovers(f.path, name); err != nil {
			f.log.Error(err, "Files of a process that was killed stay")
		}
	}
	spec := newSpec(v)
	if len(spec.Devices) == 0 {
		f.name, f.content, f.written = name, nil, nil
		return cdi.Remove(filepath.Join(f.path, f.name))
	}
	content, err := cdi.Encode(spec, v.resource)
	if err != nil {
		return err
	}
	if f.name != name || !bytes.Equal(f.content, content) {
		f.name, f.content, f.written = name, content, nil
	}
	return f.restore()
}

// ensure writes the specification again if it is no longer there as it was written last.
func (f *specFolder) ensure() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.content == nil {
		return nil
	}
	return f.restore()
}

func (f *specFolder) restore() error {
	path := filepath.Join(f.path, f.name)
	if f.intact(path) {
		return nil
	}
	// The file of the process before this one stays if it is right: a runtime reads them all again for a new one.
	if found, err := os.ReadFile(path); err != nil || !bytes.Equal(found, f.content) {
		if err := cdi.Replace(path, f.content); err != nil {
			return err
		}
	}
	var err error
	f.written, err = os.Stat(path)
	if err != nil {
		return fmt.Errorf("writing the CDI specification %s: %w", path, err)
	}
	return nil
}

// intact reports whether the file is the one that was written, without reading it.
func (f *specFolder) intact(path string) bool {
	found, err := os.Stat(path)
	return err == nil && f.written != nil && os.SameFile(f.written, found) && found.Size() == f.written.Size() &&
		found.ModTime().Equal(f.written.ModTime())
}

// newSpec describes every unit that has something to give. Mounts that all NICs have in common stand once for all: a
// container gets them with the first of its units. Device files stand at each unit, because one without any edit makes
// the whole specification invalid (container-device-interface, pkg/cdi/device.go, validate).
func newSpec(v *inventory) *specs.Spec {
	perNIC := map[string]specs.ContainerEdits{}
	for nic, given := range v.perNIC {
		if v.isDescribed(nic) {
			perNIC[nic] = cdi.Edits(given)
		}
	}
	shared := commonMounts(perNIC)
	spec := &specs.Spec{Kind: cdi.Kind(v.resource), ContainerEdits: specs.ContainerEdits{Mounts: shared}}
	for nic, edits := range perNIC {
		if len(edits.DeviceNodes) > 0 {
			edits.Mounts = slices.DeleteFunc(edits.Mounts, func(mount *specs.Mount) bool { return hasMount(shared, mount) })
			perNIC[nic] = edits
		}
	}
	for _, unit := range v.units {
		if edits, any := perNIC[unit.nic]; any {
			spec.Devices = append(spec.Devices, specs.Device{Name: unit.id, ContainerEdits: edits})
		}
	}
	return spec
}

// isDescribed reports whether the units of a NIC are in the specification. A runtime makes no container with a device that
// is in none.
func (v *inventory) isDescribed(nic string) bool {
	given := v.perNIC[nic]
	return len(given.DeviceNodes)+len(given.Mounts) > 0
}

// commonMounts are those that all NICs have.
func commonMounts(perNIC map[string]specs.ContainerEdits) []*specs.Mount {
	var shared []*specs.Mount
	begun := false
	for _, edits := range perNIC {
		if !begun {
			shared, begun = slices.Clone(edits.Mounts), true
			continue
		}
		shared = slices.DeleteFunc(shared, func(mount *specs.Mount) bool { return !hasMount(edits.Mounts, mount) })
	}
	return shared
}

func hasMount(mounts []*specs.Mount, wanted *specs.Mount) bool {
	return slices.ContainsFunc(mounts, func(mount *specs.Mount) bool {
		return mount.HostPath == wanted.HostPath && mount.ContainerPath == wanted.ContainerPath
	})
}
