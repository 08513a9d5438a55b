// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
)

const (
	// nobody is the user and group that the programs run as, where a pod says nothing else; distroless's "nonroot".
	nobody = "65532:65532"
	// materialsType is the media type of a bill of materials.
	materialsType types.MediaType = "application/spdx+json"
	// materialsPredicate says of a statement that a bill of materials is in it (in-toto/attestation, spec/predicates/spdx.md).
	materialsPredicate = "https://spdx.dev/Document"
	// emptyConfig is the media type of no configuration (image-spec, manifest.md, "Guidance for an Empty Descriptor").
	emptyConfig types.MediaType = "application/vnd.oci.empty.v1+json"
)

// platformImage is the image for one platform.
type platformImage struct {
	platform v1.Platform
	image    v1.Image
	// materials is the bill of materials, as SPDX in JSON.
	materials []byte
}

// buildImage compiles the programs into the folder, and makes the image of them.
func buildImage(ctx context.Context, s source, r recipe, platform v1.Platform, folder string) (platformImage, error) {
	if err := s.build(ctx, r.packages(), platform.Architecture, folder); err != nil {
		return platformImage{}, err
	}
	modules, err := licences.Of(ctx, s.folder, []string{platform.OS + "/" + platform.Architecture}, r.packages()...)
	if err != nil {
		return platformImage{}, err
	}
	texts := filepath.Join(folder, "THIRD-PARTY")
	if err := os.WriteFile(texts, licences.Texts(modules), 0o600); err != nil {
		return platformImage{}, err
	}
	built := make([]file, 0, len(r.programs))
	for _, program := range r.programs {
		built = append(built, file{path: program, from: filepath.Join(folder, program), mode: 0o755})
	}
	var c foreign
	if r.traffic {
		if c, err = trafficWithLibrary(ctx, s, platform.Architecture, folder); err != nil {
			return platformImage{}, err
		}
	}
	materials, err := materialsOf(s, r.name, platform, built, modules, c.parts)
	if err != nil {
		return platformImage{}, err
	}
	files := slices.Concat(built, []file{
		{path: "licenses/LICENSE", from: filepath.Join(s.folder, "LICENSE"), mode: 0o644},
		{path: "licenses/THIRD-PARTY", from: texts, mode: 0o644},
	}, c.files)
	layer, err := layerOf(files, s.committed)
	if err != nil {
		return platformImage{}, err
	}
	image, err := imageOf(s, r, platform, layer)
	return platformImage{platform: platform, image: image, materials: materials}, err
}

// imageOf is an image of one layer.
func imageOf(s source, r recipe, platform v1.Platform, layer v1.Layer) (v1.Image, error) {
	image, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: s.committed}, CreatedBy: "hack/image", Comment: "the programs and the licences of their parts"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Created = v1.Time{Time: s.committed}
	config.OS, config.Architecture = platform.OS, platform.Architecture
	config.Config = v1.Config{Entrypoint: []string{"/" + r.programs[0]}, User: nobody, WorkingDir: "/", Labels: r.labels(s)}
	image, err = mutate.ConfigFile(image, config)
	if err != nil {
		return nil, fmt.Errorf("the configuration of the image: %w", err)
	}
	return image, nil
}

// labels of the image. OpenShift's certification asks for the short ones, the others are of the OCI image specification.
func (r recipe) labels(s source) map[string]string {
	return map[string]string{
		"name":                                   r.name,
		"vendor":                                 "The Low Latency Node Operator Authors",
		"version":                                s.version,
		"release":                                s.version,
		"summary":                                r.summary,
		"description":                            r.description,
		"org.opencontainers.image.licenses":      "Apache-2.0",
		"org.opencontainers.image.version":       s.version,
		"org.opencontainers.image.revision":      s.revision,
		"org.opencontainers.image.created":       s.committed.Format("2006-01-02T15:04:05Z"),
		"org.opencontainers.image.title":         r.title,
		"org.opencontainers.image.source":        "https://github.com/lowlatency-dev/lowlatency-operator",
		"org.opencontainers.image.documentation": "https://github.com/lowlatency-dev/lowlatency-operator/blob/main/README.md",
	}
}

// indexOf is the image of all platforms, among which a container runtime chooses.
func indexOf(s source, images []platformImage) v1.ImageIndex {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image.image, Descriptor: v1.Descriptor{Platform: &image.platform},
		})
	}
	annotated := mutate.Annotations(index, map[string]string{
		"org.opencontainers.image.version": s.version, "org.opencontainers.image.revision": s.revision,
	})
	return annotated.(v1.ImageIndex) //nolint:forcetypeassert // Annotations returns what it was given.
}

// referrer is the bill of materials as an artifact that refers to the image, which registries list for it.
func (p platformImage) referrer() (v1.Image, error) {
	subject, err := partial.Descriptor(p.image)
	if err != nil {
		return nil, err
	}
	subject.Platform = nil
	artifact, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), emptyConfig),
		mutate.Addendum{Layer: static.NewLayer(p.materials, materialsType)})
	if err != nil {
		return nil, err
	}
	return mutate.Subject(artifact, *subject).(v1.Image), nil //nolint:forcetypeassert // Subject returns what it was given.
}

// statement is the bill of materials as an in-toto statement about the image in a repository, as cosign attest --type spdxjson makes it.
func (p platformImage) statement(repository name.Repository) (name.Digest, []byte, error) {
	hash, err := p.image.Digest()
	if err != nil {
		return name.Digest{}, nil, err
	}
	image := repository.Digest(hash.String())
	content, err := json.Marshal(map[string]any{
		"_type": "https://in-toto.io/Statement/v1", "predicateType": materialsPredicate, "predicate": json.RawMessage(p.materials),
		"subject": []any{map[string]any{"name": repository.Name(), "digest": map[string]string{hash.Algorithm: hash.Hex}}},
	})
	if err != nil {
		return name.Digest{}, nil, fmt.Errorf("the bill of materials of %s: %w", image, err)
	}
	return image, content, nil
}
