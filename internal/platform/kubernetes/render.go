// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/crioconfig"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/rendering"
)

// Platform is what is known about ordinary hosts without a cluster.
func Platform() rendering.Platform { return rendering.Platform{Rules: Rules(), Render: Render} }

// Render writes the plans of a profile for ordinary hosts, with one bundle for the hosts of one plan on which the same is
// written.
func Render(in rendering.Request) ([]rendering.Bundle, error) {
	var bundles []rendering.Bundle
	for _, shape := range in.Shapes {
		objects, err := sharedObjects(shape, in)
		if err != nil {
			return nil, err
		}
		written, err := writings(shape, in.Facts)
		if err != nil {
			return nil, err
		}
		for i := range written {
			bundles = append(bundles, rendering.Bundle{
				GroupType: "plan", Group: shape.Hash, Nodes: written[i].Nodes, Objects: slices.Clone(objects), Host: &written[i].HostWriting, Operations: written[i].operations,
			})
		}
	}
	rendering.DropRepeated(bundles)
	return bundles, nil
}

// sharedObjects are what the cluster holds for a plan: the plan, and the RuntimeClass where a runtime has the handler.
func sharedObjects(shape fleet.Shape, in rendering.Request) ([]*unstructured.Unstructured, error) {
	if err := manifest.CheckProfile(shape.Plan.Profile); err != nil {
		return nil, err
	}
	stored, err := manifest.PlanConfigMap(shape.Plan, shape.Hash, in.Namespace)
	if err != nil {
		return nil, err
	}
	typed := []runtime.Object{stored}
	if slices.ContainsFunc(shape.Nodes, func(name string) bool { return in.Facts[name] != nil && hasHandler(in.Facts[name]) }) {
		typed = append(typed, crioconfig.RuntimeClass(shape.Plan, shape.Hash))
	}
	objects := make([]*unstructured.Unstructured, 0, len(typed))
	for _, object := range typed {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("printing %T: %w", object, err)
		}
		plain := &unstructured.Unstructured{Object: fields}
		unstructured.RemoveNestedField(plain.Object, "metadata", "creationTimestamp")
		objects = append(objects, plain)
	}
	return objects, nil
}

// writings are what is written on the nodes of a shape, those together on which it is the same.
func writings(shape fleet.Shape, facts map[string]*host.Facts) ([]printedWriting, error) {
	var all []printedWriting
	places := map[string]int{}
	for _, name := range shape.Nodes {
		written, err := writingOf(shape, name, facts[name])
		if err != nil {
			return nil, err
		}
		key := written.key()
		if at, known := places[key]; known {
			all[at].Nodes = append(all[at].Nodes, name)
			continue
		}
		places[key] = len(all)
		all = append(all, written)
	}
	return all, nil
}

// printedWriting is a writing as it is printed, with the operations.
type printedWriting struct {
	rendering.HostWriting

	operations []operation.Operation
}

// key tells writings apart.
func (p printedWriting) key() string { return operation.Hash(p.operations) + fmt.Sprint(p.Findings) }

func writingOf(shape fleet.Shape, name string, facts *host.Facts) (printedWriting, error) {
	if facts == nil {
		return printedWriting{}, fmt.Errorf("what is written on node %s depends on its software, of which an inventory says nothing: give the host or a snapshot with --root", name)
	}
	written, err := Write(shape.Plan, facts)
	if err != nil {
		return printedWriting{}, err
	}
	printed := rendering.HostWriting{PlanHash: shape.Hash, Nodes: []string{name}, Findings: sentences(written.Findings)}
	// What was not checked is shown all the same: who reads it may know what nobody could read.
	shown := slices.Concat(written.Operations, written.Unchecked)
	printed.Refused = written.Refused() && len(written.Unchecked) == 0
	for i := range shown {
		addTo(&printed, &shown[i])
	}
	slices.SortStableFunc(printed.Files, func(a, b rendering.WrittenFile) int { return cmp.Compare(a.Path, b.Path) })
	return printedWriting{printed, written.Operations}, nil
}

func sentences(findings []plan.Finding) []string {
	texts := make([]string, 0, len(findings))
	for _, f := range findings {
		texts = append(texts, fmt.Sprintf("%s: %s: %s %s", f.Severity, f.Field, f.Message, f.Remedy))
	}
	return texts
}

// addTo prints one operation: files by their paths, the rest by what it changes.
func addTo(printed *rendering.HostWriting, o *operation.Operation) {
	switch o.Kind {
	case operation.KernelArguments:
		printed.KernelArguments = o.Arguments
	case operation.StateFile:
		printed.RemovedFiles = append(printed.RemovedFiles, o.Path)
	case operation.Sysctl:
		printed.Settings = append(printed.Settings, rendering.WrittenSetting{Name: host.SysctlPath(o.Name), Value: o.Value})
	case operation.Sysfs:
		printed.Settings = append(printed.Settings, rendering.WrittenSetting{Name: o.Path, Value: o.Value})
	case operation.Service:
		printed.Services = append(printed.Services, rendering.WrittenState{Name: o.Name, State: string(o.State)})
	case operation.Module:
		printed.Modules = append(printed.Modules, rendering.WrittenState{Name: o.Name, State: string(o.State)})
	default:
		addFile(printed, o)
	}
}

func addFile(printed *rendering.HostWriting, o *operation.Operation) {
	switch {
	case o.State == operation.Masked:
		printed.Links = append(printed.Links, rendering.WrittenLink{Path: o.Path, Target: "/dev/null"})
		return
	case o.State == operation.Enabled:
		printed.EnabledUnits = append(printed.EnabledUnits, o.Name)
	case o.Kind == operation.TuneDProfile:
		printed.TuneDProfile = o.Name
	}
	printed.Files = append(printed.Files, rendering.WrittenFile{Path: o.Path, Mode: fmt.Sprintf("%04o", o.Mode), Content: o.Content})
}
