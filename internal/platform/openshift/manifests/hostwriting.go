// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
)

// unitFolder is where the machine-config operator puts units and their drop-ins.
const unitFolder = "/etc/systemd/system/"

// hostWriting is what the MachineConfig of a shape puts on its hosts, readable. What the other objects come to is left to those who merge them: the
// machine-config operator writes the kubelet's configuration, and the Node Tuning Operator TuneD's profile.
func hostWriting(shape fleet.Shape) (*rendering.HostWriting, error) {
	written := &rendering.HostWriting{PlanHash: shape.Hash, Nodes: shape.Nodes}
	var err error
	if written.KernelArguments, err = kernelArguments(shape.Plan.KernelArguments); err != nil {
		return nil, err
	}
	files, err := hostFiles(shape.Plan)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		written.Files = append(written.Files, rendering.WrittenFile{Path: file.Path, Mode: fmt.Sprintf("%04o", file.Mode), Content: file.Content})
	}
	for _, unit := range hostUnits(shape.Plan) {
		addUnit(written, &unit)
	}
	slices.SortStableFunc(written.Files, func(a, b rendering.WrittenFile) int { return cmp.Compare(a.Path, b.Path) })
	return written, nil
}

func addUnit(written *rendering.HostWriting, unit *plan.Unit) {
	const mode = "0644"
	switch {
	case unit.Masked:
		written.Links = append(written.Links, rendering.WrittenLink{Path: unitFolder + unit.Name, Target: "/dev/null"})
	case unit.Content != "":
		written.Files = append(written.Files, rendering.WrittenFile{Path: unitFolder + unit.Name, Mode: mode, Content: unit.Content})
	}
	if unit.Enabled {
		written.EnabledUnits = append(written.EnabledUnits, unit.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(unit.DropIns)) {
		written.Files = append(written.Files, rendering.WrittenFile{Path: unitFolder + unit.Name + ".d/" + name, Mode: mode, Content: unit.DropIns[name]})
	}
}
