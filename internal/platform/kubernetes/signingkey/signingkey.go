// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package signingkey holds the key by which the operator signs instructions for hosts, as it is kept in a Secret. It is pure.
package signingkey

import (
	"crypto/ed25519"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
)

const (
	// SecretName is that of the Secret in the operator's namespace.
	SecretName = "lowlatency-operator-instructions"
	// seedEntry is the seed of a private key of Ed25519 (RFC 8032), 32 bytes.
	seedEntry = "ed25519-seed"
	// chainEntry are the keys before, each of which has signed the next one; absent with the first key.
	chainEntry = "key-chain"
)

// Key signs instructions.
type Key struct {
	Private ed25519.PrivateKey
	// Last is the public key with its serial.
	Last instruction.Key
	// Chain leads to it from the keys before.
	Chain instruction.Chain
}

// New makes the first key of an operator.
func New(random io.Reader) (*Key, error) {
	public, private, err := ed25519.GenerateKey(random)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Key{Private: private, Last: instruction.Key{Public: public, Serial: 1}}, nil
}

// Next makes the key that takes the place of this one. This one signs it, and is of no use afterwards.
func (k *Key) Next(random io.Reader) (*Key, error) {
	next, err := New(random)
	if err != nil {
		return nil, err
	}
	if next.Chain, err = k.Chain.Extend(k.Private, next.Last.Public); err != nil {
		return nil, err
	}
	next.Last, err = next.Chain.Last(next.Last.Public)
	return next, err
}

// Read reads the key of a Secret.
func Read(secret *corev1.Secret) (*Key, error) {
	seed := secret.Data[seedEntry]
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("entry %s of Secret %s/%s has %d bytes, and a seed of Ed25519 has %d", seedEntry, secret.Namespace, secret.Name, len(seed), ed25519.SeedSize)
	}
	private := ed25519.NewKeyFromSeed(seed)
	chain, err := instruction.ParseChain(secret.Data[chainEntry])
	if err != nil {
		return nil, fmt.Errorf("entry %s of Secret %s/%s: %w", chainEntry, secret.Namespace, secret.Name, err)
	}
	public, _ := private.Public().(ed25519.PublicKey)
	last, err := chain.Last(public)
	if err != nil {
		return nil, fmt.Errorf("entry %s of Secret %s/%s: %w", chainEntry, secret.Namespace, secret.Name, err)
	}
	return &Key{Private: private, Last: last, Chain: chain}, nil
}

// Secret is that of the key in the operator's namespace. It is not immutable: another key takes the place of this one in one write.
func (k *Key) Secret(namespace string) *corev1.Secret {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: SecretName, Labels: manifest.Labels(v1alpha1.ComponentEnactment)},
		Type:       corev1.SecretTypeOpaque, Data: map[string][]byte{seedEntry: k.Private.Seed()},
	}
	if len(k.Chain) > 0 {
		secret.Data[chainEntry] = k.Chain.Bytes()
	}
	return secret
}

// Standing is how the key that a guard trusts stands to the operator's.
type Standing string

const (
	// Unknown is that of a guard that says nothing of its key.
	Unknown Standing = "Unknown"
	// Current is the operator's key.
	Current Standing = "Current"
	// Former is one from which the chain leads to the operator's.
	Former Standing = "Former"
	// Strange is every other.
	Strange Standing = "Strange"
)

// StandingOf says how the key that a guard reports stands to this one; nil where the operator has none.
func (k *Key) StandingOf(reported *v1alpha1.NodeEnactment) Standing {
	switch {
	case reported == nil || reported.Key == nil:
		return Unknown
	case k == nil:
		return Strange
	case reported.Key.ID == k.Last.ID():
		return Current
	case k.Chain.HasFormer(reported.Key.ID, reported.Key.Serial):
		return Former
	default:
		return Strange
	}
}

// Estrangement says of a guard with a strange key what to do about it.
func (k *Key) Estrangement(namespace string, reported *v1alpha1.EnactmentKey) string {
	if k == nil {
		return fmt.Sprintf("the guard takes instructions of key %s alone, and Secret %s/%s with the operator's key is not there: restore it from a backup, or, "+
			"when it is lost, make another with \"kubectl lowlatency signing-key rotate --lost\"", reported.ID, namespace, SecretName)
	}
	return (&instruction.StrangeKeyError{TrustedID: reported.ID, TrustedSerial: reported.Serial, Offered: k.Last}).Error()
}
