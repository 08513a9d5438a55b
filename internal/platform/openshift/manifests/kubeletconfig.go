// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// kubeletKind is the kind of the kubelet's configuration file.
const kubeletKind = "KubeletConfiguration"

// KubeletConfig carries the planned kubelet settings to the pool. A kubelet that refuses its configuration
// does not start, and its node is lost until somebody logs in; so a setting that the kubelet would refuse, or that
// the machine-config operator keeps for itself, is an error here.
func KubeletConfig(in Input) (*mcfgv1.KubeletConfig, error) {
	in, err := in.checked(Input.checkPool)
	if err != nil {
		return nil, err
	}
	raw, err := KubeletConfiguration(in.Plan.Kubelet)
	if err != nil {
		return nil, fmt.Errorf("rendering KubeletConfig for machine config pool %q: %w", in.MachineConfigPool.Name, err)
	}
	return &mcfgv1.KubeletConfig{
		TypeMeta:   metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: "KubeletConfig"},
		ObjectMeta: in.metadata(KubeletConfigName(in.MachineConfigPool.Name), "kubelet-config"),
		Spec: mcfgv1.KubeletConfigSpec{
			MachineConfigPoolSelector: &metav1.LabelSelector{MatchLabels: in.MachineConfigPool.poolSelector()},
			KubeletConfig:             &runtime.RawExtension{Raw: raw},
		},
	}, nil
}

// KubeletConfiguration prints the planned settings as a KubeletConfiguration (kubelet.config.k8s.io/v1beta1) in
// JSON that has the planned fields and no others. Unknown fields, fields of the wrong type, fields that are planned
// twice, and values that the kubelet or the machine-config operator refuse are errors that name the field.
func KubeletConfiguration(kubelet plan.KubeletPlan) ([]byte, error) {
	fields, err := kubeletFields(kubelet)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("printing the kubelet configuration: %w", err)
	}
	configuration, err := decodeKubeletConfiguration(raw)
	if err != nil {
		return nil, err
	}
	if err := checkKubeletConfiguration(configuration); err != nil {
		return nil, err
	}
	return raw, nil
}

// kubeletFields joins the planned fields, which already have the kubelet's names, and the additional ones.
func kubeletFields(kubelet plan.KubeletPlan) (map[string]any, error) {
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
	fields["kind"] = kubeletKind
	for _, name := range slices.Sorted(maps.Keys(additional)) {
		if _, planned := fields[name]; planned {
			return nil, fmt.Errorf("%s.%s is computed by the operator and cannot be set in addition", kubeletKind, name)
		}
		fields[name] = additional[name]
	}
	return fields, nil
}

// decodeKubeletConfiguration decodes as strictly as the kubelet does: unknown and repeated fields are errors and
// the case of letters counts.
func decodeKubeletConfiguration(raw []byte) (*kubeletv1beta1.KubeletConfiguration, error) {
	scheme := runtime.NewScheme()
	if err := kubeletv1beta1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering %s: %w", kubeletKind, err)
	}
	decoder := jsonserializer.NewSerializerWithOptions(
		jsonserializer.DefaultMetaFactory, scheme, scheme, jsonserializer.SerializerOptions{Strict: true})
	configuration := &kubeletv1beta1.KubeletConfiguration{}
	if _, _, err := decoder.Decode(raw, nil, configuration); err != nil {
		return nil, fmt.Errorf("%s: %w", kubeletKind, err)
	}
	return configuration, nil
}
