// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What Cluster API notes on Nodes and Machines (api/core/v1beta2).
const (
	machineGroup = "cluster.x-k8s.io"
	machineKind  = "Machine"
	// nodeMachine and nodeMachineNamespace on a Node name its Machine, which is in the cluster that manages this one.
	nodeMachine          = "cluster.x-k8s.io/machine"
	nodeMachineNamespace = "cluster.x-k8s.io/cluster-namespace"
)

// machineMark is an annotation of a Machine, and what is about to be done with it.
type machineMark struct{ key, says string }

func machineMarks() []machineMark {
	return []machineMark{
		{"cluster.x-k8s.io/delete-machine", "is marked to be deleted first"},
		{"cluster.x-k8s.io/remediate-machine", "is marked to be remediated"},
		{"in-place-updates.internal.cluster.x-k8s.io/update-in-progress", "is being updated in place"},
	}
}

// lockOfMachine says what Cluster API does with the Machine of a node. Where another cluster manages this one, its Machine is not
// seen; what is seen then is the cordon with which its deletion begins.
func (p *Platform) lockOfMachine(ctx context.Context, node *corev1.Node) (string, error) {
	name := client.ObjectKey{Namespace: node.Annotations[nodeMachineNamespace], Name: node.Annotations[nodeMachine]}
	if name.Name == "" {
		return "", nil
	}
	mapping, err := p.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: machineGroup, Kind: machineKind})
	switch {
	case meta.IsNoMatchError(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("looking for the Machines of Cluster API: %w", err)
	}
	machine := &unstructured.Unstructured{}
	machine.SetGroupVersionKind(mapping.GroupVersionKind)
	err = p.Live.Get(ctx, name, machine)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading Machine %s: %w", name, err)
	}
	return readMachine(machine, node.Name), nil
}

// readMachine says what is done with a Machine; "" for nothing, and for that of another node.
func readMachine(machine *unstructured.Unstructured, node string) string {
	of, _, _ := unstructured.NestedString(machine.Object, "status", "nodeRef", "name")
	if of != node {
		return ""
	}
	name := client.ObjectKeyFromObject(machine)
	if machine.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("Cluster API deletes its Machine %s", name)
	}
	for _, mark := range machineMarks() {
		if _, found := machine.GetAnnotations()[mark.key]; found {
			return fmt.Sprintf("its Machine %s of Cluster API %s", name, mark.says)
		}
	}
	return ""
}
