// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package coreos

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/coreos/ignition/v2/config/v3_5"
	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RenderPool merges the MachineConfigs of a machine config pool into the one that its nodes get, in the order of
// their names as the machine-config operator does: later files win, kernel arguments add up, and any
// kernel type other than the default wins. The name follows from the content.
func RenderPool(pool string, configs []mcfgv1.MachineConfig) (*mcfgv1.MachineConfig, error) {
	ordered := slices.Clone(configs)
	slices.SortFunc(ordered, func(a, b mcfgv1.MachineConfig) int { return cmp.Compare(a.Name, b.Name) })
	merged := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	rendered := &mcfgv1.MachineConfig{Spec: mcfgv1.MachineConfigSpec{KernelType: "default"}}
	for i := range ordered {
		config := &ordered[i]
		parsed, err := parseIgnition(config)
		if err != nil {
			return nil, err
		}
		merged = v3_5.Merge(merged, parsed)
		rendered.Spec.KernelArguments = append(rendered.Spec.KernelArguments, config.Spec.KernelArguments...)
		if config.Spec.KernelType != "" && config.Spec.KernelType != "default" {
			rendered.Spec.KernelType = config.Spec.KernelType
		}
	}
	raw, err := json.Marshal(merged)
	if err != nil {
		return nil, fmt.Errorf("writing the rendered configuration of machine config pool %q: %w", pool, err)
	}
	rendered.Spec.Config = runtime.RawExtension{Raw: raw}
	content, err := json.Marshal(rendered.Spec)
	if err != nil {
		return nil, fmt.Errorf("hashing the rendered configuration of machine config pool %q: %w", pool, err)
	}
	sum := sha256.Sum256(content)
	rendered.TypeMeta = metav1.TypeMeta{APIVersion: mcfgv1.GroupVersion.String(), Kind: "MachineConfig"}
	rendered.Name = "rendered-" + pool + "-" + hex.EncodeToString(sum[:])[:32]
	return rendered, nil
}

// parseIgnition reads the Ignition part of a MachineConfig with Ignition's own parser.
func parseIgnition(config *mcfgv1.MachineConfig) (types.Config, error) {
	if len(config.Spec.Config.Raw) == 0 {
		return types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}, nil
	}
	parsed, report, err := v3_5.ParseCompatibleVersion(config.Spec.Config.Raw)
	if err != nil {
		return types.Config{}, fmt.Errorf("reading the Ignition part of MachineConfig %q: %w: %s", config.Name, err, report.String())
	}
	return parsed, nil
}
