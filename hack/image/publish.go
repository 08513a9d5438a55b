// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/signing"
)

// provenanceFile is the statement in the folder of a release that says where everything in it comes from.
const provenanceFile = "provenance.intoto.json"

// publish pushes the images of a release under the names that their archives have, with their bills of materials. With a key, it signs them
// and attaches the provenance.
func publish(ctx context.Context, o options) error {
	var signer *publisher
	if o.key != "" {
		key, err := signing.ReadKey(o.key)
		if err != nil {
			return err
		}
		provenance, err := os.ReadFile(filepath.Join(o.publish, provenanceFile))
		if err != nil {
			return fmt.Errorf("the provenance of the release: %w", err)
		}
		signer = &publisher{key, provenance}
	}
	for _, one := range recipes() {
		if err := publishImage(ctx, o, one.prefix, signer); err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
	}
	return nil
}

// publisher vouches for what is published.
type publisher struct {
	key        signing.Key
	provenance []byte
}

// publishImage pushes one image of a release; what it pushed is printed.
func publishImage(ctx context.Context, o options, prefix string, signer *publisher) error {
	scratch, err := os.MkdirTemp("", "publish-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // Only temporary files are left.
	reference, index, err := readArchive(filepath.Join(o.publish, prefix+"image.tar"), scratch)
	if err != nil {
		return err
	}
	if o.registry != "" {
		moved := strings.TrimSuffix(o.registry, "/") + "/" + path.Base(reference.RepositoryStr()) + ":" + reference.TagStr()
		if reference, err = name.NewTag(moved); err != nil {
			return fmt.Errorf("-registry: %w", err)
		}
	}
	images, err := platformImages(index, o.publish, prefix)
	if err != nil {
		return err
	}
	pushed, err := push(ctx, reference, index, images)
	if err != nil {
		return err
	}
	fmt.Println(pushed)
	if signer == nil {
		return nil
	}
	if err := vouch(ctx, signer.key, pushed, images); err != nil {
		return err
	}
	return signer.key.Attest(ctx, pushed, signer.provenance, access(ctx)...)
}

// vouch signs an image that was pushed, and states of the image of each platform in it what it is made of.
func vouch(ctx context.Context, key signing.Key, pushed name.Digest, images []platformImage) error {
	if err := key.SignImage(ctx, pushed, access(ctx)...); err != nil {
		return err
	}
	for _, image := range images {
		digest, statement, err := image.statement(pushed.Context())
		if err != nil {
			return err
		}
		if err := key.Attest(ctx, digest, statement, access(ctx)...); err != nil {
			return err
		}
	}
	return nil
}

// platformImages are the images of an index with their bills of materials, which lie in files of a folder whose names begin with a prefix.
func platformImages(index v1.ImageIndex, folder, prefix string) ([]platformImage, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	images := make([]platformImage, 0, len(manifest.Manifests))
	for i := range manifest.Manifests {
		described := &manifest.Manifests[i]
		if described.Platform == nil {
			return nil, fmt.Errorf("the archive holds an image of no platform, %s", described.Digest)
		}
		image, err := index.Image(described.Digest)
		if err != nil {
			return nil, err
		}
		materials, err := os.ReadFile(filepath.Join(folder, prefix+"image-"+described.Platform.Architecture+".spdx.json"))
		if err != nil {
			return nil, fmt.Errorf("the bill of materials: %w", err)
		}
		images = append(images, platformImage{platform: *described.Platform, image: image, materials: materials})
	}
	return images, nil
}

// readArchive reads what writeArchive has written, by way of a folder.
func readArchive(archive, folder string) (name.Tag, v1.ImageIndex, error) {
	if err := unpackArchive(archive, folder); err != nil {
		return name.Tag{}, nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	files, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	manifest, err := files.IndexManifest()
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("reading %s: %w", archive, err)
	}
	if len(manifest.Manifests) != 1 {
		return name.Tag{}, nil, fmt.Errorf("%s holds %d images, want one", archive, len(manifest.Manifests))
	}
	reference, err := name.NewTag(manifest.Manifests[0].Annotations[nameKey])
	if err != nil {
		return name.Tag{}, nil, fmt.Errorf("the name of the image in %s: %w", archive, err)
	}
	index, err := files.ImageIndex(manifest.Manifests[0].Digest)
	return reference, index, err
}

// unpackArchive unpacks the files of an archive, which cannot leave the folder.
func unpackArchive(archive, folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // A folder.
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // It was only read.
	for reader := tar.NewReader(in); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		if err := unpackFile(root, header.Name, reader); err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, file string, content io.Reader) error {
	if err := root.MkdirAll(filepath.Dir(filepath.FromSlash(file)), 0o755); err != nil {
		return err
	}
	out, err := root.Create(filepath.FromSlash(file))
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}

// sign signs images that are in registries, and files.
func sign(ctx context.Context, o options) error {
	if o.key == "" {
		return errors.New("signing needs a key: name it with -key")
	}
	key, err := signing.ReadKey(o.key)
	if err != nil {
		return err
	}
	for _, file := range listed(o.signFiles) {
		if err := key.File(ctx, file); err != nil {
			return err
		}
	}
	for _, image := range listed(o.sign) {
		if err := signPushed(ctx, key, image); err != nil {
			return err
		}
	}
	return nil
}

// signPushed signs an image by its tag or digest, and prints what it has signed.
func signPushed(ctx context.Context, key signing.Key, image string) error {
	reference, err := name.ParseReference(image)
	if err != nil {
		return fmt.Errorf("-sign: %w", err)
	}
	found, err := remote.Get(reference, access(ctx)...)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", image, err)
	}
	pushed := reference.Context().Digest(found.Digest.String())
	fmt.Println(pushed)
	return key.SignImage(ctx, pushed, access(ctx)...)
}

// listed are the words between commas.
func listed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
