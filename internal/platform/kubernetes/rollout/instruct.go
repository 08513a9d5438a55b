// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

const (
	// InstructionEntry is the entry of a ConfigMap with what instruction.Sign makes.
	InstructionEntry = "instruction"
	// PublicKeyEntry is the entry with the public key, 32 bytes.
	PublicKeyEntry = "public-key"
	// KeyChainEntry is the entry with the chain of keys that leads to it; absent with the operator's first key.
	KeyChainEntry = "key-chain"

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

// instruct puts a signed instruction there, and a pod that hands it over.
func (p *Platform) instruct(ctx context.Context, w *world, node *corev1.Node, step enactment.Step) error {
	wanted := w.wanted[node.Name]
	key, err := p.signingKey(ctx, w)
	if err != nil {
		return err
	}
	signed, err := p.sign(key, w, node, wanted, step)
	if err != nil {
		return err
	}
	configMap := p.configMap(w, node, key, step.Number, wanted.Action)
	configMap.BinaryData[InstructionEntry] = signed
	configMap.Annotations[v1alpha1.AnnotationReboot] = string(rebootOf(step))
	if wanted.PlanHash != "" {
		configMap.Annotations[v1alpha1.AnnotationPlanHash] = wanted.PlanHash
	}
	return p.issue(ctx, node, configMap)
}

// configMap has what a guard is told, apart from an instruction.
func (p *Platform) configMap(w *world, node *corev1.Node, key *signingkey.Key, number int64, action enactment.Action) *corev1.ConfigMap {
	configMap := &corev1.ConfigMap{ObjectMeta: p.metadata(w, node), BinaryData: map[string][]byte{PublicKeyEntry: key.Last.Public}, Immutable: new(true)}
	if len(key.Chain) > 0 {
		configMap.BinaryData[KeyChainEntry] = key.Chain.Bytes()
	}
	configMap.Annotations[v1alpha1.AnnotationNumber] = strconv.FormatInt(number, 10)
	configMap.Annotations[v1alpha1.AnnotationAction] = string(action)
	return configMap
}

// issue puts it there, and a pod that hands it over.
func (p *Platform) issue(ctx context.Context, node *corev1.Node, configMap *corev1.ConfigMap) error {
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
func (p *Platform) sign(key *signingkey.Key, w *world, node *corev1.Node, wanted *enactment.Wanted, step enactment.Step) ([]byte, error) {
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
			return nil, err
		}
		i.Operations = written.Operations
		if i.Plan, err = json.Marshal(planned); err != nil {
			return nil, fmt.Errorf("printing the plan: %w", err)
		}
	}
	return instruction.Sign(key.Private, i)
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
	if _, err := p.signingKey(ctx, w); err != nil {
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
