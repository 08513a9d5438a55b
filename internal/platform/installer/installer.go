// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package installer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/platform"
)

const (
	// FieldOwner owns the fields of what is installed.
	FieldOwner client.FieldOwner = "lowlatency-installer"
	// OwnerCRD is the CustomResourceDefinition that owns what is installed: it goes when the last trace of the operator goes, and
	// neither with an upgrade of the operator nor with its removal while nodes still have their plans.
	OwnerCRD = "lowlatencynodes.lowlatency.dev"

	// interval is the time until what somebody has changed or deleted is as it was, retryInterval that after an error.
	interval      = 5 * time.Minute
	retryInterval = 10 * time.Second
)

// Installer keeps objects installed.
type Installer struct {
	// Client reads and writes without a cache; Mapper knows which kinds the API server has.
	Client client.Client
	Mapper apimeta.RESTMapper
	// Objects are applied in this order.
	Objects []*unstructured.Unstructured
	// Clock tells the time between two passes.
	Clock clock.Clock
	Log   logr.Logger

	isInstalled atomic.Bool
}

// Start installs the objects, and again after a while, until the context ends.
func (i *Installer) Start(ctx context.Context) error {
	for {
		wait := interval
		if err := i.Install(ctx); err != nil {
			i.Log.Error(err, "Failed to install everything")
			wait = retryInterval
		} else if !i.isInstalled.Swap(true) {
			i.Log.Info("Installed everything", "objects", len(i.Objects))
		}
		timer := i.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		}
	}
}

// Ready reports an error until everything has been installed once.
func (i *Installer) Ready(*http.Request) error {
	if !i.isInstalled.Load() {
		return errors.New("not everything is installed yet")
	}
	return nil
}

// Install applies every object whose kind the API server has. What cannot be applied keeps nothing else from it.
func (i *Installer) Install(ctx context.Context) error {
	owner, err := i.owner(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, object := range i.Objects {
		served, err := platform.Serves(i.Mapper, object.GroupVersionKind())
		if err == nil && served {
			owned := object.DeepCopy()
			owned.SetOwnerReferences([]metav1.OwnerReference{owner})
			err = i.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(owned), FieldOwner, client.ForceOwnership)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("installing %s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	return errors.Join(problems...)
}

// owner refers to the owner of everything that is installed.
func (i *Installer) owner(ctx context.Context) (metav1.OwnerReference, error) {
	crd := &metav1.PartialObjectMetadata{}
	crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	if err := i.Client.Get(ctx, client.ObjectKey{Name: OwnerCRD}, crd); err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("reading CustomResourceDefinition %s, which owns what is installed: %w", OwnerCRD, err)
	}
	return metav1.OwnerReference{APIVersion: crd.APIVersion, Kind: crd.Kind, Name: crd.Name, UID: crd.UID}, nil
}
