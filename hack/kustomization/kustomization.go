// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kustomization builds the manifests below config/ with kustomize's own library, for what is generated from them.
package kustomization

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// Build runs kustomize on a folder.
func Build(folder string) ([]*unstructured.Unstructured, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, fmt.Errorf("building %s: %w", folder, err)
	}
	objects := make([]*unstructured.Unstructured, 0, resources.Size())
	for _, resource := range resources.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("building %s: %w", folder, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("building %s: %w", folder, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Overlay is what a kustomization says that stands in a folder beside those that it names.
type Overlay struct {
	Resources  []string `json:"resources"`
	Components []string `json:"components,omitempty"`
	Images     []Image  `json:"images,omitempty"`
}

// Image is what an image is replaced by; a digest wins over a tag.
type Image struct {
	Name    string `json:"name"`
	NewName string `json:"newName,omitempty"`
	NewTag  string `json:"newTag,omitempty"`
	Digest  string `json:"digest,omitempty"`
}

// BuildOverlay runs kustomize on an overlay of folders in a source folder, such as config. Nothing of it stays there.
func BuildOverlay(source string, overlay Overlay) (objects []*unstructured.Unstructured, err error) {
	folder, err := os.MkdirTemp(source, ".overlay.")
	if err != nil {
		return nil, fmt.Errorf("making an overlay: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	text, err := yaml.Marshal(struct {
		Overlay     `json:",inline"`
		SortOptions map[string]string `json:"sortOptions"`
	}{overlay.below(), map[string]string{"order": "legacy"}})
	if err != nil {
		return nil, fmt.Errorf("writing an overlay: %w", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), text, 0o600); err != nil {
		return nil, fmt.Errorf("writing an overlay: %w", err)
	}
	return Build(folder)
}

// below is the overlay as a folder beside those that it names sees it.
func (o Overlay) below() Overlay {
	up := func(names []string) []string {
		all := make([]string, 0, len(names))
		for _, name := range names {
			all = append(all, filepath.Join("..", name))
		}
		return all
	}
	o.Resources, o.Components = up(o.Resources), up(o.Components)
	return o
}
