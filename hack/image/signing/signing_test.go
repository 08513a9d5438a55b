// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package signing

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newKey makes a key, and a file with the public one.
func newKey(t *testing.T) (Key, string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	content, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	must(t, err)
	public := filepath.Join(t.TempDir(), "public.pem")
	must(t, os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: content}), 0o600))
	return Key{private}, public
}

// pushed is an image for two platforms in a registry of its own.
func pushed(t *testing.T) name.Digest {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	index, err := random.Index(64, 1, 2)
	must(t, err)
	digest, err := index.Digest()
	must(t, err)
	image, err := name.NewDigest(strings.TrimPrefix(server.URL, "http://") + "/team/operator@" + digest.String())
	must(t, err)
	must(t, remote.WriteIndex(image, index))
	return image
}

// get asks the registry as any client does.
func get(t *testing.T, image name.Digest, path string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+image.RegistryStr()+"/v2/"+image.RepositoryStr()+"/"+path, nil)
	must(t, err)
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close() //nolint:errcheck // It was only read.
	content, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %s", path, response.Status, content)
	}
	return content
}

// stored is a layer of a manifest, with what it holds.
type stored struct {
	MediaType, Digest string
	Annotations       map[string]string
	content           []byte
}

// under are the layers that lie under the tag of an image.
func under(t *testing.T, image name.Digest, end string) []stored {
	t.Helper()
	var manifest struct {
		MediaType string
		Config    stored
		Layers    []stored
	}
	must(t, json.Unmarshal(get(t, image, "manifests/"+strings.ReplaceAll(image.DigestStr(), ":", "-")+end), &manifest))
	if manifest.MediaType != "application/vnd.oci.image.manifest.v1+json" || manifest.Config.MediaType != "application/vnd.oci.image.config.v1+json" {
		t.Errorf("the manifest is %s with %s", manifest.MediaType, manifest.Config.MediaType)
	}
	for i := range manifest.Layers {
		manifest.Layers[i].content = get(t, image, "blobs/"+manifest.Layers[i].Digest)
	}
	return manifest.Layers
}

// opensslSays is what openssl says of a signature: nothing of this package or of its libraries takes part.
func opensslSays(t *testing.T, public string, message []byte, signature string) error {
	t.Helper()
	folder := t.TempDir()
	decoded, err := base64.StdEncoding.DecodeString(signature)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "message"), message, 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "signature"), decoded, 0o600))
	output, err := exec.CommandContext(t.Context(), "openssl", "dgst", "-sha256", "-verify", public,
		"-signature", filepath.Join(folder, "signature"), filepath.Join(folder, "message")).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// TestSignImage: the image and that of each platform have a payload of cosign's form, signed by this key alone.
