// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command image builds container images without a container engine, a registry or a base image. The operator's programs are static, so
// that its image has them and their licence alone; the image with the C program of measurements has the C library below it, from a
// package of Debian. It writes an OCI archive with one image for each platform, which containerd, podman, skopeo and docker load,
// and a bill of materials for each. Two builds of one commit give one digest.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/lowlatency-dev/lowlatency-operator/hack/image/licences"
	"github.com/lowlatency-dev/lowlatency-operator/hack/image/signing"
)

// options say what is built and where it goes.
type options struct {
	source    string
	folder    string
	reference string
	platforms string
	version   string
	push      string
	// image is the name of the recipe.
	image string
	// key is the file of a private key that signs what is pushed.
	key string
	// publish is the folder of a release, whose images are pushed instead of being built; to another registry when that is named.
	publish, registry string
	// sign are images in registries, and signFiles are files, with commas between them, that are signed, and nothing else is done.
	sign, signFiles string
	// program is one of cmd/ that was built before, of which a bill of materials is written into the file materials, and the licences of
	// its parts into the file texts; nothing else is made then. With beside, lowlatency-traffic is built into that file, too.
	program, materials, texts, beside string
}

func main() {
	var o options
	flag.StringVar(&o.source, "source", ".", "the folder with the source")
	flag.StringVar(&o.image, "image", operatorImage, "the image to build: "+strings.Join(recipeNames(), " or "))
	flag.StringVar(&o.folder, "output", "dist", "the folder for the archive and the bills of materials")
	flag.StringVar(&o.reference, "name", "", "the name under which the image is loaded; that of -image with the tag latest without it")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "the platforms, with commas between them")
	flag.StringVar(&o.version, "version", "unknown", "the version that the programs and labels state")
	flag.StringVar(&o.push, "push", "", "push to this name, too, with the credentials of docker's or podman's configuration")
	flag.StringVar(&o.key, "key", "", "a private key (ECDSA P-256, PEM, not encrypted) that signs the image which -push pushes, and what the next flags name")
	flag.StringVar(&o.publish, "publish", "", "build nothing, but push the images of a release in this folder; with -key, sign them and say where they come from")
	flag.StringVar(&o.registry, "registry", "", "with -publish, the registry and folder in the place of those that the images are named after")
	flag.StringVar(&o.sign, "sign", "", "build nothing, but sign these images in registries, with commas between them")
	flag.StringVar(&o.signFiles, "sign-files", "", "build nothing, but write signatures of these files beside them, with commas between them")
	flag.StringVar(&o.program, "program", "", "write nothing but the bill of materials and the licences of this program of cmd/, for the one platform of -platforms")
	flag.StringVar(&o.materials, "materials", "materials.spdx.json", "the file for the bill of materials of -program")
	flag.StringVar(&o.texts, "licences", "THIRD-PARTY", "the file for the licences of the parts of -program")
	flag.StringVar(&o.beside, "beside", "", "with -program, build lowlatency-traffic for the platform into this file, and list it in the bill of materials")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.work()(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1) //nolint:gocritic // The signal handler goes with the process.
	}
}

// work is what the options ask for.
func (o options) work() func(context.Context, options) error {
	switch {
	case o.program != "":
		return describeProgram
	case o.publish != "":
		return publish
	case o.sign != "" || o.signFiles != "":
		return sign
	}
	return run
}

func run(ctx context.Context, o options) error {
	r, err := recipeOf(o.image)
	if err != nil {
		return err
	}
	reference, err := name.NewTag(cmp.Or(o.reference, r.name+":latest"))
	if err != nil {
		return fmt.Errorf("-name: %w", err)
	}
	platforms, err := parsePlatforms(o.platforms)
	if err != nil {
		return err
	}
	source, err := describeSource(ctx, o.source, o.version)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // Only temporary files are left.
	images := make([]platformImage, 0, len(platforms))
	for _, platform := range platforms {
		fmt.Fprintf(os.Stderr, "image: building %s for %s\n", r.name, platform)
		image, err := buildImage(ctx, source, r, platform, filepath.Join(scratch, platform.Architecture))
		if err != nil {
			return fmt.Errorf("%s: %w", platform, err)
		}
		images = append(images, image)
	}
	index := indexOf(source, images)
	if err := write(o.folder, r.prefix, reference, index, images); err != nil {
		return err
	}
	if o.push != "" {
		return pushSigned(ctx, o, index, images)
	}
	return nil
}

