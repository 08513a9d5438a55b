// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// kubeletConfigPath is where OpenShift puts the kubelet's configuration.
const kubeletConfigPath = "/etc/kubernetes/kubelet.conf"

// GeneratedKubelet is the MachineConfig that carries the kubelet's configuration to a machine config pool: the
// platform's own settings with those of the KubeletConfig over them.
func GeneratedKubelet(config *mcfgv1.KubeletConfig, pool string) (*mcfgv1.MachineConfig, error) {
	settings := map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"cgroupDriver": "systemd", "maxPods": 250, "rotateCertificates": true,
	}
	if config.Spec.KubeletConfig != nil {
		var own map[string]any
		if err := json.Unmarshal(config.Spec.KubeletConfig.Raw, &own); err != nil {
			return nil, fmt.Errorf("reading KubeletConfig %q: %w", config.Name, err)
		}
		maps.Copy(settings, own)
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("writing the kubelet configuration of machine config pool %q: %w", pool, err)
	}
	ignition := types.Config{
		Ignition: types.Ignition{Version: types.MaxVersion.String()},
		Storage: types.Storage{Files: []types.File{{
			Node: types.Node{Path: kubeletConfigPath, Overwrite: new(true)},
			FileEmbedded1: types.FileEmbedded1{
				Mode:     new(0o644),
				Contents: types.Resource{Source: new(DataURL(text))},
			},
		}}},
	}
	raw, err := json.Marshal(ignition)
	if err != nil {
		return nil, fmt.Errorf("writing the MachineConfig for KubeletConfig %q: %w", config.Name, err)
	}
	return &mcfgv1.MachineConfig{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "99-" + pool + "-generated-kubelet",
			Labels: map[string]string{mcfgv1.MachineConfigRoleLabelKey: pool},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: mcfgv1.GroupVersion.String(), Kind: "KubeletConfig", Name: config.Name, UID: config.UID,
			}},
		},
		Spec: mcfgv1.MachineConfigSpec{Config: runtime.RawExtension{Raw: raw}},
	}, nil
}
