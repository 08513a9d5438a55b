// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package installation carries what decides how a plan is written on an ordinary host through the API: an agent reads it from
// its host, and the operator makes of it the facts from which operations are spelled. It is pure.
package installation

import (
	"slices"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Of reports the software of a host within the bounds of the API; nil on a node of OpenShift, where nobody asks for it. A file
// that is too long is reported without its content, which means that nobody knows what it says.
func Of(f *host.Facts) *v1alpha1.NodeSoftware {
	if isOpenShift, _ := f.Software.OpenShift.Get(); isOpenShift {
		return nil
	}
	possible := f.CPUs.Possible.Value.String()
	if len(possible) > v1alpha1.MaxCPUListLength {
		possible = ""
	}
	return &v1alpha1.NodeSoftware{
		KernelPageSizeBytes: min(f.Kernel.PageSizeBytes.Value, v1alpha1.MaxKernelPageSizeBytes),
		PossibleCPUs:        possible,
		ContainerRuntime:    runtimes()[f.Software.ContainerRuntime.Value],
		TuneDProfiles:       fitting(f.Software.TuneDProfiles.Value, v1alpha1.MaxSoftwarePathLength),
		Kubelet:             kubeletOf(f),
	}
}

// runtimes are container runtimes in the words of the API.
func runtimes() map[host.ContainerRuntime]v1alpha1.NodeContainerRuntime {
	return map[host.ContainerRuntime]v1alpha1.NodeContainerRuntime{
		host.CRIO:       v1alpha1.NodeContainerRuntimeCRIO,
		host.Containerd: v1alpha1.NodeContainerRuntimeContainerd,
	}
}

// fitting is a text that fits, or nothing: half of a path or a flag would be another.
func fitting(text string, limit int) string {
	if len(text) > limit {
		return ""
	}
	return text
}

func kubeletOf(f *host.Facts) *v1alpha1.NodeKubelet {
	unit, known := f.Software.KubeletUnit.Get()
	if !known {
		return nil
	}
	kubelet := &v1alpha1.NodeKubelet{
		Unit:            shorten.Value(unit, v1alpha1.MaxUnitNameLength),
		ConfigArguments: fitting(f.Software.KubeletConfigArguments.Value, v1alpha1.MaxKubeletFlagLength),
		DropInFolder:    fitting(f.Kubelet.DropInFolder.Value, v1alpha1.MaxSoftwarePathLength),
		Files:           filesOf(&f.Kubelet),
	}
	for _, flag := range shorten.List(f.Kubelet.Flags.Value, v1alpha1.MaxKubeletFlags) {
		// A flag of which the end is missing is refused by its name all the same.
		kubelet.Flags = append(kubelet.Flags, shorten.Value(flag, v1alpha1.MaxKubeletFlagLength))
	}
	return kubelet
}

// filesOf are the files of a kubelet, its own first.
func filesOf(k *host.Kubelet) []v1alpha1.NodeKubeletFile {
	var files []v1alpha1.NodeKubeletFile
	add := func(path string, role v1alpha1.KubeletFileRole, content host.Fact[string]) {
		isListed := slices.ContainsFunc(files, func(f v1alpha1.NodeKubeletFile) bool { return f.Path == path })
		if path == "" || len(path) > v1alpha1.MaxSoftwarePathLength || isListed || len(files) == v1alpha1.MaxKubeletFiles {
			return
		}
		files = append(files, v1alpha1.NodeKubeletFile{Path: path, Role: role, Content: contentOf(content)})
	}
	add(k.File.Source, v1alpha1.KubeletFileConfiguration, k.File)
	if folder := k.DropInFolder.Value; folder != "" && !k.DropIns.Known {
		// The folder stands for what may be in it.
		add(folder, v1alpha1.KubeletFileDropIn, host.Fact[string]{})
	}
	for _, dropIn := range k.DropIns.Value {
		add(dropIn.Path, v1alpha1.KubeletFileDropIn, dropIn.Content)
	}
	return files
}

func contentOf(fact host.Fact[string]) string {
	text, known := fact.Get()
	if !known {
		return ""
	}
	text, err := host.EssentialKubeletConfiguration(text)
	if err != nil {
		return ""
	}
	return fitting(text, v1alpha1.MaxKubeletFileLength)
}

const (
	inventorySource = "status.inventory"
	softwareSource  = "status.software"
	// notReported is the reason of a fact that no agent has reported.
	notReported = "not reported by the agent"
)

// Facts are the facts of a host as far as operations are spelled from them. The boot loader is not among them: agents do not
// see /boot, and the guard on the host knows it. The error is that of a list of CPUs that cannot be read.
func Facts(inventory *v1alpha1.Inventory, software *v1alpha1.NodeSoftware) (*host.Facts, error) {
	f := &host.Facts{}
	f.Kernel.CommandLine = text(inventory.KernelCommandLine, inventorySource)
	f.Kernel.Release = text(inventory.KernelRelease, inventorySource)
	if inventory.KernelType != "" {
		f.Kernel.RealTime = host.Known(inventory.KernelType == v1alpha1.KernelRealTime, inventorySource)
	}
	if software.KernelPageSizeBytes > 0 {
		f.Kernel.PageSizeBytes = host.Known(software.KernelPageSizeBytes, softwareSource)
	}
	if err := addCPUs(f, inventory, software); err != nil {
		return nil, err
	}
	for i := range inventory.NUMANodes {
		node := host.NUMANode{ID: int(inventory.NUMANodes[i].ID)}
		if memory := inventory.NUMANodes[i].MemoryBytes; memory != nil {
			node.MemoryTotalBytes = host.Known(*memory, inventorySource)
		}
		f.NUMANodes = append(f.NUMANodes, node)
	}
	f.Software.OpenShift = host.Known(false, softwareSource)
	f.Software.TuneDProfiles = host.Known(software.TuneDProfiles, softwareSource)
	for known, name := range runtimes() {
		if name == software.ContainerRuntime {
			f.Software.ContainerRuntime = host.Known(known, softwareSource)
		}
	}
	if software.Kubelet != nil {
		addKubelet(f, software.Kubelet)
	}
	return f, nil
}

// text is a fact that is absent when it is empty.
func text(value, source string) host.Fact[string] {
	if value == "" {
		return host.Absent[string](source, notReported)
	}
	return host.Known(value, source)
}

func addCPUs(f *host.Facts, inventory *v1alpha1.Inventory, software *v1alpha1.NodeSoftware) error {
	online, err := cpus.Parse(inventory.OnlineCPUs)
	if err != nil {
		return err
	}
	offline, err := cpus.Parse(inventory.OfflineCPUs)
	if err != nil {
		return err
	}
	f.CPUs.Present = host.Known(online.Union(offline), inventorySource)
	f.CPUs.Offline = host.Known(offline, inventorySource)
	if software.PossibleCPUs == "" {
		return nil
	}
	possible, err := cpus.Parse(software.PossibleCPUs)
	f.CPUs.Possible = host.Known(possible, softwareSource)
	return err
}

func addKubelet(f *host.Facts, k *v1alpha1.NodeKubelet) {
	f.Software.KubeletUnit = text(k.Unit, softwareSource)
	f.Software.KubeletConfigArguments = text(k.ConfigArguments, softwareSource)
	f.Kubelet.Flags = host.Absent[[]string](softwareSource, notReported)
	if len(k.Flags) > 0 {
		// A kubelet that is a process has one at least, for its file or its folder.
		f.Kubelet.Flags = host.Known(k.Flags, softwareSource)
	}
	f.Kubelet.DropInFolder = host.Known(k.DropInFolder, softwareSource)
	f.Kubelet.File = host.Absent[string](softwareSource, notReported)
	dropIns := []host.KubeletDropIn{}
	for _, file := range k.Files {
		if file.Role == v1alpha1.KubeletFileConfiguration {
			f.Kubelet.File = text(file.Content, file.Path)
			continue
		}
		dropIns = append(dropIns, host.KubeletDropIn{Path: file.Path, Content: text(file.Content, file.Path)})
	}
	f.Kubelet.DropIns = host.Known(dropIns, softwareSource)
}
