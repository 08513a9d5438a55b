// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// poolConfigMap holds the pool for those on the nodes. It exists twice, because a pod can mount a ConfigMap of its own
// namespace only, and because the agents' right to read covers the operator's namespace only. It is not immutable:
// the device plugin follows a change without a restart.
func poolConfigMap(in PoolInput, namespace, config string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
		ObjectMeta: in.metadata(PoolObjectName(in.Pool.Name), namespace, "bypass-pool"),
		Data:       map[string]string{v1alpha1.PoolKey: config},
	}
}

// poolText is a pool as JSON for people and programs.
func poolText(pool bypass.Pool) (string, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(pool); err != nil {
		return "", fmt.Errorf("printing the pool: %w", err)
	}
	return text.String(), nil
}
