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
// leads from the one to the other, and never again the other way round. Every other key is an error: who holds this host
// today decides that, by Trust or by bringing the host back first. An operator with a key that the guard follows may say that the host is another
// node's by now, as it is when its Node was deleted and made anew: what was signed for the node before is refused then.
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
		if err := g.becomeNode(now, &trust); err != nil {
			return err
		}
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
		if err := g.refuseWaiting(instruction.ReasonWrongKey, fmt.Sprintf("it was signed with key %s, whose place another one has taken before it was begun", before.ID())); err != nil {
			return err
		}
		g.tell(fmt.Sprintf("Instructions are taken from key %s from now on, and none from key %s any more.", next.ID(), before.ID()))
	}
	now.Key, now.Serial = next.Public, next.Serial
	return g.writeState(trustFile, now)
}

// becomeNode has the guard take instructions for another node from now on, and none for the one before: what that was told and nobody has begun is
// refused first.
func (g *Guard) becomeNode(now, next *Trust) error {
	if err := g.refuseWaiting(instruction.ReasonWrongNode, fmt.Sprintf("it is for node %s with UID %s, whose host is another node's since before it was begun", now.Node, now.NodeUID)); err != nil {
		return err
	}
	g.tell(fmt.Sprintf("Instructions are taken for node %s with UID %s from now on, and none for node %s with UID %s any more.", next.Node, next.NodeUID, now.Node, now.NodeUID))
	now.Node, now.NodeUID = next.Node, next.NodeUID
	return g.writeState(trustFile, now)
}

// refuseWaiting refuses an instruction that was received and not begun.
func (g *Guard) refuseWaiting(reason instruction.Reason, message string) error {
	given, err := g.taken()
	if err != nil || given.Accepted == nil || given.Accepted.Outcome != instruction.Received {
		return err
	}
	h, err := g.look()
	if err != nil || h.isAbout(&given.Accepted.Instruction) {
		return err
	}
	given.Accepted.Outcome, given.Accepted.Reason, given.Accepted.Message = instruction.Refused, reason, message
	return g.writeState(takenFile, given)
}
