// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command release makes everything that a release consists of in one folder: the images with their bills of materials, manifests, bundle,
// catalog, chart, the plugin of kubectl for every platform, what an image for must-gather is built of, the guard of hosts, release notes, provenance, checksums and, with a key,
// signatures. Two runs on one commit with one Go release and one gcc give the same bytes.
//
//	go run ./hack/release -version 0.1.0 [-output dist/release] [-key cosign-like.pem]
//	go run ./hack/release -check dist/release
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
)

// options say what is released.
type options struct {
	version, image, trafficImage, key, output string
	// older are the folders of bundles that were released before, the oldest first: the catalog has them, too, and the new one replaces the last.
	older []string
}

func main() {
	var o options
	var check string
	flag.StringVar(&o.version, "version", "", "The version without a v.")
	flag.StringVar(&o.image, "image", "ghcr.io/lowlatency-dev/lowlatency-operator", "The image without tag and digest, as it will be pushed.")
	flag.StringVar(&o.trafficImage, "traffic-image", "ghcr.io/lowlatency-dev/lowlatency-traffic", "The same of the image that measures over the network.")
	flag.StringVar(&o.key, "key", "", "A private key (ECDSA P-256, PEM, not encrypted) that signs checksums and provenance; none when empty.")
	flag.StringVar(&o.output, "output", "dist/release", "The folder, which is written anew.")
	flag.StringVar(&check, "check", "", "Check a folder that was made before, and make nothing.")
	flag.Parse()
	o.older = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := errors.New("give -version or -check")
	switch {
	case check != "":
		err = checkFolder(check)
	case o.version != "":
		err = makeRelease(ctx, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1) //nolint:gocritic // The signal handler goes with the process.
	}
}

