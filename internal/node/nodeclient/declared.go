// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package nodeclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// An agent may be newer than the CustomResourceDefinition of its LowLatencyNode: in an upgrade that begins with the agents, and in a
// rollback that ends with them. The API server drops fields that it does not know from what is created or updated, but refuses to apply
// them: the agent would say nothing at all, and its node would count as unproven. So it applies what the API server declares.

// openAPIPath is where the API server declares our kinds, to every user who has been authenticated.
const openAPIPath = "/openapi/v3/apis/" + v1alpha1.GroupName + "/v1alpha1"

// isAboutFields reports whether an error may be about fields that the API server does not declare. It gives these no reason of their
// own.
func isAboutFields(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code == http.StatusInternalServerError && status.ErrStatus.Reason == metav1.StatusReasonUnknown
}

// declared is an object without the fields that the API server does not declare; nil when it declares all.
func (c *Client) declared(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	content, err := c.nodes.Get().AbsPath(openAPIPath).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("reading what the API server declares: %w", err)
	}
	var document struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("reading what the API server declares: %w", err)
	}
	for _, schema := range document.Components.Schemas {
		if !isOfKind(schema, object.GetKind()) {
			continue
		}
		known := object.DeepCopy()
		properties, _ := schema["properties"].(map[string]any)
		status, _ := properties["status"].(map[string]any)
		if removeUnknown(known.Object["status"], status) == 0 {
			return nil, nil
		}
		return known, nil
	}
	return nil, nil
}

// isOfKind reports whether a schema is that of one of our kinds.
func isOfKind(schema map[string]any, kind string) bool {
	names, _ := schema["x-kubernetes-group-version-kind"].([]any)
	for _, each := range names {
		name, _ := each.(map[string]any)
		if name["kind"] == kind && name["group"] == v1alpha1.GroupVersion.Group && name["version"] == v1alpha1.GroupVersion.Version {
			return true
		}
	}
	return false
}

// removeUnknown removes the fields that a schema does not declare, and returns how many they were. A schema that declares no
// fields declares all.
func removeUnknown(value any, schema map[string]any) int {
	removed := 0
	switch value := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, each := range value {
			removed += removeUnknown(each, items)
		}
	case map[string]any:
		properties, ok := schema["properties"].(map[string]any)
		if !ok || schema["x-kubernetes-preserve-unknown-fields"] == true {
			return 0
		}
		for name, each := range value {
			of, known := properties[name].(map[string]any)
			if !known {
				delete(value, name)
				removed++
				continue
			}
			removed += removeUnknown(each, of)
		}
	}
	return removed
}
