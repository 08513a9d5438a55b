// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package signing

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"github.com/sigstore/sigstore/pkg/signature/payload"
)

const (
	// payloadType is the media type of what a signature of an image is over.
	payloadType types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	// envelopeType is that of a signed statement, and statementType that of what is in it.
	envelopeType  types.MediaType = "application/vnd.dsse.envelope.v1+json"
	statementType string          = "application/vnd.in-toto+json"
	// signatureKey is the annotation of a layer with its signature. That of an envelope is empty, because the signature is inside; cosign
	// requires the annotation all the same.
	signatureKey string = "dev.cosignproject.cosign/signature"
	// predicateKey is the annotation of a layer with what its statement is about.
	predicateKey string = "predicateType"
	// signatureEnd and attestationEnd are the ends of the tags that hold the signatures and the statements of an image.
	signatureEnd   string = ".sig"
	attestationEnd string = ".att"
)

// SignImage pushes a signature of an image, and one of the image of each platform in it: a container runtime verifies the one that it runs,
// too. Signatures of other keys stay, and an older one of this key is replaced.
func (k Key) SignImage(ctx context.Context, image name.Digest, access ...remote.Option) error {
	digests, err := withPlatforms(image, access)
	if err != nil {
		return err
	}
	for _, one := range digests {
		content, err := json.Marshal(payload.Cosign{Image: one})
		if err != nil {
			return fmt.Errorf("signing %s: %w", one, err)
		}
		signature, err := k.text(ctx, content)
		if err != nil {
			return err
		}
		layer := mutate.Addendum{Layer: static.NewLayer(content, payloadType), Annotations: map[string]string{signatureKey: signature}}
		if err := k.attach(ctx, one, signatureEnd, layer, access); err != nil {
			return err
		}
	}
	return nil
}

// Attest pushes a signed in-toto statement about an image, which has to be one of its subjects. Statements of other keys and of another kind
// stay, and an older one of this key is replaced.
func (k Key) Attest(ctx context.Context, image name.Digest, statement []byte, access ...remote.Option) error {
	predicate, err := predicateAbout(image, statement)
	if err != nil {
		return err
	}
	signer, err := dsse.NewEnvelopeSigner(k)
	if err != nil {
		return fmt.Errorf("signing the statement: %w", err)
	}
	envelope, err := signer.SignPayload(ctx, statementType, statement)
	if err != nil {
		return fmt.Errorf("signing the statement: %w", err)
	}
	content, err := json.Marshal(envelope)
	if err != nil {
		return fmt.Errorf("signing the statement: %w", err)
	}
	layer := mutate.Addendum{Layer: static.NewLayer(content, envelopeType), Annotations: map[string]string{signatureKey: "", predicateKey: predicate}}
	return k.attach(ctx, image, attestationEnd, layer, access)
}

// predicateAbout is what a statement says of an image; an error when it says nothing of it.
func predicateAbout(image name.Digest, content []byte) (string, error) {
	var statement struct {
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
	}
	if err := json.Unmarshal(content, &statement); err != nil {
		return "", fmt.Errorf("reading the statement: %w", err)
	}
	for _, subject := range statement.Subject {
		if "sha256:"+subject.Digest["sha256"] == image.DigestStr() {
			return statement.PredicateType, nil
		}
	}
	return "", fmt.Errorf("the statement is not about %s: no subject has its digest", image)
}

// withPlatforms are an image and, where it is one for several platforms, that of each.
func withPlatforms(image name.Digest, access []remote.Option) ([]name.Digest, error) {
	found, err := remote.Get(image, access...)
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", image, err)
	}
	all := []name.Digest{image}
	if !found.MediaType.IsIndex() {
		return all, nil
	}
	index, err := found.ImageIndex()
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", image, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("signing %s: %w", image, err)
	}
	for i := range manifest.Manifests {
		all = append(all, image.Context().Digest(manifest.Manifests[i].Digest.String()))
	}
	return all, nil
}

// attach adds a layer to what is under the tag that belongs to an image.
func (k Key) attach(ctx context.Context, image name.Digest, end string, layer mutate.Addendum, access []remote.Option) error {
	digest, err := v1.NewHash(image.DigestStr())
	if err != nil {
		return fmt.Errorf("signing %s: %w", image, err)
	}
	tag := image.Context().Tag(digest.Algorithm + "-" + digest.Hex + end)
	layers, err := k.others(ctx, tag, layer.Annotations[predicateKey], access)
	if err != nil {
		return fmt.Errorf("reading %s: %w", tag, err)
	}
	manifest, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), append(layers, layer)...)
	if err != nil {
		return fmt.Errorf("making %s: %w", tag, err)
	}
	if err := remote.Write(tag, manifest, access...); err != nil {
		return fmt.Errorf("pushing %s: %w", tag, err)
	}
	return nil
}

// others are the layers under a tag that this key has not signed, or with another predicate; none where the tag is not there.
func (k Key) others(ctx context.Context, tag name.Tag, predicate string, access []remote.Option) ([]mutate.Addendum, error) {
	image, err := remote.Image(tag, access...)
	if failure, ok := errors.AsType[*transport.Error](err); ok && failure.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	var kept []mutate.Addendum
	for i := range manifest.Layers {
		described := &manifest.Layers[i]
		layer, err := image.LayerByDigest(described.Digest)
		if err != nil {
			return nil, err
		}
		content, err := contentOf(layer)
		if err != nil {
			return nil, err
		}
		if described.Annotations[predicateKey] != predicate || !k.hasSigned(ctx, described, content) {
			kept = append(kept, mutate.Addendum{Layer: static.NewLayer(content, described.MediaType), Annotations: described.Annotations})
		}
	}
	return kept, nil
}

// contentOf is what a layer holds, which of signatures and statements is not compressed.
func contentOf(layer v1.Layer) ([]byte, error) {
	reader, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer reader.Close() //nolint:errcheck // It was only read.
	return io.ReadAll(reader)
}

// hasSigned reports whether a layer is a signature or a statement of this key.
func (k Key) hasSigned(ctx context.Context, described *v1.Descriptor, content []byte) bool {
	if described.MediaType == envelopeType {
		var envelope dsse.Envelope
		verifier, err := dsse.NewEnvelopeVerifier(k)
		if err != nil || json.Unmarshal(content, &envelope) != nil {
			return false
		}
		_, err = verifier.Verify(ctx, &envelope)
		return err == nil
	}
	signature, err := base64.StdEncoding.DecodeString(described.Annotations[signatureKey])
	return err == nil && k.Verify(ctx, content, signature) == nil
}
