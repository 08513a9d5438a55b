// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package instruction

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A chain of keys is text: a line with its version, and a line for each key that has taken the place of another.
//
//	lowlatency-keys/1
//	SERIAL FORMER KEY SIGNATURE
//
// FORMER and KEY are public keys in base64. The signature is the former key's, over the version and the three words before it, so that
// no signature of an instruction can be taken for one.
const chainVersion = "lowlatency-keys/1"

const (
	// MaximumLinks is how many keys back a chain reaches. A host that has missed more gets its key by hand.
	MaximumLinks = 32
	// linkWords are the serial, two keys and the signature.
	linkWords = 4
)

// Key is a public key of an operator.
type Key struct {
	Public ed25519.PublicKey
	// Serial grows by one with each key of an operator, and the first has 1. It is 0 where nobody has said it: on a host that was given its
	// key by hand.
	Serial int64
}

// ID identifies the key.
func (k Key) ID() string { return KeyID(k.Public) }

// String names the key for people.
func (k Key) String() string {
	if k.Serial == 0 {
		return k.ID()
	}
	return fmt.Sprintf("%s (the operator's %d.)", k.ID(), k.Serial)
}

// Link says which key has taken the place of another.
type Link struct {
	Former, Next Key
	// Signature is that of the former key.
	Signature []byte
}

// Chain are the keys of one operator, each signed by the one before. Those that ParseChain and Extend return are right throughout. An
// empty one is that of an operator which still has its first key.
type Chain []Link

// text is what the signature of a link is over, without the version.
func (l *Link) text() string {
	return strconv.FormatInt(l.Next.Serial, 10) + " " + base64.StdEncoding.EncodeToString(l.Former.Public) + " " + base64.StdEncoding.EncodeToString(l.Next.Public)
}

func (l *Link) signed() []byte { return bytesOf(chainVersion, "\n", l.text()) }

// Bytes are the only ones that spell a chain.
func (c Chain) Bytes() []byte {
	if len(c) == 0 {
		return nil
	}
	var text strings.Builder
	text.WriteString(chainVersion + "\n")
	for i := range c {
		text.WriteString(c[i].text() + " " + base64.StdEncoding.EncodeToString(c[i].Signature) + "\n")
	}
	return []byte(text.String())
}

