// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package apply turns typed values into what server-side apply sends. Every field that is sent is a field that the
// sender owns from then on, so only fields that were set are sent. It is pure.
package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object converts an object that carries its kind, without its status. What its Go type prints without having been set
// is left out as far as the type's tags say so. Untyped objects are returned as they are.
func Object(object runtime.Object) (*unstructured.Unstructured, error) {
	if plain, ok := object.(*unstructured.Unstructured); ok {
		return plain, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("converting %T: %w", object, err)
	}
	delete(fields, "status")
	return &unstructured.Unstructured{Object: fields}, nil
}

// Status is an existing object with nothing but a status, which is a pointer to a struct. The UID keeps the write from
// reaching an object that has been created anew under the name.
func Status(kind schema.GroupVersionKind, existing metav1.Object, status any) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, fmt.Errorf("converting the status of %s %s: %w", kind.Kind, existing.GetName(), err)
	}
	object := Reference(kind, existing)
	object.Object["status"] = fields
	return object, nil
}

// Reference is an existing object without fields: applied as it is, it gives up every field that the sender owns. The
// UID keeps the write from creating the object anew.
func Reference(kind schema.GroupVersionKind, existing metav1.Object) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	object.SetNamespace(existing.GetNamespace())
	object.SetName(existing.GetName())
	object.SetUID(existing.GetUID())
	return object
}
