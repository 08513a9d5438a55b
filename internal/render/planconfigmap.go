// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package render

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// PlanConfigMap holds the plan for the agents of the pool's nodes. It is immutable, so its bytes may depend
// only on what its name stands for: the origins of values, which do not count for the plan's hash, are left out.
func PlanConfigMap(in Input) (*corev1.ConfigMap, error) {
	in, err := in.checked(Input.checkNamespace)
	if err != nil {
		return nil, err
	}
	text, err := planText(in.Plan)
	if err != nil {
		return nil, err
	}
	metadata := in.metadata(PlanConfigMapName(in.Plan.Profile, in.planHash), "plan")
	metadata.Namespace = in.Namespace
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metadata,
		Immutable:  new(true),
		Data:       map[string]string{v1alpha1.PlanKey: text},
	}, nil
}

// planText is the plan as JSON without origins. Numbers pass through unchanged.
func planText(p *plan.NodePlan) (string, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", fmt.Errorf("printing the plan: %w", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var fields any
	if err := decoder.Decode(&fields); err != nil {
		return "", fmt.Errorf("reading the printed plan: %w", err)
	}
	removeOrigins(fields)

	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(fields); err != nil {
		return "", fmt.Errorf("printing the plan: %w", err)
	}
	return text.String(), nil
}

func removeOrigins(value any) {
	switch value := value.(type) {
	case map[string]any:
		if isOrigin(value["origin"]) {
			delete(value, "origin")
		}
		for _, field := range value {
			removeOrigins(field)
		}
	case []any:
		for _, element := range value {
			removeOrigins(element)
		}
	}
}

// isOrigin recognises a printed plan.Origin, so that a setting that happens to be called origin stays.
func isOrigin(value any) bool {
	fields, ok := value.(map[string]any)
	if !ok || len(fields) != 2 {
		return false
	}
	_, source := fields["source"]
	_, detail := fields["detail"]
	return source && detail
}
