// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	descriptorUI         = "urn:alm:descriptor:com.tectonic.ui:"
	descriptorConditions = "urn:alm:descriptor:io.kubernetes.conditions"
	// descriptionLength bounds what the console shows beside a field.
	descriptionLength = 300
)

// ownedDefinitions describe every field of every kind for the console.
func ownedDefinitions(definitions []*unstructured.Unstructured) ([]any, error) {
	var owned []any
	for _, object := range definitions {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &crd); err != nil {
			return nil, err
		}
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			schema := version.Schema.OpenAPIV3Schema
			owned = append(owned, map[string]any{
				"name": crd.Name, "kind": crd.Spec.Names.Kind, "version": version.Name,
				"displayName": words(crd.Spec.Names.Kind), "description": firstSentence(schema.Description),
				"specDescriptors":   descriptors("", schema.Properties["spec"]),
				"statusDescriptors": descriptors("", schema.Properties["status"]),
				"resources":         resources(crd.Spec.Names.Kind),
			})
		}
	}
	return owned, nil
}

// descriptors describe the fields below a path. A list stands for its first entry, as the console has it.
func descriptors(path string, schema apiextensionsv1.JSONSchemaProps) []any {
	var all []any
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		field := schema.Properties[name]
		at := strings.TrimPrefix(path+"."+name, ".")
		described := map[string]any{"path": at, "displayName": words(name), "description": firstSentence(field.Description)}
		if kinds := kindsOf(name, &field); len(kinds) > 0 {
			described["x-descriptors"] = kinds
		}
		all = append(all, described)
		switch {
		case name == "conditions" || name == "nodeSelector":
			// The console shows conditions as a whole, and has no form for a map of labels.
		case field.Items != nil && field.Items.Schema != nil:
			all = append(all, descriptors(at+"[0]", *field.Items.Schema)...)
		default:
			all = append(all, descriptors(at, field)...)
		}
	}
	return all
}

// kindsOf says how the console shows a field.
func kindsOf(name string, field *apiextensionsv1.JSONSchemaProps) []any {
	var kinds []any
	switch {
	case name == "conditions":
		kinds = append(kinds, descriptorConditions)
	case len(field.Enum) > 0:
		for _, value := range field.Enum {
			var text string
			if json.Unmarshal(value.Raw, &text) == nil {
				kinds = append(kinds, descriptorUI+"select:"+text)
			}
		}
	case field.Type == "integer":
		kinds = append(kinds, descriptorUI+"number")
	case field.Type == "string":
		kinds = append(kinds, descriptorUI+"text")
	}
	return kinds
}

// resources are the kinds that the operator makes for a kind.
func resources(kind string) []any {
	made := map[string][][3]string{
		"LowLatencyNodeProfile": {
			{"LowLatencyNode", "v1alpha1", ""}, {"ConfigMap", "v1", ""}, {"MachineConfig", "v1", ""}, {"KubeletConfig", "v1", ""},
			{"Tuned", "v1", ""}, {"RuntimeClass", "v1", ""},
		},
		"BypassNICPool":  {{"DaemonSet", "v1", ""}, {"ConfigMap", "v1", ""}, {"DeviceClass", "v1", ""}, {"NetworkAttachmentDefinition", "v1", ""}},
		"LowLatencyNode": {{"Lease", "v1", ""}},
		"LatencyTest":    {{"Job", "v1", ""}},
	}
	all := make([]any, 0, len(made[kind]))
	for _, one := range made[kind] {
		all = append(all, map[string]any{"kind": one[0], "version": one[1], "name": one[2]})
	}
	return all
}

// words spells a name of Go or JSON as a title: nicPool is Nic Pool, BypassNICPool is Bypass NIC Pool.
func words(name string) string {
	var title strings.Builder
	letters := []rune(name)
	for i, letter := range letters {
		starts := unicode.IsUpper(letter) && i > 0 &&
			(unicode.IsLower(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]) && letters[i+1] != 's')
		if starts {
			title.WriteRune(' ')
		}
		if i == 0 {
			letter = unicode.ToUpper(letter)
		}
		title.WriteRune(letter)
	}
	spelled := strings.Fields(title.String())
	for i, word := range spelled {
		if as, known := abbreviations()[word]; known {
			spelled[i] = as
		}
	}
	return strings.Join(spelled, " ")
}

// abbreviations are how the words of names that are abbreviations are written.
func abbreviations() map[string]string {
	return map[string]string{
		"Afxdp": "AF_XDP", "Bios": "BIOS", "Cpu": "CPU", "Cpus": "CPUs", "Dma": "DMA", "Efvi": "ef_vi", "Id": "ID", "Iommu": "IOMMU", "Irq": "IRQ",
		"Irqs": "IRQs", "Mac": "MAC", "Nic": "NIC", "Nics": "NICs", "Numa": "NUMA", "Pci": "PCI", "Pid": "PID", "Qos": "QoS", "Tcp": "TCP", "Tsc": "TSC",
		"Tuned": "TuneD", "Udp": "UDP", "Uid": "UID", "Vfio": "VFIO", "Vlan": "VLAN",
	}
}

// firstSentence shortens a description.
func firstSentence(description string) string {
	text := strings.Join(strings.Fields(description), " ")
	if end := strings.Index(text, ". "); end >= 0 {
		text = text[:end+1]
	}
	if letters := []rune(text); len(letters) > descriptionLength {
		text = string(letters[:descriptionLength-1]) + "…"
	}
	return text
}
