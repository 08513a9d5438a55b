// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package installer installs what Operator Lifecycle Manager cannot: the namespace and the agents, admission policies and security
// context constraints. Every other way of installing applies the same objects by itself.
package installer

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The objects are generated from config/olm by hack/bundle. In agent-repair.yaml is the DaemonSet of agents that may repair.
var (
	//go:embed objects.yaml
	objectsYAML string
	//go:embed agent-repair.yaml
	agentRepairYAML string
)

const (
	// SourceNamespace stands in the generated objects for the operator's own namespace.
	SourceNamespace = "lowlatency-operator-system"
	// SourceImage stands in the generated objects for the operator's image.
	SourceImage = "controller:latest"
	// SourceTrafficImage stands in the generated objects for the image that measures over the network.
	SourceTrafficImage = "ghcr.io/lowlatency-dev/lowlatency-traffic:v0.1.0"
)

// Agents says which agents are installed.
type Agents string

const (
	// AgentsRead look at the host only.
	AgentsRead Agents = "Read"
	// AgentsRepair may write back what has drifted, where a profile asks for it.
	AgentsRepair Agents = "Repair"
)

// Options are what differs from cluster to cluster.
type Options struct {
	// Namespace is that of the operator.
	Namespace string
	// Image is that of the operator, which the agents run, too.
	Image string
	// Agents says which agents are installed.
	Agents Agents
}

func (o *Options) check() error {
	switch {
	case len(validation.IsDNS1123Label(o.Namespace)) > 0:
		return fmt.Errorf("%q is not the name of a namespace", o.Namespace)
	case o.Image == "" || strings.ContainsAny(o.Image, " \t\n\"'{}#"):
		return fmt.Errorf("%q is not the name of an image", o.Image)
	case o.Agents != AgentsRead && o.Agents != AgentsRepair:
		return fmt.Errorf("agents are %s or %s, not %q", AgentsRead, AgentsRepair, o.Agents)
	}
	return nil
}

// Objects returns what is installed, in the order in which it is applied.
func Objects(options Options) ([]*unstructured.Unstructured, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	replace := strings.NewReplacer(SourceNamespace, options.Namespace, SourceImage, options.Image)
	objects, err := decode(replace.Replace(objectsYAML))
	if err != nil || options.Agents == AgentsRead {
		return objects, err
	}
	repairing, err := decode(replace.Replace(agentRepairYAML))
	if err != nil {
		return nil, err
	}
	for _, agent := range repairing {
		for i, object := range objects {
			if object.GetKind() == agent.GetKind() && object.GetName() == agent.GetName() && object.GetNamespace() == agent.GetNamespace() {
				objects[i] = agent
			}
		}
	}
	return objects, nil
}

// decode reads a stream of YAML documents.
func decode(text string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096); ; {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading what is to be installed: %w", err)
		case len(object.Object) > 0:
			objects = append(objects, object)
		}
	}
}
