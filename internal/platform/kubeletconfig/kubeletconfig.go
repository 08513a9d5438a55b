// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package kubeletconfig writes planned settings of the kubelet as the kubelet reads them, on every platform. A kubelet
// that refuses its configuration does not start, and its node is lost until somebody logs in; so a setting that the
// kubelet would refuse is an error here. It is pure.
package kubeletconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// Kind is the kind of the kubelet's configuration file.
const Kind = "KubeletConfiguration"

// Check is what a platform demands of a configuration besides the kubelet. The error names the field.
type Check func(*kubeletv1beta1.KubeletConfiguration) error

// Print writes the planned settings as a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) in JSON that has the
// planned fields and no others. Unknown fields, fields of the wrong type, fields that are planned twice, and values that
// the kubelet or one of the checks refuses are errors that name the field.
func Print(kubelet plan.KubeletPlan, checks ...Check) ([]byte, error) {
	fields, err := joinFields(kubelet)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("printing the kubelet configuration: %w", err)
	}
	configuration, err := decode(raw)
	if err != nil {
		return nil, err
	}
	problems := make([]error, 0, len(checks)+1)
	for _, check := range append(checks, checkKubelet) {
		problems = append(problems, check(configuration))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return raw, nil
}

// Judge repeats the kubelet's checks for a whole configuration as it merges one from several files, in JSON. Fields that this
// release of Kubernetes does not know are passed over.
func Judge(merged []byte) error {
	var configuration kubeletv1beta1.KubeletConfiguration
	if err := json.Unmarshal(merged, &configuration); err != nil {
		return fmt.Errorf("%s: %w", Kind, err)
	}
	return errors.Join(checkKubelet(&configuration), checkTogether(&configuration))
}

// joinFields joins the planned fields, which already have the kubelet's names, and the additional ones.
func joinFields(kubelet plan.KubeletPlan) (map[string]any, error) {
	additional := kubelet.Additional
	kubelet.Additional = nil
	raw, err := json.Marshal(kubelet)
	if err != nil {
		return nil, fmt.Errorf("printing the planned kubelet settings: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading the planned kubelet settings: %w", err)
	}
	delete(fields, "origin")
	fields["apiVersion"] = kubeletv1beta1.SchemeGroupVersion.String()
	fields["kind"] = Kind
	for _, name := range slices.Sorted(maps.Keys(additional)) {
		if _, planned := fields[name]; planned {
			return nil, fmt.Errorf("%s.%s is computed by the operator and cannot be set in addition", Kind, name)
		}
		fields[name] = additional[name]
	}
	return fields, nil
}

// decode decodes as strictly as the kubelet does: unknown and repeated fields are errors and
// the case of letters counts.
func decode(raw []byte) (*kubeletv1beta1.KubeletConfiguration, error) {
	scheme := runtime.NewScheme()
	if err := kubeletv1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering %s: %w", Kind, err)
	}
	decoder := jsonserializer.NewSerializerWithOptions(
		jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true})
	configuration := &kubeletv1beta1.KubeletConfiguration{}
	if _, _, err := decoder.Decode(raw, nil, configuration); err != nil {
		return nil, fmt.Errorf("%s: %w", Kind, err)
	}
	return configuration, nil
}
