// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// PlanConfigMapName is the name of the ConfigMap that holds a plan.
func PlanConfigMapName(profile, planHash string) string { return profile + "-" + planHash }

// PlanConfigMap holds the plan with the given hash for the agents of its nodes, in the operator's namespace. It is
// immutable, so its bytes may depend only on what its name stands for: the origins of values, which do not count for
// the plan's hash, are left out. A name or namespace that the API server would refuse is an error.
func PlanConfigMap(p *plan.NodePlan, planHash, namespace string) (*corev1.ConfigMap, error) {
	if p == nil {
		return nil, errors.New("rendering without a plan")
	}
	if err := errors.Join(CheckProfile(p.Profile), CheckNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("rendering the plan of profile %q: %w", p.Profile, err)
	}
	text, err := planText(p)
	if err != nil {
		return nil, err
	}
	metadata := OfPlan(p.Profile, planHash, PlanConfigMapName(p.Profile, planHash), "plan")
	metadata.Namespace = namespace
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: metadata,
		Immutable:  new(true),
		Data:       map[string]string{v1alpha1.PlanKey: text},
	}, nil
}

// CheckNamespace makes sure that the operator's namespace can be one.
func CheckNamespace(name string) error {
	return CheckName("operator namespace", name, validation.IsDNS1123Label)
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