// versions are what semantic versioning permits, without metadata of the build, which no tag of an image can hold.
var versions = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?$`)

// release is a release while it is made.
type release struct {
	options
	source source
	// digest is that of the image, trafficDigest that of the image that measures over the network.
	digest, trafficDigest string
}

// makeRelease makes one release.
func makeRelease(ctx context.Context, o options) error {
	if !versions.MatchString(o.version) {
		return fmt.Errorf("%q is no version: write three numbers, without a v", o.version)
	}
	described, err := describe(ctx)
	if err != nil {
		return err
	}
	if err := removeRelease(o.output); err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil { //nolint:gosec // Everybody may read it.
		return fmt.Errorf("making the folder: %w", err)
	}
	r := &release{options: o, source: described}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"images", r.makeImages}, {"manifests", r.makeManifests}, {"bundle and catalog", r.makeBundle}, {"chart", r.makeChart},
		{"plugin", r.makePlugins}, {"must-gather", r.makeMustGather}, {"guard", r.makeGuards}, {"release notes", r.makeNotes}, {"provenance", r.makeProvenance}, {"checksums", r.makeSums},
		{"signatures", r.sign},
	} {
		fmt.Fprintln(os.Stderr, "release:", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return checkFolder(o.output)
}

// removeRelease removes the release of a folder. What is anything else is not removed, whatever -output says.
func removeRelease(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("the folder of the release: %w", err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s holds %s, which is no file of a release: name another folder, or empty it", folder, entry.Name())
		}
		if !isOfRelease(entry.Name()) {
			return fmt.Errorf("%s holds %s, which is of no release: name another folder, or empty it", folder, entry.Name())
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the old release: %w", err)
	}
	return nil
}

// isOfRelease reports whether a file has a name that files of releases have.
func isOfRelease(name string) bool {
	return slices.ContainsFunc(append(contents(), sumsFile, "*"+signatureEnd), func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return err == nil && matched
	})
}

// path is that of a file of the release.
func (r *release) path(name string) string { return filepath.Join(r.output, name) }

// reference is the image by its digest.
func (r *release) reference() string { return r.image + "@" + r.digest }

// trafficReference is the image that measures over the network, by its digest.
func (r *release) trafficReference() string { return r.trafficImage + "@" + r.trafficDigest }

// makeImages builds the images for all platforms, and their bills of materials.
func (r *release) makeImages(ctx context.Context) (err error) {
	if r.digest, err = r.makeImage(ctx, "lowlatency-operator", r.image, "image-digest.txt"); err != nil {
		return err
	}
	r.trafficDigest, err = r.makeImage(ctx, traffic, r.trafficImage, "traffic-image-digest.txt")
	return err
}

// makeImage builds one of hack/image's images, writes its name with the digest into a file, and returns the digest.
func (r *release) makeImage(ctx context.Context, which, name, file string) (string, error) {
	folder, err := filepath.Abs(r.output)
	if err != nil {
		return "", fmt.Errorf("finding the folder: %w", err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		return "", fmt.Errorf("finding the source: %w", err)
	}
	text, err := run(ctx, nil, "go", "run", "-C", "hack/image", ".", "-image", which, "-source", here, "-output", folder,
		"-name", name+":v"+r.version, "-version", "v"+r.version)
	if err != nil {
		return "", err
	}
	_, digest, found := strings.Cut(strings.TrimSpace(text), "@")
	if !found {
		return "", fmt.Errorf("hack/image has printed no digest: %q", text)
	}
	return digest, os.WriteFile(r.path(file), []byte(name+"@"+digest+"\n"), 0o644) //nolint:gosec // Everybody may read it.
}

// makeManifests writes what can be applied as it is.
func (r *release) makeManifests(context.Context) error {
	of := func(folder string, components ...string) kustomization.Overlay {
		return kustomization.Overlay{Resources: []string{folder}, Components: components}
	}
	for name, overlay := range map[string]kustomization.Overlay{
		"install.yaml": of("openshift"), "install-repair.yaml": of("openshift-repair"), "install-kubernetes.yaml": of("default"),
		"install-kubernetes-monitoring.yaml": of("default", "prometheus-cert-manager"), "crds.yaml": of("crd"),
		"dashboard-console.yaml": of("dashboard"), "dashboard-grafana.yaml": of("dashboard-grafana"),
	} {
		if err := r.writeManifest(name, overlay); err != nil {
			return err
		}
	}
	return nil
}

// makeBundle makes the bundle of Operator Lifecycle Manager, and a catalog that holds it as a whole.
func (r *release) makeBundle(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // Only temporary files are left.
	bundle, catalog := filepath.Join(scratch, "bundle"), filepath.Join(scratch, "catalog")
	arguments := append([]string{
		"run", "./hack/bundle", "-version", r.version, "-image", r.reference(), "-traffic-image", r.trafficReference(), "-output", bundle, "-catalog", catalog,
	}, r.older...)
	if _, err := run(ctx, nil, "go", arguments...); err != nil {
		return err
	}
	if err := r.archiveFolder("bundle-"+r.version+".tar.gz", bundle, "bundle"); err != nil {
		return err
	}
	return r.archiveFolder("catalog-"+r.version+".tar.gz", catalog, "catalog")
}

// makeChart packs the chart as Helm does: in a folder of its name.
func (r *release) makeChart(ctx context.Context) error {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // Only temporary files are left.
	if _, err := run(ctx, nil, "go", "run", "./hack/helm", "-version", r.version, "-image", r.reference(), "-traffic-image", r.trafficReference(), "-output", scratch); err != nil {
		return err
	}
	return r.archiveFolder("lowlatency-operator-"+r.version+".tgz", scratch, "lowlatency-operator")
}

// makeNotes takes the section of the version out of CHANGELOG.md.
func (r *release) makeNotes(context.Context) error {
	content, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return fmt.Errorf("reading the changes: %w", err)
	}
	notes, err := notesOf(string(content), r.version)
	if err != nil {
		return err
	}
	notes += "\n## Images\n\n- `" + r.reference() + "`\n- `" + r.trafficReference() + "`, which measures over the network\n\nThe image for `oc adm must-gather` is built of `" +
		mustGather + "-" + r.version + ".tar.gz` and your release of OpenShift, as docs/cli.md says.\n\nCheck every file with `sha256sum --check SHA256SUMS`; docs/release.md says how to check signatures.\n"
	return os.WriteFile(r.path("RELEASE_NOTES.md"), []byte(notes), 0o644) //nolint:gosec // Everybody may read it.
}

// notesOf is the section of a version; a version before its release takes what is not released yet.
func notesOf(changes, version string) (string, error) {
	for _, title := range []string{"## " + version, "## Unreleased"} {
		_, rest, found := strings.Cut("\n"+changes, "\n"+title)
		if !found {
			continue
		}
		_, section, _ := strings.Cut(rest, "\n")
		section, _, _ = strings.Cut(section, "\n## ")
		return "# Low Latency Node Operator " + version + "\n\n" + strings.TrimSpace(section) + "\n", nil
	}
	return "", fmt.Errorf("CHANGELOG.md has neither a section %q nor one of what is not released", version)
}
