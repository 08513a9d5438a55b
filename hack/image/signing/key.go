// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package signing signs files, and images in a registry, with a key: as "cosign sign-blob", "cosign sign" and "cosign attest" do with
// --key, without a log of signatures. Its rules are cosign's: specs/SIGNATURE_SPEC.md and specs/ATTESTATION_SPEC.md there.
package signing

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// Key signs with ECDSA over the SHA-256 sum.
type Key struct{ private *ecdsa.PrivateKey }

// ReadKey reads a private key as "openssl ecparam -genkey" or "openssl genpkey" write it: ECDSA, PEM, not encrypted.
func ReadKey(path string) (Key, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return Key{}, fmt.Errorf("reading the key: %w", err)
	}
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case "EC PRIVATE KEY":
			private, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return Key{}, fmt.Errorf("reading the key: %w", err)
			}
			return Key{private}, nil
		case "PRIVATE KEY":
			parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return Key{}, fmt.Errorf("reading the key: %w", err)
			}
			if private, ok := parsed.(*ecdsa.PrivateKey); ok {
				return Key{private}, nil
			}
		}
	}
	return Key{}, errors.New(`the file has no ECDSA key that is not encrypted: for a key of cosign's own, sign with "cosign sign-blob" and "cosign sign"`)
}

// Sign is the signature of a message, in ASN.1. Together with Verify, KeyID and Public it makes the key one that signs DSSE envelopes.
func (k Key) Sign(_ context.Context, message []byte) ([]byte, error) {
	sum := sha256.Sum256(message)
	signature, err := ecdsa.SignASN1(rand.Reader, k.private, sum[:])
	if err != nil {
		return nil, fmt.Errorf("signing: %w", err)
	}
	return signature, nil
}

// Verify is an error unless this key has signed the message.
func (k Key) Verify(_ context.Context, message, signature []byte) error {
	if sum := sha256.Sum256(message); !ecdsa.VerifyASN1(&k.private.PublicKey, sum[:], signature) {
		return errors.New("the signature is not of this key")
	}
	return nil
}

// KeyID is empty, as with cosign: whoever verifies has the public key, and needs no hint which.
func (k Key) KeyID() (string, error) { return "", nil }

// Public is the key that verifies.
func (k Key) Public() crypto.PublicKey { return &k.private.PublicKey }

// File writes the signature of a file into another one beside it, whose name ends in .sig.
func (k Key) File(ctx context.Context, path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	text, err := k.text(ctx, content)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".sig", []byte(text), 0o644) //nolint:gosec // Everybody may read it.
}

// text is a signature in base64.
func (k Key) text(ctx context.Context, message []byte) (string, error) {
	signature, err := k.Sign(ctx, message)
	return base64.StdEncoding.EncodeToString(signature), err
}
