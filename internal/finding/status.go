// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package finding

import (
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

// Status are the objects within the bounds of the API, with the numbers of all; nil when there is none.
func (o Objects) Status() *v1alpha1.FindingObjects {
	if o.IsEmpty() {
		return nil
	}
	bounded := &v1alpha1.FindingObjects{
		CPUs:       firstCPUs(o.CPUs),
		Interrupts: first(o.Interrupts, v1alpha1.MaxFindingInterrupts),
		NICs:       firstTexts(o.NICs, v1alpha1.MaxFindingNICs, v1alpha1.MaxReportedPCIAddressLength),
		NUMANodes:  first(o.NUMANodes, v1alpha1.MaxFindingNUMANodes),
		Processes:  first(o.Processes, v1alpha1.MaxFindingProcesses),
		Containers: firstTexts(o.Containers, v1alpha1.MaxFindingContainers, v1alpha1.MaxContainerPathLength),
		Files:      firstTexts(o.Files, v1alpha1.MaxFindingFiles, v1alpha1.MaxFindingFileLength),
		Counts:     o.Counts(),
	}
	for i := range bounded.Interrupts {
		bounded.Interrupts[i].Handlers = shorten.Sentence(bounded.Interrupts[i].Handlers, v1alpha1.MaxInterruptHandlersLength)
	}
	for i := range bounded.Processes {
		bounded.Processes[i].Name = shorten.Value(bounded.Processes[i].Name, v1alpha1.MaxProcessNameLength)
	}
	return bounded
}

// OfStatus are the objects that a status names. A list of CPUs that is none names none.
func OfStatus(bounded *v1alpha1.FindingObjects) Objects {
	if bounded == nil {
		return Objects{}
	}
	set, err := cpus.Parse(bounded.CPUs)
	if err != nil {
		set = cpus.Set{}
	}
	o := Objects{
		CPUs: set, Interrupts: bounded.Interrupts, NICs: bounded.NICs, NUMANodes: bounded.NUMANodes,
		Processes: bounded.Processes, Containers: bounded.Containers, Files: bounded.Files,
	}
	o.Unlisted = unlisted(bounded.Counts, o.Counts())
	return o
}

// first are the first items, as a list of their own.
func first[T any](list []T, most int) []T { return append([]T(nil), list[:min(len(list), most)]...) }

func firstTexts(list []string, most, length int) []string {
	texts := first(list, most)
	for i := range texts {
		texts[i] = shorten.Value(texts[i], length)
	}
	return texts
}

// firstCPUs is the list of the CPUs, or as many of its ranges as the API has room for.
func firstCPUs(set cpus.Set) string {
	list := set.String()
	if len(list) <= v1alpha1.MaxCPUListLength {
		return list
	}
	list = list[:v1alpha1.MaxCPUListLength+1]
	return list[:strings.LastIndexByte(list, ',')]
}
