// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package openshift

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kernelTypeDefault is what a MachineConfig without a kernel type means.
const kernelTypeDefault = "default"

// evidence is what proves that a machine config pool's rendered configuration holds what the operator has written. It
// is read from the API server itself, and only while the operator holds the machine config pool.
type evidence struct {
	// rendered is the MachineConfig that pool.spec.configuration names; nil when it does not exist.
	rendered *mcfgv1.MachineConfig
	// kubelets are the MachineConfigs made of KubeletConfigs that the rendered one was merged from,
	// in the order of merging.
	kubelets []mcfgv1.MachineConfig
	// sources are all MachineConfigs that the rendered one was merged from, as they are now. They are read last, when
	// nothing else is missing.
	sources []mcfgv1.MachineConfig
}

// kubeletSources are the names of the MachineConfigs that the machine-config operator has generated from
// KubeletConfigs, among those that the machine config pool's configuration was merged from:
// 99-NAME-generated-kubelet with the name of the machine config pool, and a number for each further KubeletConfig of it
// (getManagedKubeletConfigKey).
func kubeletSources(pool *mcfgv1.MachineConfigPool) []string {
	var names []string
	for _, source := range pool.Spec.Configuration.Source {
		if strings.HasPrefix(source.Name, "99-"+pool.Name+"-generated-kubelet") {
			names = append(names, source.Name)
		}
	}
	slices.Sort(names)
	return names
}

// missing says what the machine config pool's rendered configuration lacks of what was written: our MachineConfig, and
// the kubelet settings of our KubeletConfig; "" when it has both. Names in the machine config pool's list of sources
// prove nothing, because they do not say of which content, so contents are compared.
func (e evidence) missing(pool *mcfgv1.MachineConfigPool, own *mcfgv1.MachineConfig, kubeletConfig types.UID) string {
	if e.rendered == nil {
		return fmt.Sprintf("MachineConfigPool %s has no rendered configuration yet", pool.Name)
	}
	if !hasSource(pool, own.Name) {
		return fmt.Sprintf("%s was rendered without MachineConfig %s", e.rendered.Name, own.Name)
	}
	if lack := lacks(e.rendered, own); lack != "" {
		return fmt.Sprintf("%s does not hold %s of MachineConfig %s yet", e.rendered.Name, lack, own.Name)
	}
	mine := slices.IndexFunc(e.kubelets, func(config mcfgv1.MachineConfig) bool { return ownedBy(&config, kubeletConfig) })
	if mine < 0 {
		return e.rendered.Name + " was rendered without our KubeletConfig"
	}
	if lack := lacks(e.rendered, &e.kubelets[mine]); lack != "" {
		return fmt.Sprintf("%s does not hold %s of MachineConfig %s yet", e.rendered.Name, lack, e.kubelets[mine].Name)
	}
	return ""
}

// excess says what the rendered configuration holds and none of its sources does; "" when there is nothing. It was rendered
// before something was taken out of a source, such as what somebody had added to our MachineConfig.
func (e evidence) excess() string {
	if len(e.sources) == 0 {
		return ""
	}
	all := &mcfgv1.MachineConfig{}
	var files []ignitionFile
	var units []ignitionUnit
	kernels := []string{kernelTypeDefault}
	for i := range e.sources {
		parsed, err := parseIgnition(&e.sources[i])
		if err != nil {
			return err.Error()
		}
		spec := &e.sources[i].Spec
		all.Spec.KernelArguments = append(all.Spec.KernelArguments, spec.KernelArguments...)
		all.Spec.Extensions = append(all.Spec.Extensions, spec.Extensions...)
		kernels = append(kernels, kernelType(&e.sources[i]))
		files, units = append(files, parsed.Storage.Files...), append(units, parsed.Systemd.Units...)
	}
	whole, err := parseIgnition(e.rendered)
	if err != nil {
		return err.Error()
	}
	what := whole.beyond(files, units)
	switch {
	case !slices.Equal(slices.Sorted(slices.Values(all.Spec.KernelArguments)), slices.Sorted(slices.Values(e.rendered.Spec.KernelArguments))):
		what = "other kernel arguments"
	case !slices.Contains(kernels, kernelType(e.rendered)):
		what = "kernel type " + kernelType(e.rendered)
	case slices.ContainsFunc(e.rendered.Spec.Extensions, func(one string) bool { return !slices.Contains(all.Spec.Extensions, one) }):
		what = "other extensions"
	case what == "":
		return ""
	}
	return fmt.Sprintf("%s still holds %s, which none of its sources has", e.rendered.Name, what)
}

