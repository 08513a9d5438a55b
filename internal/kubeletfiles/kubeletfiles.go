// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kubeletfiles judges what comes of the file and the drop-ins of a kubelet together, on plain values: whoever plans and the guard on
// the host ask the same, and the guard links none of the kubelet's types. It is pure.
package kubeletfiles

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

const (
	kind           = "KubeletConfiguration"
	memoryResource = "memory"
	staticPolicy   = "Static"
)

// Memory are the fields of a KubeletConfiguration by which the memory manager starts or does not start, by their names in JSON.
type Memory struct {
	Policy         string            `json:"memoryManagerPolicy"`
	SystemReserved map[string]string `json:"systemReserved"`
	KubeReserved   map[string]string `json:"kubeReserved"`
	EvictionHard   map[string]string `json:"evictionHard"`
	ReservedMemory []Reservation     `json:"reservedMemory"`
}

// Reservation is what is reserved of a NUMA node, by type of memory.
type Reservation struct {
	NUMANode int32                        `json:"numaNode"`
	Limits   map[string]resource.Quantity `json:"limits"`
}

// Check repeats the rule with which the kubelet's memory manager starts or does not start (pkg/kubelet/cm/memorymanager,
// validateReservedMemory): for each type of memory, the reservations of the NUMA nodes add up to systemReserved + kubeReserved +
// evictionHard, to the byte. systemReserved must be stated, because some platforms compute their own when it is not, and nothing adds up
// then. Any other policy than Static demands nothing.
func (m *Memory) Check() error {
	if m.Policy != staticPolicy {
		return nil
	}
	want, err := m.ofNode()
	if err != nil {
		return err
	}
	reserved := map[string]resource.Quantity{}
	for _, reservation := range m.ReservedMemory {
		for name, quantity := range reservation.Limits {
			sum := reserved[name]
			sum.Add(quantity)
			reserved[name] = sum
		}
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(reserved)) {
		if name != memoryResource {
			problems = append(problems, fmt.Errorf("%s.reservedMemory reserves %s, of which nothing is reserved for the node", kind, name))
		}
	}
	if sum := reserved[memoryResource]; !sum.Equal(want) {
		problems = append(problems, fmt.Errorf("%s.reservedMemory adds up to %s over all NUMA nodes, but systemReserved "+
			"+ kubeReserved + evictionHard is %s; the kubelet would not start", kind, sum.String(), want.String()))
	}
	return errors.Join(problems...)
}

// ofNode is the memory that the kubelet keeps from pods.
func (m *Memory) ofNode() (resource.Quantity, error) {
	parts := []struct {
		field, text string
	}{
		{"systemReserved[memory]", m.SystemReserved[memoryResource]},
		{"kubeReserved[memory]", m.KubeReserved[memoryResource]},
		{"evictionHard[memory.available]", m.EvictionHard["memory.available"]},
	}
	var sum resource.Quantity
	for _, part := range parts {
		quantity, err := resource.ParseQuantity(part.text)
		if err != nil {
			return sum, fmt.Errorf("%s.%s is %q, but memoryManagerPolicy Static needs an amount of memory there: %w", kind, part.field, part.text, err)
		}
		sum.Add(quantity)
	}
	return sum, nil
}

// CheckMemory is Check for a merged configuration, JSON.
func CheckMemory(merged string) error {
	var memory Memory
	if err := json.Unmarshal([]byte(merged), &memory); err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	return memory.Check()
}

// Overridden are the fields of one file, ascending, that a merged configuration has otherwise: a file behind it sets them again. Both are
// YAML or JSON. What the file removes by null must not be in the merged configuration.
func Overridden(file, merged string) ([]string, error) {
	var wanted, found map[string]any
	for _, text := range []struct {
		from string
		into *map[string]any
	}{{file, &wanted}, {merged, &found}} {
		if err := yaml.Unmarshal([]byte(text.from), text.into); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !holds(found[name], wanted[name]) {
			names = append(names, name)
		}
	}
	return names, nil
}

// holds reports whether a merged value has what is wanted: of an object each name, of anything else the value.
func holds(found, wanted any) bool {
	object, isObject := wanted.(map[string]any)
	if !isObject {
		return reflect.DeepEqual(found, wanted)
	}
	within, _ := found.(map[string]any)
	for name, value := range object {
		if !holds(within[name], value) {
			return false
		}
	}
	return true
}

// Root is where a kubelet keeps its state unless it was told otherwise, also that of K3s and RKE2 with a data-dir of its own. Files of its state are
// removed there, and nowhere else.
const Root = "/var/lib/kubelet"

// IsElsewhere reports whether a flag, --name=value, has the kubelet keep its state in another folder.
func IsElsewhere(flag string) bool {
	root, found := strings.CutPrefix(flag, "--root-dir=")
	return found && path.Clean(root) != Root
}

// Outweighs reports whether a flag, --name=value, of those that host.KubeletFlags keeps stands for a field that plans set, and so has more weight
// than any file. The others say where files are, where the kubelet keeps its state, and what it wants to find.
func Outweighs(flag string) bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
	return !slices.Contains([]string{"config", "config-dir", "protect-kernel-defaults", "root-dir"}, name)
}

// ProtectsKernel reports whether a kubelet does not start where parameters of the kernel are not as it expects them, by its flags, --name=value,
// of which the last counts, and its merged configuration, which they outweigh.
func ProtectsKernel(flags []string, merged map[string]any) bool {
	for _, flag := range slices.Backward(flags) {
		if value, found := strings.CutPrefix(flag, "--protect-kernel-defaults="); found {
			is, err := strconv.ParseBool(value)
			return is || err != nil
		}
	}
	return merged["protectKernelDefaults"] == true
}

// NeedsFile reports whether the kubelet that merges a drop-in has a file below it. That of K3s and RKE2 has only its folder.
func NeedsFile(dropIn string) bool { return !strings.HasPrefix(dropIn, "/var/lib/rancher/") }
