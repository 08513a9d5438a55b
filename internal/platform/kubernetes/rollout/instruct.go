// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

const (
	// KeySecret is the Secret in the operator's namespace with the key that signs instructions. It is made once: guards take
	// instructions of this key alone, and where it is lost, root has to bring each host back.
	KeySecret = "lowlatency-operator-instructions"
	// keyEntry is the seed of a private key of Ed25519 (RFC 8032), 32 bytes.
	keyEntry = "ed25519-seed"

	// InstructionEntry is the entry of a ConfigMap with what instruction.Sign makes.
	InstructionEntry = "instruction"
	// PublicKeyEntry is the entry with the public key, 32 bytes.
	PublicKeyEntry = "public-key"

	// rebootAllowed is the value of AnnotationReboot.
	rebootAllowed = string(instruction.RebootAllowed)
	// deadlineSeconds is how long after the start of a host the guard takes back what was not verified.
	deadlineSeconds = 600
)

// objectName is the name of all objects about a node: with its name where that leaves room.
func objectName(node string) string {
	const room = 40
	if len(node) <= room {
		return "enact-" + node
	}
	digest := sha256.Sum256([]byte(node))
	return "enact-" + hex.EncodeToString(digest[:room/4])
}

// signingKey reads the key, or makes it.
func (p *Platform) signingKey(ctx context.Context) (ed25519.PrivateKey, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.key != nil {
		return p.key, nil
	}
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: p.Namespace, Name: KeySecret}
	err := p.Live.Get(ctx, name, secret)
	if apierrors.IsNotFound(err) {
		secret, err = p.makeKey(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the key that signs instructions from Secret %s: %w", name, err)
	}
	seed := secret.Data[keyEntry]
	if len(seed) != ed25519.SeedSize {
		return nil, fmt.Errorf("reading the key that signs instructions: entry %s of Secret %s has %d bytes, and a seed of Ed25519 has %d: %w",
			keyEntry, name, len(seed), ed25519.SeedSize, platform.ErrUnusable)
	}
	p.key = ed25519.NewKeyFromSeed(seed)
	return p.key, nil
}

// makeKey fails when there is a key by now: then it is read the next time.
func (p *Platform) makeKey(ctx context.Context) (*corev1.Secret, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: KeySecret, Labels: manifest.Labels(v1alpha1.ComponentEnactment)},
		Immutable:  new(true), Type: corev1.SecretTypeOpaque, Data: map[string][]byte{keyEntry: seed},
	}
	return secret, p.Client.Create(ctx, secret)
}

// instruct puts a signed instruction there, and a pod that hands it over.
func (p *Platform) instruct(ctx context.Context, w *world, node *corev1.Node, step enactment.Step) error {
	wanted := w.wanted[node.Name]
	signed, public, err := p.sign(ctx, w, node, wanted, step)
	if err != nil {
		return err
	}
	configMap := &corev1.ConfigMap{ObjectMeta: p.metadata(w, node), BinaryData: map[string][]byte{InstructionEntry: signed, PublicKeyEntry: public}, Immutable: new(true)}
	configMap.Annotations[v1alpha1.AnnotationNumber] = strconv.FormatInt(step.Number, 10)
	configMap.Annotations[v1alpha1.AnnotationAction] = string(wanted.Action)
	configMap.Annotations[v1alpha1.AnnotationReboot] = string(rebootOf(step))
	if wanted.PlanHash != "" {
		configMap.Annotations[v1alpha1.AnnotationPlanHash] = wanted.PlanHash
	}
	if err := p.Client.Create(ctx, configMap); err != nil {
		return fmt.Errorf("creating ConfigMap %s: %w", configMap.Name, err)
	}
	return p.handOver(ctx, node, configMap)
}

func rebootOf(step enactment.Step) instruction.Reboot {
	if step.Reboots {
		return instruction.RebootAllowed
	}
	return instruction.RebootForbidden
}

// sign makes the instruction for a node.
func (p *Platform) sign(ctx context.Context, w *world, node *corev1.Node, wanted *enactment.Wanted, step enactment.Step) (signed []byte, public ed25519.PublicKey, err error) {
	key, err := p.signingKey(ctx)
	if err != nil {
		return nil, nil, err
	}
	public, _ = key.Public().(ed25519.PublicKey)
	i := instruction.Instruction{
		Node: node.Name, NodeUID: string(node.UID), PlanHash: wanted.PlanHash, Number: step.Number, Action: instruction.Action(wanted.Action),
		Reboot: rebootOf(step), Attempt: instruction.FirstAttempt, DeadlineSeconds: deadlineSeconds,
	}
	if step.Again {
		i.Attempt = instruction.FurtherAttempt
	}
	if wanted.Action == enactment.Enact {
		planned := w.plans[wanted.PlanHash]
		written, err := p.writing(planned, wanted.PlanHash, w.reports[node.Name])
		if err != nil {
			return nil, nil, err
		}
		i.Operations = written.Operations
		if i.Plan, err = json.Marshal(planned); err != nil {
			return nil, nil, fmt.Errorf("printing the plan: %w", err)
		}
	}
	signed, err = instruction.Sign(key, i)
	return signed, public, err
}

// withdraw removes the pod, as it was when that was decided, and the instruction once the pod is gone: until then it is seen
// whether the pod has run after all.
func (p *Platform) withdraw(ctx context.Context, w *world, node *corev1.Node) error {
	pod := w.pods[node.Name]
	switch {
	case pod == nil:
		return p.remove(ctx, &corev1.ConfigMap{ObjectMeta: p.named(node)})
	case pod.DeletionTimestamp != nil:
		return nil
	default:
		return p.remove(ctx, pod, client.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion})
	}
}

// tryHandOver finds out whether an instruction can be signed, and whether the API server would take the pod that hands it over.
func (p *Platform) tryHandOver(ctx context.Context, w *world, node *corev1.Node) error {
	if _, err := p.signingKey(ctx); err != nil {
		return err
	}
	pod := p.pod(node, &corev1.ConfigMap{ObjectMeta: p.metadata(w, node)})
	if err := p.Client.Create(ctx, pod, client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("asking whether Pod %s could be created: %w", pod.Name, err)
	}
	return nil
}

// handOver sees to it that the pod is there. One of another instruction is removed first; it comes the next time.
func (p *Platform) handOver(ctx context.Context, node *corev1.Node, configMap *corev1.ConfigMap) error {
	pod := &corev1.Pod{}
	err := p.Live.Get(ctx, client.ObjectKey{Namespace: p.AgentNamespace, Name: objectName(node.Name)}, pod)
	number := configMap.Annotations[v1alpha1.AnnotationNumber]
	switch {
	case apierrors.IsNotFound(err):
		if err := p.Client.Create(ctx, p.pod(node, configMap)); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating Pod %s: %w", objectName(node.Name), err)
		}
		return nil
	case err != nil:
		return fmt.Errorf("reading Pod %s: %w", objectName(node.Name), err)
	case pod.Annotations[v1alpha1.AnnotationNumber] != number || pod.Status.Phase == corev1.PodFailed:
		return p.remove(ctx, pod)
	default:
		return nil
	}
}
