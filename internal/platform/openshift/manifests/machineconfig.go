// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_2"
	"github.com/coreos/ignition/v2/config/v3_2/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
)

// MachineConfig carries everything that takes effect with a reboot: kernel, kernel arguments, files and
// units. It is the only writer of kernel arguments. Its Ignition configuration has version 3.2.0, which every
// supported release of OpenShift reads; one that Ignition's own parser refuses is an error.
func MachineConfig(in Input) (*mcfgv1.MachineConfig, error) {
	in, err := in.checked(Input.checkPool)
	if err != nil {
		return nil, err
	}
	kernel, err := kernelType(in.Plan.Kernel)
	if err != nil {
		return nil, fmt.Errorf("rendering MachineConfig for machine config pool %q: %w", in.MachineConfigPool.Name, err)
	}
	arguments, err := kernelArguments(in.Plan.KernelArguments)
	if err != nil {
		return nil, fmt.Errorf("rendering MachineConfig for machine config pool %q: %w", in.MachineConfigPool.Name, err)
	}
	ignition, err := ignitionConfig(in.Plan)
	if err != nil {
		return nil, fmt.Errorf("rendering MachineConfig for machine config pool %q: %w", in.MachineConfigPool.Name, err)
	}
	metadata := in.metadata(MachineConfigName(in.MachineConfigPool.Name), "machine-config")
	maps.Copy(metadata.Labels, in.MachineConfigPool.machineConfigLabels())
	return &mcfgv1.MachineConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfig"},
		ObjectMeta: metadata,
		Spec: mcfgv1.MachineConfigSpec{
			KernelType:      kernel,
			KernelArguments: arguments,
			Config:          runtime.RawExtension{Raw: ignition},
		},
	}, nil
}

// kernelType is the machine-config operator's word for a kernel. It has none for a real-time kernel with
// 64 KiB pages (pkg/controller/common, ValidateMachineConfig).
func kernelType(kernel plan.KernelPlan) (string, error) {
	switch {
	case kernel.Type == v1alpha1.KernelRealTime && kernel.PageSize == v1alpha1.PageSize64Ki:
		return "", fmt.Errorf("OpenShift has no %s kernel with %s pages", kernel.Type, kernel.PageSize)
	case kernel.Type == v1alpha1.KernelRealTime:
		return "realtime", nil
	case kernel.PageSize == v1alpha1.PageSize64Ki:
		return "64k-pages", nil
	default:
		return "default", nil
	}
}

// kernelArguments are one entry each in planned order: the machine-config operator compares the list, so
// another order would be another configuration and a reboot.
func kernelArguments(planned []plan.Argument) ([]string, error) {
	arguments := make([]string, 0, len(planned))
	for _, argument := range planned {
		if argument.Text == "" || strings.ContainsFunc(argument.Text, unprintableOrSpace) {
			return nil, fmt.Errorf("kernel argument %q is empty or contains white space", argument.Text)
		}
		arguments = append(arguments, argument.Text)
	}
	return arguments, nil
}

func unprintableOrSpace(r rune) bool { return r <= ' ' || r == 0x7f }

// ignitionConfig prints the Ignition configuration and has Ignition's own parser judge what was printed.
func ignitionConfig(p *plan.NodePlan) ([]byte, error) {
	config := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	files, err := hostFiles(p)
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		config.Storage.Files = append(config.Storage.Files, ignitionFile(file))
	}
	for _, unit := range hostUnits(p) {
		config.Systemd.Units = append(config.Systemd.Units, ignitionUnit(unit))
	}
	raw, err := marshalWithoutEmpty(config)
	if err != nil {
		return nil, fmt.Errorf("printing the Ignition configuration: %w", err)
	}
	if _, report, err := v3_2.Parse(raw); err != nil {
		return nil, fmt.Errorf("ignition refuses the configuration: %w: %s", err, report.String())
	}
	return raw, nil
}

// hostFiles are the planned files and those that only a node of OpenShift has, ascending by path.
func hostFiles(p *plan.NodePlan) ([]plan.File, error) {
	runtime, err := crioconfig.File(p)
	if err != nil {
		return nil, err
	}
	files := append(slices.Clone(p.Files), runtime)
	if !p.CPUs.Shared.IsEmpty() {
		files = append(files, sharedCPUsFile(p))
	}
	if !p.ManagementCPUs().IsEmpty() {
		files = append(files, workloadFile(p))
	}
	slices.SortStableFunc(files, func(a, b plan.File) int { return cmp.Compare(a.Path, b.Path) })
	return files, nil
}

// hostUnits are the planned units and those that only a node of OpenShift has, ascending by name.
func hostUnits(p *plan.NodePlan) []plan.Unit {
	units := append(slices.Clone(p.Units), tunedUnit())
	slices.SortStableFunc(units, func(a, b plan.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return units
}

// workloadFile tells OpenShift's kubelet that the pods of the platform have CPUs of their own, and which. Where the cluster
// is partitioned, every node has the file from its installation, without CPUs, and gets that one back with the profile's end.
func workloadFile(p *plan.NodePlan) plan.File {
	return plan.File{
		Path: "/etc/kubernetes/openshift-workload-pinning", Mode: 0o644,
		Content: fmt.Sprintf("{\"management\": {\"cpuset\": %q}}\n", p.ManagementCPUs()),
		Origin:  p.CPUs.Origin,
	}
}

// sharedCPUsFile lets OpenShift's kubelet offer the resource workload.openshift.io/enable-shared-cpus, by which containers
// ask for the shared CPUs (pkg/kubelet/sharedcpus of its fork; the cluster's admission plug-in reads the resource). The limit
// of containers is the one that the Node Tuning Operator writes.
func sharedCPUsFile(p *plan.NodePlan) plan.File {
	return plan.File{
		Path: "/etc/kubernetes/openshift-workload-mixed-cpus", Mode: 0o644,
		Content: `{"shared_cpus": {"containers_limit": 256}}` + "\n",
		Origin:  p.CPUs.Origin,
	}
}

func ignitionFile(file plan.File) types.File {
	source := "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString([]byte(file.Content))
	return types.File{
		// A new node may bring a file of this name in its image; Ignition would stop the first boot there.
		Node:          types.Node{Path: file.Path, Overwrite: new(true)},
		FileEmbedded1: types.FileEmbedded1{Contents: types.Resource{Source: &source}, Mode: new(file.Mode)},
	}
}

// ignitionUnit leaves "enabled" out for units that have no content of their own: stating false would disable
// the distribution's unit that only gets a drop-in.
func ignitionUnit(unit plan.Unit) types.Unit {
	out := types.Unit{Name: unit.Name}
	if unit.Masked {
		out.Mask = new(true)
	}
	if unit.Content != "" {
		out.Contents = new(unit.Content)
	}
	if unit.Enabled || unit.Content != "" && !unit.Masked {
		out.Enabled = new(unit.Enabled)
	}
	for _, name := range slices.Sorted(maps.Keys(unit.DropIns)) {
		out.Dropins = append(out.Dropins, types.Dropin{Name: name, Contents: new(unit.DropIns[name])})
	}
	return out
}

// marshalWithoutEmpty prints without the empty objects that Ignition's types print for unset structures.
func marshalWithoutEmpty(config types.Config) ([]byte, error) {
	raw, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	removeEmptyMaps(fields)
	return json.Marshal(fields)
}

func removeEmptyMaps(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, field := range value {
			removeEmptyMaps(field)
			if inner, ok := field.(map[string]any); ok && len(inner) == 0 {
				delete(value, key)
			}
		}
	case []any:
		for _, element := range value {
			removeEmptyMaps(element)
		}
	}
}
