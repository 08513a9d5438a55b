// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
)

// OperatorImage is the image as make image builds it, imported on the nodes; no registry has it.
const OperatorImage = "lab.local/lowlatency-operator:lab"

// TrafficImage is the image that measures over the network, likewise.
const TrafficImage = "lab.local/lowlatency-traffic:lab"

// BuildPrograms builds packages of the project, by their paths in it, into a folder: static, as programs are released.
func BuildPrograms(ctx context.Context, folder string, packages ...string) error {
	named := make([]string, len(packages))
	for i, path := range packages {
		named[i] = module + "/" + path
	}
	command := exec.CommandContext(ctx, "go", slices.Concat([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", folder + "/"}, named)...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", strings.Join(packages, ", "), err, out)
	}
	return nil
}

// BuildOperatorImage writes OperatorImage for this architecture into an archive, by the program that builds the one that is released.
func BuildOperatorImage(ctx context.Context, path string) error {
	return buildImage(ctx, "lowlatency-operator", OperatorImage, "image.tar", path)
}

// BuildTrafficImage writes TrafficImage.
func BuildTrafficImage(ctx context.Context, path string) error {
	return buildImage(ctx, "lowlatency-traffic", TrafficImage, "traffic-image.tar", path)
}

// buildImage writes one of the project's images, of which the program that builds it makes an archive.
func buildImage(ctx context.Context, image, name, archive, path string) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "lab-image-")
	if err != nil {
		return fmt.Errorf("making a folder for image %s: %w", image, err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	command := exec.CommandContext(ctx, "go", "run", ".", "-image", image, "-source", root, "-output", folder, "-name", name,
		"-platforms", "linux/"+runtime.GOARCH, "-version", "lab")
	command.Dir = filepath.Join(root, "hack", "image")
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building image %s: %w: %s", image, err, out)
	}
	return copyContent(filepath.Join(folder, archive), path, 0o644)
}

// Deployment is what make deploy applies, in its order: a folder of config/ with components of it, and OperatorImage.
func (p Programs) Deployment(ctx context.Context, components ...string) ([]*unstructured.Unstructured, error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(root, "hack", "kustomize-build.sh"),
		append([]string{p.File("kustomize"), "default", OperatorImage, TrafficImage}, components...)...)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	deployment, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("printing the deployment: %w: %s", err, &stderr)
	}
	var objects []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(deployment), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the deployment: %w", err)
		}
		if object.Object != nil {
			objects = append(objects, object)
		}
	}
}
