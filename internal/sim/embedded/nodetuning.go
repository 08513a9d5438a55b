// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"fmt"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// NodeTuning simulates the part of OpenShift's Node Tuning Operator that hands the TuneD profile of a
// Tuned object to the nodes of the machine config pools that its recommendation matches, at once or, where the annotation
// tuned.openshift.io/deferred of the object says so, when the node boots.
type NodeTuning struct {
	Client client.Client
	Fleet  *Fleet
	Clock  clock.WithTicker
	// Interval between two looks at the cluster.
	Interval time.Duration
}

// tuned is the part of tuned.openshift.io/v1 Tuned that decides what a node gets.
type tuned struct {
	Spec struct {
		Profile   []tunedProfile        `json:"profile"`
		Recommend []tunedRecommendation `json:"recommend"`
	} `json:"spec"`
}

type tunedProfile struct {
	Name string `json:"name"`
	Data string `json:"data"`
}

type tunedRecommendation struct {
	Profile             string            `json:"profile"`
	Priority            int64             `json:"priority"`
	MachineConfigLabels map[string]string `json:"machineConfigLabels"`
}

// Profile is a TuneD profile as a node is given it.
type Profile struct {
	Name, Text string
	// Deferred says that a node that has a profile of that name keeps its text until it boots.
	Deferred bool
}

// Run works until the context ends.
func (o *NodeTuning) Run(ctx context.Context) error {
	return repeat(ctx, o.Clock, o.Interval, o.Once)
}

// Once hands every node the profile that it should have.
func (o *NodeTuning) Once(ctx context.Context) error {
	objects := &unstructured.UnstructuredList{}
	objects.SetGroupVersionKind(schema.GroupVersionKind{Group: "tuned.openshift.io", Version: "v1", Kind: "TunedList"})
	if err := o.Client.List(ctx, objects); err != nil {
		return fmt.Errorf("listing Tuneds: %w", err)
	}
	var pools mcfgv1.MachineConfigPoolList
	if err := o.Client.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing MachineConfigPools: %w", err)
	}
	var nodes corev1.NodeList
	if err := o.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	members, err := membersByPool(nodes.Items, pools.Items)
	if err != nil {
		return err
	}
	for i := range pools.Items {
		profile, err := recommended(objects.Items, &pools.Items[i])
		if err != nil {
			return err
		}
		for _, node := range members[pools.Items[i].Name] {
			if err := o.Fleet.Tune(node.Name, profile); err != nil {
				return err
			}
		}
	}
	return nil
}

// recommended returns the profile with the lowest priority number that matches a machine config pool; an empty one when none
// does.
func recommended(objects []unstructured.Unstructured, pool *mcfgv1.MachineConfigPool) (Profile, error) {
	best, profile := int64(-1), Profile{}
	for i := range objects {
		var parsed tuned
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &parsed); err != nil {
			return Profile{}, fmt.Errorf("reading Tuned %q: %w", objects[i].GetName(), err)
		}
		for _, recommendation := range parsed.Spec.Recommend {
			if best >= 0 && recommendation.Priority >= best {
				continue
			}
			if found, ok := parsed.profileFor(recommendation, pool); ok {
				best, profile = recommendation.Priority, found
				profile.Deferred = objects[i].GetAnnotations()["tuned.openshift.io/deferred"] == "update"
			}
		}
	}
	return profile, nil
}

// profileFor returns the recommended profile if the recommendation matches the machine config pool.
func (t *tuned) profileFor(recommendation tunedRecommendation, pool *mcfgv1.MachineConfigPool) (Profile, bool) {
	if !selects(pool.Spec.MachineConfigSelector, recommendation.MachineConfigLabels) {
		return Profile{}, false
	}
	for _, profile := range t.Spec.Profile {
		if profile.Name == recommendation.Profile {
			return Profile{Name: profile.Name, Text: profile.Data}, true
		}
	}
	return Profile{}, false
}
