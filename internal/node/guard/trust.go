// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
)

// ErrNoOperator tells of a host that takes nobody's instructions.
var ErrNoOperator = errors.New("no operator has given this host instructions: there is no key to put another one in the place of")

func (t *Trust) key() instruction.Key { return instruction.Key{Public: t.Key, Serial: t.Serial} }

// reported is the key for reports; nil where there is none.
func (t *Trust) reported() *instruction.TrustedKey {
	if t == nil {
		return nil
	}
	return &instruction.TrustedKey{ID: t.key().ID(), Serial: t.Serial}
}

// Pin has the guard take the instructions of one operator for one node. The first key is kept. Another one takes its place where the chain
// leads from the one to the other, and never again the other way round. Every other key, or another node, is an error: who holds this host
// today decides that, by Trust or by bringing the host back first.
func (g *Guard) Pin(trust Trust, chain instruction.Chain) error {
	now, err := g.trust()
	if err != nil {
		return err
	}
	if now == nil {
		last, err := chain.Last(trust.Key)
		if err != nil {
			return err
		}
		trust.Serial = last.Serial
		return g.writeState(trustFile, trust)
	}
	if err := g.mustListen(); err != nil {
		return err
	}
	next, err := chain.Follow(now.key(), trust.Key)
	if err != nil {
		return err
	}
	if now.NodeUID != trust.NodeUID {
		return fmt.Errorf("the guard of this host takes instructions for node %s with UID %s, and not for node %s with UID %s: "+
			"bring the host back with \"lowlatency-guard revert\" on it when its node was made anew", now.Node, now.NodeUID, trust.Node, trust.NodeUID)
	}
	return g.move(now, next)
}

// Trust has the guard take the instructions of another key from now on, whoever has signed it: root says so.
func (g *Guard) Trust(public ed25519.PublicKey) error {
	now, err := g.trust()
	if err != nil {
		return err
	}
	if now == nil {
		return ErrNoOperator
	}
	if err := g.mustListen(); err != nil {
		return err
	}
	if now.key().Public.Equal(public) {
		return nil
	}
	return g.move(now, instruction.Key{Public: public})
}

// mustListen is an error where root has brought the host back.
func (g *Guard) mustListen() error {
	given, err := g.taken()
	if err == nil && given.Released != "" {
		err = errors.New("the guard of this host takes no instructions: " + given.Released)
	}
	return err
}

// move puts a key in the place of the one before. What that one has signed and nobody has begun is not begun any more: it is refused
// first, so that a power cut in between leaves no key with which it could be.
func (g *Guard) move(now *Trust, next instruction.Key) error {
	before := now.key()
	if before.Public.Equal(next.Public) && before.Serial == next.Serial {
		return nil
	}
	if !before.Public.Equal(next.Public) {
		if err := g.refuseWaiting(before); err != nil {
			return err
		}
		g.tell(fmt.Sprintf("Instructions are taken from key %s from now on, and none from key %s any more.", next.ID(), before.ID()))
	}
	now.Key, now.Serial = next.Public, next.Serial
	return g.writeState(trustFile, now)
}

// refuseWaiting refuses an instruction that was received and not begun.
func (g *Guard) refuseWaiting(signer instruction.Key) error {
	given, err := g.taken()
	if err != nil || given.Accepted == nil || given.Accepted.Outcome != instruction.Received {
		return err
	}
	h, err := g.look()
	if err != nil || h.isAbout(&given.Accepted.Instruction) {
		return err
	}
	given.Accepted.Outcome, given.Accepted.Reason = instruction.Refused, instruction.ReasonWrongKey
	given.Accepted.Message = fmt.Sprintf("it was signed with key %s, whose place another one has taken before it was begun", signer.ID())
	return g.writeState(takenFile, given)
}
