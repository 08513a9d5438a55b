// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command bundle makes the bundle of Operator Lifecycle Manager from config/olm: what a bundle can hold, and, for the installer, what it
// cannot.
//
//	go run ./hack/bundle [-image registry/name@sha256:...] [-traffic-image registry/name@sha256:...] [-version 1.2.3] [-replaces 1.2.2] [-output bundle]
//
// With -catalog it then writes a file-based catalog of older bundles, which are its arguments, and of this one; with -catalog-only it
// makes no bundle, and the catalog holds the arguments alone.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
)

// release is what differs from release to release; empty is as config/manifests/base.yaml says.
type release struct {
	version, image, trafficImage, replaces string
}

func main() {
	var r release
	var source, output, installer, catalog, bundleImage string
	var catalogOnly bool
	flag.StringVar(&r.version, "version", "", "The version without a v; as in config/manifests/base.yaml when empty.")
	flag.StringVar(&r.image, "image", "", "The image, by digest for disconnected clusters; as in config/manifests/base.yaml when empty.")
	flag.StringVar(&r.trafficImage, "traffic-image", "", "The image that measures over the network, for relatedImages; as in config/manifests/base.yaml when empty.")
	flag.StringVar(&r.replaces, "replaces", "", "The version that this one replaces; that of the newest older bundle when empty.")
	flag.StringVar(&source, "source", "config", "The folder of the manifests.")
	flag.StringVar(&output, "output", "bundle", "The folder of the bundle.")
	flag.StringVar(&installer, "installer", "", "The folder in which the objects of the installer are written; empty for nowhere.")
	flag.StringVar(&catalog, "catalog", "", "The folder in which a catalog is written; empty for nowhere.")
	flag.StringVar(&bundleImage, "bundle-image", "",
		"The image of the bundles in the catalog, without a tag. Without it the catalog holds the bundles themselves.")
	flag.BoolVar(&catalogOnly, "catalog-only", false, "Make no bundle: the catalog holds the bundles that are the arguments.")
	flag.Parse()
	bundles := flag.Args()
	var err error
	if !catalogOnly {
		if r.replaces, err = replaced(r.replaces, bundles); err == nil {
			err = run(r, source, output, installer)
		}
		bundles = append(bundles, output)
	}
	if err == nil && catalog != "" {
		err = writeCatalog(catalog, bundleImage, bundles)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

// replaced is the version that a new bundle replaces: the given one, else that of the newest of the older bundles. One that replaced none beside
// older ones would be a second head of their channel.
func replaced(version string, older []string) (string, error) {
	if version != "" || len(older) == 0 {
		return version, nil
	}
	csv, err := readObject(filepath.Join(older[len(older)-1], "manifests", packageName+".clusterserviceversion.yaml"))
	if err != nil {
		return "", err
	}
	version, _, err = unstructured.NestedString(csv.Object, "spec", "version")
	return version, err
}

func run(r release, source, output, installer string) error {
	objects, err := kustomization.Build(filepath.Join(source, "olm"))
	if err != nil {
		return err
	}
	parts, err := divide(objects)
	if err != nil {
		return err
	}
	if err := writeBundle(r, source, output, parts); err != nil || installer == "" {
		return err
	}
	return writeInstaller(source, installer, parts)
}

// writeBundle writes the bundle anew into a folder.
func writeBundle(r release, source, output string, p *parts) error {
	csv, err := newClusterServiceVersion(r, source, p)
	if err != nil {
		return err
	}
	// What else is in the folder is somebody's.
	for _, name := range []string{"manifests", "metadata", "tests", "bundle.Dockerfile"} {
		if err := os.RemoveAll(filepath.Join(output, name)); err != nil {
			return err
		}
	}
	version, _, err := unstructured.NestedString(csv.Object, "spec", "version")
	if err != nil {
		return err
	}
	channels, err := channelsOf(version)
	if err != nil {
		return err
	}
	about := annotations(channels)
	files := map[string]any{"manifests/lowlatency-operator.clusterserviceversion.yaml": csv.Object}
	for _, object := range append(p.definitions, p.bundled...) {
		files["manifests/"+fileName(object)] = object.Object
	}
	files["metadata/annotations.yaml"] = map[string]any{"annotations": about}
	files["tests/scorecard/config.yaml"] = scorecard()
	for name, content := range files {
		text, err := yaml.Marshal(content)
		if err != nil {
			return err
		}
		if err := write(filepath.Join(output, name), string(text)); err != nil {
			return err
		}
	}
	return write(filepath.Join(output, "bundle.Dockerfile"), dockerfile(about))
}

// fileName is the name of an object's file, such as services_lowlatency-operator.yaml.
func fileName(object *unstructured.Unstructured) string {
	return strings.ToLower(object.GetKind()) + "_" + object.GetName() + ".yaml"
}

// writeInstaller writes what the installer installs, and the agents that repair.
func writeInstaller(source, folder string, p *parts) error {
	if err := writeObjects(filepath.Join(folder, "objects.yaml"), p.installed); err != nil {
		return err
	}
	repairing, err := kustomization.Build(filepath.Join(source, "openshift-repair"))
	if err != nil {
		return err
	}
	var agents []*unstructured.Unstructured
	for _, object := range repairing {
		if object.GetKind() == "DaemonSet" {
			agents = append(agents, object)
		}
	}
	return writeObjects(filepath.Join(folder, "agent-repair.yaml"), agents)
}

func writeObjects(path string, objects []*unstructured.Unstructured) error {
	var text strings.Builder
	text.WriteString("# Generated from config/olm by hack/bundle.\n")
	for _, object := range objects {
		content, err := yaml.Marshal(object.Object)
		if err != nil {
			return err
		}
		text.WriteString("---\n" + string(content))
	}
	return write(path, text.String())
}

func write(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // A part of the source tree.
		return err
	}
	return os.WriteFile(path, []byte(content), 0o644) //nolint:gosec // A part of the source tree.
}
