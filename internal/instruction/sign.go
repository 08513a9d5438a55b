// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package instruction

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// A signed instruction is one line in front of the JSON of the instruction:
//
//	lowlatency-instruction/1 KEY SIGNATURE
//
// KEY identifies the public key, so that a host can tell a foreign key from a changed content. The signature is over the version,
// a line break and the JSON, so that no signature for another purpose can be taken for one.
const version = "lowlatency-instruction/1"

const (
	// MaximumBytes is what fits into a Secret (k8s.io/api, MaxSecretSize).
	MaximumBytes = 1 << 20
	// keyBytes is how much of the digest identifies a key.
	keyBytes = 8
	// headerWords are the version, the key and the signature.
	headerWords = 3
)

// KeyID identifies a public key, for people and for reports: 16 hexadecimal digits.
func KeyID(key ed25519.PublicKey) string {
	digest := sha256.Sum256(key)
	return hex.EncodeToString(digest[:keyBytes])
}

// Digest identifies a signed instruction: equal for the same bytes alone.
func Digest(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// Sign makes the bytes that Open takes. The operations are brought into the order in which they are carried out. It is an error
// when no guard would carry the instruction out, or when it is longer than MaximumBytes.
func Sign(key ed25519.PrivateKey, i Instruction) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, fmt.Errorf("the key to sign with has %d bytes, and a private key of Ed25519 has %d", len(key), ed25519.PrivateKeySize)
	}
	if err := i.validate(); err != nil {
		return nil, fmt.Errorf("an instruction for node %s is not signed: %w", i.Node, err)
	}
	payload, err := canonical(i)
	if err != nil {
		return nil, err
	}
	signature := base64.StdEncoding.EncodeToString(ed25519.Sign(key, signed(payload)))
	public := ed25519.PublicKey(key[ed25519.PrivateKeySize-ed25519.PublicKeySize:])
	data := bytesOf(version, " ", KeyID(public), " ", signature, "\n", string(payload))
	if len(data) > MaximumBytes {
		return nil, fmt.Errorf("the instruction for node %s has %d bytes, and at most %d are taken", i.Node, len(data), MaximumBytes)
	}
	return data, nil
}

func bytesOf(parts ...string) []byte { return []byte(strings.Join(parts, "")) }

// canonical are the only bytes that spell an instruction.
func canonical(i Instruction) ([]byte, error) {
	i.Operations = operation.Ordered(i.Operations)
	payload, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("writing an instruction: %w", err)
	}
	return payload, nil
}

// signed is what the signature is over.
func signed(payload []byte) []byte { return bytesOf(version, "\n", string(payload)) }

// Open reads a signed instruction for the node with a UID. It refuses, with a *RefusedError, what is not signed with the key, was
// changed since, is for another node, does not have a number above that of the last, or is nothing that a guard carries out.
// Nothing of the content is looked at before the signature is found to be right.
func Open(key ed25519.PublicKey, data []byte, wantUID string, lastNumber int64) (*Instruction, error) {
	payload, err := verify(key, data)
	if err != nil {
		return nil, err
	}
	i, err := decode(payload)
	if err != nil {
		return nil, err
	}
	switch {
	case i.NodeUID != wantUID:
		return nil, refuse(ReasonWrongNode, i.Number, "it is for node %s with UID %s, and this host is the node with UID %s", i.Node, i.NodeUID, wantUID)
	case i.Number <= lastNumber:
		return nil, refuse(ReasonReplayed, i.Number, "its number is %d, and instruction %d was taken already: each needs a number above the last", i.Number, lastNumber)
	default:
		return i, nil
	}
}

// verify returns what was signed.
func verify(key ed25519.PublicKey, data []byte) ([]byte, error) {
	if len(data) > MaximumBytes {
		return nil, refuse(ReasonTooLong, 0, "it has %d bytes, and at most %d are taken", len(data), MaximumBytes)
	}
	if len(key) != ed25519.PublicKeySize {
		return nil, refuse(ReasonWrongKey, 0, "this host knows no key of an operator")
	}
	header, payload, found := bytes.Cut(data, []byte("\n"))
	words := strings.Split(string(header), " ")
	if !found || len(words) != headerWords || words[0] != version {
		return nil, refuse(ReasonMalformed, 0, "it does not begin with a line of %s, a key and a signature", version)
	}
	if words[1] != KeyID(key) {
		return nil, refuse(ReasonWrongKey, 0, "it is signed with key %.32q, and this host takes instructions signed with key %s", words[1], KeyID(key))
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(words[2])
	// The decoder skips line breaks: one signature has one spelling.
	isSpelled := err == nil && base64.StdEncoding.EncodeToString(signature) == words[2]
	if !isSpelled || !ed25519.Verify(key, signed(payload), signature) {
		return nil, refuse(ReasonContentChanged, 0, "its signature does not fit its content: one of them was changed after it was signed")
	}
	return payload, nil
}

// decode reads what was signed. There is one spelling of each instruction: what another version of the operator has signed, with
// fields that this guard does not know, is refused whole.
func decode(payload []byte) (*Instruction, error) {
	i := &Instruction{}
	decoder := json.NewDecoder(bytes.NewReader(payload))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(i); err != nil {
		if field, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			return nil, refuse(ReasonUnknownField, 0, "it has the field %s, which this guard does not know: update the guard", field)
		}
		return nil, refuse(ReasonMalformed, 0, "it is no instruction: %v", err)
	}
	again, err := canonical(*i)
	if err != nil || !bytes.Equal(again, payload) {
		return nil, refuse(ReasonMalformed, i.Number, "it is not spelled as instructions are: sign it with the operator of this version")
	}
	if err := i.validate(); err != nil {
		return nil, refuse(ReasonInvalid, i.Number, "%v", err)
	}
	return i, nil
}

// RefusedError tells why an instruction is not carried out.
type RefusedError struct {
	Reason Reason
	// Number of the instruction; 0 where nothing tells that it is what the operator wrote.
	Number int64
	// Message is a sentence about "it", the instruction.
	Message string
}

// Error is the sentence.
func (e *RefusedError) Error() string { return "the instruction is refused: " + e.Message }

func refuse(reason Reason, number int64, format string, values ...any) error {
	return &RefusedError{Reason: reason, Number: number, Message: fmt.Sprintf(format, values...)}
}
