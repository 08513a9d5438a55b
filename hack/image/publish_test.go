// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// newRegistry is a registry on this machine, by its address.
func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// newKeys are the files of a private key and of its public one.
func newKeys(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	content, err := x509.MarshalECPrivateKey(key)
	must(t, err)
	others, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	must(t, err)
	folder := t.TempDir()
	private, public = filepath.Join(folder, "private.pem"), filepath.Join(folder, "public.pem")
	must(t, os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: content}), 0o600))
	must(t, os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: others}), 0o600))
	return private, public
}

// newImages is an image for two platforms without any program.
func newImages(t *testing.T) (v1.ImageIndex, []platformImage) {
	t.Helper()
	platforms, err := parsePlatforms("linux/amd64,linux/arm64")
	must(t, err)
	images := make([]platformImage, 0, len(platforms))
	for _, platform := range platforms {
		image, err := random.Image(64, 1)
		must(t, err)
		images = append(images, platformImage{platform: platform, image: image, materials: []byte(`{"name":"parts for ` + platform.Architecture + `"}`)})
	}
	return indexOf(source{version: "v1.2.3"}, images), images
}

// newRelease is a folder with what publish reads of a release, with the digests of its images by their names.
func newRelease(t *testing.T) (string, map[string]string) {
	t.Helper()
	folder, digests := t.TempDir(), map[string]string{}
	subjects := make([]string, 0, len(recipes()))
	for _, one := range recipes() {
		index, images := newImages(t)
		reference, err := name.NewTag("registry.example.com/team/" + one.name + ":v1.2.3")
		must(t, err)
		must(t, writeArchive(filepath.Join(folder, one.prefix+"image.tar"), reference, index))
		for _, image := range images {
			must(t, os.WriteFile(filepath.Join(folder, one.prefix+"image-"+image.platform.Architecture+".spdx.json"), image.materials, 0o600))
		}
		digest, err := index.Digest()
		must(t, err)
		digests[one.name] = digest.String()
		subjects = append(subjects, `{"name":"`+one.name+`","digest":{"sha256":"`+digest.Hex+`"}}`)
	}
	statement := `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1","subject":[` + strings.Join(subjects, ",") +
		`],"predicate":{"buildDefinition":{"buildType":"test"},"runDetails":{"builder":{"id":"test"}}}}`
	must(t, os.WriteFile(filepath.Join(folder, provenanceFile), []byte(statement), 0o600))
	return folder, digests
}

// tagsOf are the tags of a repository, those of signatures and statements by their ends.
func tagsOf(t *testing.T, repository string) map[string]int {
	t.Helper()
	parsed, err := name.NewRepository(repository)
	must(t, err)
	tags, err := remote.List(parsed)
	must(t, err)
	found := map[string]int{}
	for _, tag := range tags {
		if strings.HasPrefix(tag, "sha256-") {
			tag = filepath.Ext(tag)
		}
		found[tag]++
	}
	return found
}

// TestPublish: the images come to the registry with the digests that they had, with bills of materials, signatures and provenance.
func TestPublish(t *testing.T) {
	folder, digests := newRelease(t)
	private, _ := newKeys(t)
	for what, tc := range map[string]struct {
		key  string
		tags map[string]int
	}{
		"with a key":    {private, map[string]int{"v1.2.3": 1, ".sig": 3, ".att": 3}},
		"without a key": {"", map[string]int{"v1.2.3": 1}},
	} {
		t.Run(what, func(t *testing.T) {
			mirror := newRegistry(t) + "/mirror"
			must(t, publish(t.Context(), options{publish: folder, registry: mirror, key: tc.key}))
			for image, digest := range digests {
				pushed, err := name.NewTag(mirror + "/" + image + ":v1.2.3")
				must(t, err)
				index, err := remote.Index(pushed)
				must(t, err)
				if got, err := index.Digest(); err != nil || got.String() != digest {
					t.Errorf("%s is %s, %v, want %s", image, got, err, digest)
				}
				if diff := cmp.Diff(tc.tags, tagsOf(t, mirror+"/"+image)); diff != "" {
					t.Errorf("tags of %s (-want +got):\n%s", image, diff)
				}
				manifest, err := index.IndexManifest()
				must(t, err)
				for _, platform := range manifest.Manifests {
					referrers, err := remote.Referrers(pushed.Context().Digest(platform.Digest.String()))
					must(t, err)
					found, err := referrers.IndexManifest()
					must(t, err)
					if len(found.Manifests) != 1 {
						t.Errorf("%d refer to %s, want its bill of materials alone", len(found.Manifests), platform.Digest)
					}
				}
			}
		})
	}
}