func TestSignImage(t *testing.T) {
	key, public := newKey(t)
	_, another := newKey(t)
	image := pushed(t)
	must(t, key.SignImage(t.Context(), image))
	var index struct{ Manifests []struct{ Digest string } }
	must(t, json.Unmarshal(get(t, image, "manifests/"+image.DigestStr()), &index))
	const platforms = 2
	if len(index.Manifests) != platforms {
		t.Fatalf("the index has %d manifests", len(index.Manifests))
	}
	signed := make([]name.Digest, 0, 1+platforms)
	signed = append(signed, image)
	for _, one := range index.Manifests {
		signed = append(signed, image.Context().Digest(one.Digest))
	}
	for _, one := range signed {
		layers := under(t, one, ".sig")
		if len(layers) != 1 || layers[0].MediaType != "application/vnd.dev.cosign.simplesigning.v1+json" {
			t.Fatalf("layers are %v", layers)
		}
		want := `{"critical":{"identity":{"docker-reference":"` + image.Context().Name() + `"},"image":{"docker-manifest-digest":"` + one.DigestStr() +
			`"},"type":"cosign container image signature"},"optional":null}`
		if diff := cmp.Diff(want, string(layers[0].content)); diff != "" {
			t.Errorf("payload (-want +got):\n%s", diff)
		}
		signature := layers[0].Annotations["dev.cosignproject.cosign/signature"]
		if err := opensslSays(t, public, layers[0].content, signature); err != nil {
			t.Error(err)
		}
		for what, err := range map[string]error{
			"another key":       opensslSays(t, another, layers[0].content, signature),
			"a changed digest":  opensslSays(t, public, bytes.Replace(layers[0].content, []byte(one.DigestStr()), []byte("sha256:"+strings.Repeat("0", 64)), 1), signature),
			"a changed payload": opensslSays(t, public, append(layers[0].content, ' '), signature),
		} {
			if err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
	}
}

// statementAbout is a statement whose second subject is an image.
func statementAbout(image name.Digest, predicate string) []byte {
	return []byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{"name":"a","digest":{"sha256":"` + strings.Repeat("0", 64) + `"}},{"name":"b","digest":{"sha256":"` +
		strings.TrimPrefix(image.DigestStr(), "sha256:") + `"}}],"predicateType":"` + predicate + `","predicate":{}}`)
}

// TestAttest: the statement lies beside the image in an envelope, whose signature is over type and content (DSSE, protocol.md).
func TestAttest(t *testing.T) {
	key, public := newKey(t)
	_, another := newKey(t)
	image := pushed(t)
	statement := statementAbout(image, "https://slsa.dev/provenance/v1")
	must(t, key.Attest(t.Context(), image, statement))
	layers := under(t, image, ".att")
	if len(layers) != 1 || layers[0].MediaType != "application/vnd.dsse.envelope.v1+json" {
		t.Fatalf("layers are %v", layers)
	}
	if diff := cmp.Diff(map[string]string{"dev.cosignproject.cosign/signature": "", "predicateType": "https://slsa.dev/provenance/v1"}, layers[0].Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	content, signature := opened(t, layers[0].content)
	if diff := cmp.Diff(string(statement), string(content)); diff != "" {
		t.Fatalf("the statement (-want +got):\n%s", diff)
	}
	signed := func(content []byte) []byte {
		return fmt.Appendf(nil, "DSSEv1 28 application/vnd.in-toto+json %d %s", len(content), content)
	}
	if err := opensslSays(t, public, signed(content), signature); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"another key":         opensslSays(t, another, signed(content), signature),
		"a changed statement": opensslSays(t, public, signed(bytes.ToUpper(content)), signature),
		"without its type":    opensslSays(t, public, content, signature),
	} {
		if err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if err := key.Attest(t.Context(), pushed(t), statement); err == nil || !strings.Contains(err.Error(), "no subject has its digest") {
		t.Errorf("a statement about another image: %v", err)
	}
}

// opened are the statement in an envelope, and its signature.
func opened(t *testing.T, content []byte) (statement []byte, signature string) {
	t.Helper()
	var envelope struct {
		PayloadType, Payload string
		Signatures           []struct{ Sig string }
	}
	must(t, json.Unmarshal(content, &envelope))
	if envelope.PayloadType != "application/vnd.in-toto+json" || len(envelope.Signatures) != 1 {
		t.Fatalf("the envelope holds %s with %d signatures", envelope.PayloadType, len(envelope.Signatures))
	}
	statement, err := base64.StdEncoding.DecodeString(envelope.Payload)
	must(t, err)
	return statement, envelope.Signatures[0].Sig
}

// TestOthersStay: signing again replaces what this key has signed, and nothing else.
func TestOthersStay(t *testing.T) {
	key, public := newKey(t)
	other, theirs := newKey(t)
	image := pushed(t)
	for _, one := range []Key{key, other, key} {
		must(t, one.SignImage(t.Context(), image))
		must(t, one.Attest(t.Context(), image, statementAbout(image, "https://slsa.dev/provenance/v1")))
	}
	must(t, key.Attest(t.Context(), image, statementAbout(image, "https://spdx.dev/Document")))
	layers := under(t, image, ".sig")
	verified := map[string]int{}
	for _, layer := range layers {
		for name, file := range map[string]string{"ours": public, "theirs": theirs} {
			if opensslSays(t, file, layer.content, layer.Annotations["dev.cosignproject.cosign/signature"]) == nil {
				verified[name]++
			}
		}
	}
	if diff := cmp.Diff(map[string]int{"ours": 1, "theirs": 1}, verified); diff != "" || len(layers) != 2 {
		t.Errorf("%d signatures (-want +got):\n%s", len(layers), diff)
	}
	predicates := map[string]int{}
	for _, layer := range under(t, image, ".att") {
		predicates[layer.Annotations["predicateType"]]++
	}
	if diff := cmp.Diff(map[string]int{"https://slsa.dev/provenance/v1": 2, "https://spdx.dev/Document": 1}, predicates); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

// TestFile: what cosign sign-blob writes, and openssl verifies.
func TestFile(t *testing.T) {
	key, public := newKey(t)
	_, another := newKey(t)
	path := filepath.Join(t.TempDir(), "SHA256SUMS")
	sum := sha256.Sum256(nil)
	content := []byte(hex.EncodeToString(sum[:]) + "  nothing\n")
	must(t, os.WriteFile(path, content, 0o600))
	must(t, key.File(t.Context(), path))
	signature, err := os.ReadFile(path + ".sig")
	must(t, err)
	if err := opensslSays(t, public, content, string(signature)); err != nil {
		t.Error(err)
	}
	if opensslSays(t, another, content, string(signature)) == nil || opensslSays(t, public, append(content, '\n'), string(signature)) == nil {
		t.Error("another key or a changed file is accepted")
	}
}

// TestReadKey reads a key in the two ways in which programs write it, by the title of the block.
func TestReadKey(t *testing.T) {
	key, _ := newKey(t)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key.private)
	must(t, err)
	sec1, err := x509.MarshalECPrivateKey(key.private)
	must(t, err)
	path := filepath.Join(t.TempDir(), "private.pem")
	for title, content := range map[string][]byte{"PRIVATE KEY": pkcs8, "EC PRIVATE KEY": sec1} {
		must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: title, Bytes: content}), 0o600))
		read, err := ReadKey(path)
		if err != nil || !read.private.Equal(key.private) {
			t.Errorf("%s: %v", title, err)
		}
	}
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED SIGSTORE PRIVATE KEY"}), 0o600))
	if _, err := ReadKey(path); err == nil || !strings.Contains(err.Error(), "cosign sign") {
		t.Errorf("error is %v, want the way out", err)
	}
}