// beyond names the first file or unit whose content is in none of the sources. Merging takes modes and the like from
// any source that sets them.
func (i ignition) beyond(files []ignitionFile, units []ignitionUnit) string {
	for _, file := range i.Storage.Files {
		if !slices.ContainsFunc(files, func(f ignitionFile) bool { return f.Path == file.Path && f.Contents == file.Contents }) {
			return "file " + file.Path
		}
	}
	for _, unit := range i.Systemd.Units {
		if !slices.ContainsFunc(units, func(u ignitionUnit) bool { return u.Name == unit.Name && u.Contents == unit.Contents }) && unit.Contents != "" {
			return "unit " + unit.Name
		}
	}
	return ""
}

// overruled names the MachineConfig of another KubeletConfig that is merged after ours and replaces its
// settings as a whole; "" when there is none.
func (e evidence) overruled(kubeletConfig types.UID) string {
	if len(e.kubelets) == 0 {
		return ""
	}
	last := &e.kubelets[len(e.kubelets)-1]
	mine := slices.ContainsFunc(e.kubelets, func(config mcfgv1.MachineConfig) bool { return ownedBy(&config, kubeletConfig) })
	if !mine || ownedBy(last, kubeletConfig) {
		return ""
	}
	return last.Name
}

func hasSource(pool *mcfgv1.MachineConfigPool, name string) bool {
	return slices.ContainsFunc(pool.Spec.Configuration.Source,
		func(source corev1.ObjectReference) bool { return source.Name == name })
}

func ownedBy(config *mcfgv1.MachineConfig, owner types.UID) bool {
	return slices.ContainsFunc(config.OwnerReferences,
		func(reference metav1.OwnerReference) bool { return reference.UID == owner })
}

// ignition is the part of an Ignition configuration that machine configs of every 3.x version share.
type ignition struct {
	Storage struct {
		Files []ignitionFile `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []ignitionUnit `json:"units"`
	} `json:"systemd"`
}

type ignitionFile struct {
	Path     string `json:"path"`
	Mode     int    `json:"mode"`
	Contents struct {
		Source string `json:"source"`
	} `json:"contents"`
}

type ignitionUnit struct {
	Name     string           `json:"name"`
	Contents string           `json:"contents"`
	Mask     bool             `json:"mask"`
	Enabled  *bool            `json:"enabled"`
	Dropins  []ignitionDropin `json:"dropins"`
}

type ignitionDropin struct {
	Name     string `json:"name"`
	Contents string `json:"contents"`
}

// lacks names the first thing that a MachineConfig has and the rendered one does not; "" when there is
// none. Merging keeps arguments in order, replaces files and units by name, and takes any kernel type that
// is not the default (machine-config-operator, MergeMachineConfigs).
func lacks(rendered, part *mcfgv1.MachineConfig) string {
	if !isSubsequence(rendered.Spec.KernelArguments, part.Spec.KernelArguments) {
		return "the kernel arguments"
	}
	if kernelType(part) != kernelType(rendered) && kernelType(part) != kernelTypeDefault {
		return "the kernel type"
	}
	whole, err := parseIgnition(rendered)
	if err != nil {
		return "a readable Ignition configuration, so that nothing is known"
	}
	piece, err := parseIgnition(part)
	if err != nil {
		return "the Ignition configuration"
	}
	return whole.lacks(piece)
}

func kernelType(config *mcfgv1.MachineConfig) string {
	if config.Spec.KernelType == "" {
		return kernelTypeDefault
	}
	return config.Spec.KernelType
}

func parseIgnition(config *mcfgv1.MachineConfig) (ignition, error) {
	var parsed ignition
	if len(config.Spec.Config.Raw) == 0 {
		return parsed, nil
	}
	if err := json.Unmarshal(config.Spec.Config.Raw, &parsed); err != nil {
		return parsed, fmt.Errorf("reading the Ignition configuration of MachineConfig %s: %w", config.Name, err)
	}
	return parsed, nil
}

func (i ignition) lacks(part ignition) string {
	for _, file := range part.Storage.Files {
		if !slices.Contains(i.Storage.Files, file) {
			return "file " + file.Path
		}
	}
	for _, unit := range part.Systemd.Units {
		if !slices.ContainsFunc(i.Systemd.Units, unit.isIn) {
			return "unit " + unit.Name
		}
	}
	return ""
}

// isIn reports whether the rendered unit has what this one says.
func (u ignitionUnit) isIn(rendered ignitionUnit) bool {
	if u.Name != rendered.Name || u.Mask && !rendered.Mask || u.Contents != "" && u.Contents != rendered.Contents {
		return false
	}
	if u.Enabled != nil && (rendered.Enabled == nil || *u.Enabled != *rendered.Enabled) {
		return false
	}
	for _, dropin := range u.Dropins {
		if !slices.Contains(rendered.Dropins, dropin) {
			return false
		}
	}
	return true
}

// isSubsequence reports whether all parts occur in the whole, in their order.
func isSubsequence(whole, parts []string) bool {
	next := 0
	for _, element := range whole {
		if next < len(parts) && element == parts[next] {
			next++
		}
	}
	return next == len(parts)
}