// ParseChain reads a chain. It refuses one that is spelled in another way than Bytes does, in which a key was not signed by the one before,
// or in which a key comes twice.
func ParseChain(data []byte) (Chain, error) {
	if len(data) == 0 {
		return nil, nil
	}
	const longest = 256
	if len(data) > longest*(MaximumLinks+1) {
		return nil, fmt.Errorf("the chain of keys has %d bytes, and at most %d are read", len(data), longest*(MaximumLinks+1))
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != chainVersion || len(lines) < 2 {
		return nil, fmt.Errorf("the chain of keys does not begin with a line of %s and a line for a key", chainVersion)
	}
	var chain Chain
	for i, line := range lines[1:] {
		link, err := parseLink(line)
		if err == nil {
			err = chain.check(link)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d of the chain of keys: %w", i+2, err)
		}
		chain = append(chain, *link)
	}
	if !bytes.Equal(chain.Bytes(), data) {
		return nil, errors.New("the chain of keys is not spelled as chains are")
	}
	return chain, nil
}

func parseLink(line string) (*Link, error) {
	words := strings.Split(line, " ")
	if len(words) != linkWords {
		return nil, fmt.Errorf("it has %d words, and must have %d", len(words), linkWords)
	}
	serial, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil || serial < 2 {
		return nil, fmt.Errorf("%.32q is not the serial number of a key after the first", words[0])
	}
	former, err := ParseKey(words[1])
	if err != nil {
		return nil, err
	}
	next, err := ParseKey(words[2])
	if err != nil {
		return nil, err
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(words[3])
	if err != nil {
		return nil, errors.New("the signature is no base64")
	}
	return &Link{Former: Key{Public: former, Serial: serial - 1}, Next: Key{Public: next, Serial: serial}, Signature: signature}, nil
}

// ParseKey reads a public key in base64.
func ParseKey(text string) (ed25519.PublicKey, error) {
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.64q is no public key: %d bytes in base64", text, ed25519.PublicKeySize)
	}
	return key, nil
}

// FormatKey writes it.
func FormatKey(key ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(key) }

// check tells what is wrong with one more link.
func (c Chain) check(link *Link) error {
	if len(c) == MaximumLinks {
		return fmt.Errorf("there are more than %d", MaximumLinks)
	}
	if len(c) > 0 {
		if last := c[len(c)-1].Next; !last.Public.Equal(link.Former.Public) || last.Serial != link.Former.Serial {
			return fmt.Errorf("it follows key %s, and the one before is %s", link.Former, last)
		}
	}
	isKnown := func(l Link) bool { return l.Former.Public.Equal(link.Next.Public) }
	if link.Former.Public.Equal(link.Next.Public) || slices.ContainsFunc(c, isKnown) {
		return fmt.Errorf("key %s comes back", link.Next.ID())
	}
	if !ed25519.Verify(link.Former.Public, link.signed(), link.Signature) {
		return fmt.Errorf("key %s is not signed by the one before it, %s", link.Next.ID(), link.Former.ID())
	}
	return nil
}

// Extend returns the chain with one more key at its end, signed by the key that has been the last. Where it is full, the oldest link goes.
func (c Chain) Extend(former ed25519.PrivateKey, next ed25519.PublicKey) (Chain, error) {
	public, is := former.Public().(ed25519.PublicKey)
	if !is || len(next) != ed25519.PublicKeySize {
		return nil, errors.New("extending the chain of keys: one of the keys is none of Ed25519")
	}
	last, err := c.Last(public)
	if err != nil {
		return nil, err
	}
	link := &Link{Former: last, Next: Key{Public: next, Serial: last.Serial + 1}}
	link.Signature = ed25519.Sign(former, link.signed())
	kept := slices.Clone(c[max(0, len(c)-MaximumLinks+1):])
	if err := kept.check(link); err != nil {
		return nil, fmt.Errorf("extending the chain of keys: %w", err)
	}
	return append(kept, *link), nil
}

// Last is the operator's key with its serial. It is an error when the chain is that of another key.
func (c Chain) Last(public ed25519.PublicKey) (Key, error) {
	if len(c) == 0 {
		return Key{Public: public, Serial: 1}, nil
	}
	last := c[len(c)-1].Next
	if !last.Public.Equal(public) {
		return Key{}, fmt.Errorf("the chain of keys ends with key %s, and the operator has key %s", last, KeyID(public))
	}
	return last, nil
}

// HasFormer reports whether a key with an identity and a serial was the operator's before. A serial of 0 is not known.
func (c Chain) HasFormer(id string, serial int64) bool {
	return slices.ContainsFunc(c, func(l Link) bool {
		return l.Former.ID() == id && (serial == 0 || serial == l.Former.Serial)
	})
}

// Follow returns the operator's key where it is the one that a host trusts, or comes after it. It refuses, with a *StrangeKeyError, every
// other: a key that was before, and one of somebody else.
func (c Chain) Follow(trusted Key, public ed25519.PublicKey) (Key, error) {
	last, err := c.Last(public)
	if err != nil {
		return Key{}, err
	}
	isSame := last.Public.Equal(trusted.Public)
	if isSame && (trusted.Serial <= last.Serial || len(c) == 0) {
		// A host knows better that was told by a longer chain.
		last.Serial = max(last.Serial, trusted.Serial)
		return last, nil
	}
	if !isSame && c.HasFormer(trusted.ID(), trusted.Serial) {
		return last, nil
	}
	return Key{}, &StrangeKeyError{TrustedID: trusted.ID(), TrustedSerial: trusted.Serial, Offered: last}
}

// StrangeKeyError tells of a host that takes the instructions of another key than the operator's.
type StrangeKeyError struct {
	// TrustedID and TrustedSerial are of the key that the host trusts; the serial is 0 where it is not known.
	TrustedID     string
	TrustedSerial int64
	// Offered is the operator's.
	Offered Key
}

// Error says what to do.
func (e *StrangeKeyError) Error() string {
	trusted := e.TrustedID
	if e.TrustedSerial > 0 {
		trusted += fmt.Sprintf(" (its operator's %d.)", e.TrustedSerial)
	}
	text := fmt.Sprintf("the guard of this host takes instructions signed with key %s, and the operator has key %s, which that one has not led to", trusted, e.Offered)
	if e.TrustedSerial > e.Offered.Serial {
		text += ": restore the newer Secret if the operator has got this one from a backup"
	}
	return text + fmt.Sprintf("; to give the host to this operator, run \"lowlatency-guard trust %s\" on it, or \"lowlatency-guard revert\"", FormatKey(e.Offered.Public))
}