// pushSigned pushes an image that was built, and signs it when there is a key.
func pushSigned(ctx context.Context, o options, index v1.ImageIndex, images []platformImage) error {
	reference, err := name.NewTag(o.push)
	if err != nil {
		return fmt.Errorf("-push: %w", err)
	}
	pushed, err := push(ctx, reference, index, images)
	if err != nil || o.key == "" {
		return err
	}
	key, err := signing.ReadKey(o.key)
	if err != nil {
		return err
	}
	return vouch(ctx, key, pushed, images)
}

// describeProgram writes the bill of materials of one program for any platform.
func describeProgram(ctx context.Context, o options) error {
	platform, err := v1.ParsePlatform(o.platforms)
	if err != nil {
		return fmt.Errorf("-platforms: %w", err)
	}
	source, err := describeSource(ctx, o.source, o.version)
	if err != nil {
		return err
	}
	path := filepath.Base(o.program)
	name := strings.TrimSuffix(path, ".exe")
	modules, err := licences.Of(ctx, source.folder, []string{platform.OS + "/" + platform.Architecture}, "./cmd/"+name)
	if err != nil {
		return err
	}
	var c foreign
	if o.beside != "" {
		if c, err = trafficProgram(ctx, source, platform.Architecture, o.beside); err != nil {
			return err
		}
	}
	materials, err := materialsOf(source, name, *platform, []file{{from: o.program, path: path}}, modules, c.parts)
	if err != nil {
		return err
	}
	if err := os.WriteFile(o.texts, licences.Texts(modules), 0o644); err != nil { //nolint:gosec // Everybody may read it.
		return err
	}
	return os.WriteFile(o.materials, materials, 0o644) //nolint:gosec // Everybody may read it.
}

// parsePlatforms reads "linux/amd64,linux/arm64".
func parsePlatforms(list string) ([]v1.Platform, error) {
	var platforms []v1.Platform
	for text := range strings.SplitSeq(list, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, fmt.Errorf("-platforms: %w", err)
		}
		if platform.OS != "linux" || platform.Architecture == "" || platform.Variant != "" {
			return nil, fmt.Errorf("-platforms: %q is not a platform of the operator, which runs on Linux", text)
		}
		platforms = append(platforms, *platform)
	}
	return platforms, nil
}

// write writes the archive and the bills of materials, and prints what pods can be told to run.
func write(folder, prefix string, reference name.Tag, index v1.ImageIndex, images []platformImage) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(folder, prefix+"image.tar")
	if err := writeArchive(archive, reference, index); err != nil {
		return err
	}
	for _, image := range images {
		path := filepath.Join(folder, prefix+"image-"+image.platform.Architecture+".spdx.json")
		if err := os.WriteFile(path, image.materials, 0o644); err != nil { //nolint:gosec // Everybody may read it.
			return err
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", reference.Name(), digest)
	return nil
}

// access is how registries are asked: with the credentials of docker's or podman's configuration.
func access(ctx context.Context) []remote.Option {
	return []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
}

// push pushes the image, and the bills of materials as what refers to it, and returns where it is.
func push(ctx context.Context, reference name.Tag, index v1.ImageIndex, images []platformImage) (name.Digest, error) {
	failure := remote.WriteIndex(reference, index, access(ctx)...)
	for _, image := range images {
		referrer, err := image.referrer()
		if err != nil {
			return name.Digest{}, err
		}
		digest, err := referrer.Digest()
		if err != nil {
			return name.Digest{}, err
		}
		failure = errors.Join(failure, remote.Write(reference.Context().Digest(digest.String()), referrer, access(ctx)...))
	}
	if failure != nil {
		return name.Digest{}, fmt.Errorf("pushing %s: %w", reference, failure)
	}
	digest, err := index.Digest()
	return reference.Context().Digest(digest.String()), err
}