// TestPushSigns: with a key, what is pushed as it is built is signed, and so is any image by its name.
func TestPushSigns(t *testing.T) {
	private, _ := newKeys(t)
	repository := newRegistry(t) + "/team/operator"
	index, images := newImages(t)
	must(t, pushSigned(t.Context(), options{push: repository + ":v1", key: private}, index, images))
	if diff := cmp.Diff(map[string]int{"v1": 1, ".sig": 3, ".att": 2}, tagsOf(t, repository)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	other, images := newImages(t)
	must(t, pushSigned(t.Context(), options{push: repository + ":v2"}, other, images))
	must(t, sign(t.Context(), options{sign: repository + ":v2", key: private}))
	if diff := cmp.Diff(map[string]int{"v1": 1, "v2": 1, ".sig": 6, ".att": 2}, tagsOf(t, repository)); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	if err := sign(t.Context(), options{sign: repository + ":v2"}); err == nil || !strings.Contains(err.Error(), "-key") {
		t.Errorf("without a key: %v", err)
	}
}

// TestPublishRefuses an image that is not whole, before it is pushed.
func TestPublishRefuses(t *testing.T) {
	private, _ := newKeys(t)
	for file, want := range map[string]string{
		provenanceFile: "the provenance of the release", "image.tar": "image.tar", "image-arm64.spdx.json": "the bill of materials",
	} {
		t.Run(file, func(t *testing.T) {
			folder, _ := newRelease(t)
			must(t, os.Remove(filepath.Join(folder, file)))
			address := newRegistry(t)
			err := publish(t.Context(), options{publish: folder, registry: address, key: private})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want %q", err, want)
			}
			reference, err := name.NewTag(address + "/" + operatorImage + ":v1.2.3")
			must(t, err)
			if _, err := remote.Head(reference); err == nil {
				t.Error("the image was pushed")
			}
		})
	}
}

// TestCosign has the real cosign judge what is published, here and of the release in the folder RELEASE: COSIGN names the program.
func TestCosign(t *testing.T) {
	program := os.Getenv("COSIGN")
	if program == "" {
		t.Skip("COSIGN does not name the program: make test-cosign builds and names it")
	}
	folder, _ := newRelease(t)
	for what, folder := range map[string]string{"stand-in": folder, "release": os.Getenv("RELEASE")} {
		if folder == "" {
			continue
		}
		t.Run(what, func(t *testing.T) { cosignJudges(t, program, folder) })
	}
}

func cosignJudges(t *testing.T, program, folder string) {
	t.Helper()
	private, public := newKeys(t)
	_, another := newKeys(t)
	address := newRegistry(t)
	must(t, publish(t.Context(), options{publish: folder, registry: address, key: private}))
	asked := func(arguments ...string) error {
		command := exec.CommandContext(t.Context(), program, arguments...)
		command.Env = append(os.Environ(), "HOME="+t.TempDir())
		text, err := command.CombinedOutput()
		t.Logf("cosign %s: %v\n%s", strings.Join(arguments, " "), err, text)
		return err
	}
	expectBlob(t, asked, private, public, another)
	for _, one := range recipes() {
		reference, index, err := readArchive(filepath.Join(folder, one.prefix+"image.tar"), t.TempDir())
		must(t, err)
		image := address + "/" + one.name + ":" + reference.TagStr()
		manifest, err := index.IndexManifest()
		must(t, err)
		ofPlatform := address + "/" + one.name + "@" + manifest.Manifests[0].Digest.String()
		for _, image := range []string{image, ofPlatform} {
			if asked("verify", "--insecure-ignore-tlog", "--key", public, image) != nil {
				t.Errorf("the signature of %s is refused", image)
			}
		}
		attested := []string{"verify-attestation", "--insecure-ignore-tlog", "--type", "slsaprovenance1", "--key"}
		if asked(append(attested, public, image)...) != nil {
			t.Errorf("the provenance of %s is refused", image)
		}
		materials := []string{"verify-attestation", "--insecure-ignore-tlog", "--type", "spdxjson", "--key"}
		if asked(append(materials, public, ofPlatform)...) != nil || asked(append(materials, another, ofPlatform)...) == nil || asked(append(materials, public, image)...) == nil {
			t.Errorf("the bill of materials of %s is refused, or verified by another key or for another image", ofPlatform)
		}
		if asked("verify", "--insecure-ignore-tlog", "--key", another, image) == nil || asked(append(attested, another, image)...) == nil {
			t.Errorf("another key verifies %s", image)
		}
		expectNotMoved(t, asked, public, address+"/"+one.name, reference.TagStr())
	}
}

// expectBlob has cosign verify the signature of a file, as that of a release's checksums, and that of no other key.
func expectBlob(t *testing.T, asked func(...string) error, private, public, another string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "SHA256SUMS")
	must(t, os.WriteFile(file, []byte("sums\n"), 0o600))
	must(t, sign(t.Context(), options{key: private, signFiles: file}))
	verified := func(key string) error {
		return asked("verify-blob", "--key", key, "--insecure-ignore-tlog", "--signature", file+".sig", file)
	}
	if verified(public) != nil {
		t.Error("the signature of a file is refused")
	}
	if verified(another) == nil {
		t.Error("another key verifies a file")
	}
}

// expectNotMoved puts signature and provenance of an image beside another one, which they must not vouch for.
func expectNotMoved(t *testing.T, asked func(...string) error, public, repository, tag string) {
	t.Helper()
	from, err := name.NewTag(repository + ":" + tag)
	must(t, err)
	old, err := remote.Head(from)
	must(t, err)
	index, images := newImages(t)
	to, err := name.NewTag(repository + ":another")
	must(t, err)
	moved, err := push(t.Context(), to, index, images)
	must(t, err)
	for _, end := range []string{".sig", ".att"} {
		beside, err := remote.Image(from.Context().Tag("sha256-" + old.Digest.Hex + end))
		must(t, err)
		must(t, remote.Write(from.Context().Tag(strings.ReplaceAll(moved.DigestStr(), ":", "-")+end), beside))
	}
	if asked("verify", "--insecure-ignore-tlog", "--key", public, to.Name()) == nil ||
		asked("verify-attestation", "--insecure-ignore-tlog", "--type", "slsaprovenance1", "--key", public, to.Name()) == nil {
		t.Errorf("what was signed for %s vouches for %s", from, moved)
	}
}
