// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// additionalField is the field with further kubelet settings.
const additionalField = "spec.kubelet.additionalConfiguration"

// computedFields are the fields of KubeletConfiguration that the plan decides, and what decides them.
// The two cgroup fields are not computed, but the kubelet refuses them together with reservedSystemCPUs
// (pkg/kubelet/apis/config/validation/validation.go).
func computedFields() map[string]string {
	return map[string]string{
		"cpuManagerPolicy":          "spec.kubelet.resourceManagement",
		"cpuManagerReconcilePeriod": "spec.kubelet.resourceManagement",
		"topologyManagerPolicy":     "spec.numa.topologyPolicy",
		"topologyManagerScope":      "spec.numa.scope",
		"memoryManagerPolicy":       "spec.numa.topologyPolicy",
		"reservedSystemCPUs":        "spec.cpus",
		"reservedMemory":            "spec.kubelet.systemReservedMemory and its neighbours",
		"systemReservedCgroup":      "spec.cpus, because the kubelet refuses it beside reservedSystemCPUs",
		"kubeReservedCgroup":        "spec.cpus, because the kubelet refuses it beside reservedSystemCPUs",
	}
}

// planAdditionalConfiguration adds the user's kubelet settings. Maps of which the plan computes some keys
// take the user's other keys.
func (p *planner) planAdditionalConfiguration() {
	given := p.spec.Kubelet.AdditionalConfiguration
	if given == "" {
		return
	}
	fields, err := parseKubeletConfiguration(given)
	if err != nil {
		p.critical(ruleKubeletExtra, additionalField,
			"Write fields of KubeletConfiguration of kubelet.config.k8s.io/v1beta1 only.", "%s", err)
		return
	}
	p.refuseForeignFields(fields)
	for _, m := range p.sharedMaps() {
		p.mergeMap(m, fields[m.name])
		delete(fields, m.name)
	}
	p.checkOptions()
	if len(fields) > 0 {
		p.plan.Kubelet.Additional = fields
	}
}

// refuseForeignFields removes the fields that somebody else decides, with a finding for each.
func (p *planner) refuseForeignFields(fields map[string]any) {
	computed, platform := computedFields(), p.input.Platform.KubeletFields
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		by, ok := computed[name]
		if slices.Contains(platform, name) {
			by, ok = "the platform, which refuses it here", true
		}
		if ok {
			p.critical(ruleKubeletExtra, additionalField, "Remove it.", "%s is decided by %s", name, by)
			delete(fields, name)
		}
	}
}

// parseKubeletConfiguration reads YAML or JSON as the kubelet itself does, strictly: unknown fields, fields
// in the wrong case, fields given twice and values of the wrong type are errors.
func parseKubeletConfiguration(text string) (map[string]any, error) {
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, err
	}
	var typed kubeletConfiguration
	problems, err := json.UnmarshalStrict(data, &typed)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err := checkKubeletKind(typed.TypeMeta); err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
		return nil, err
	}
	delete(fields, "kind")
	delete(fields, "apiVersion")
	return fields, nil
}

// checkKubeletKind takes a text of its kind, and one that does not name any.
func checkKubeletKind(given metav1.TypeMeta) error {
	const kind, version = "KubeletConfiguration", "kubelet.config.k8s.io/v1beta1"
	if given.Kind != "" && given.Kind != kind || given.APIVersion != "" && given.APIVersion != version {
		return fmt.Errorf("it is of the kind %s of %s, and not %s of %s", given.Kind, cmp.Or(given.APIVersion, version), kind, version)
	}
	return nil
}

// sharedMap is a map of KubeletConfiguration that the plan and the user fill together.
type sharedMap struct {
	name   string
	values *map[string]string
	// computed keys belong to the plan.
	computed []string
	// known keys are all that exist; empty when the user may name any.
	known []string
}

// sharedMaps lists the maps. The options are those of pkg/kubelet/cm/cpumanager/policy_options.go and
// pkg/kubelet/cm/topologymanager/policy_options.go that the default feature gates allow; the kubelet does not
// start with any other.
func (p *planner) sharedMaps() []sharedMap {
	k := &p.plan.Kubelet
	cpuOptions := []string{optionAcrossNUMA, "strict-cpu-reservation", optionByCache}
	topologyOptions := []string{"prefer-closest-numa-nodes"}
	if k.CPUManagerPolicy == policyNone {
		cpuOptions = []string{"(none with this policy)"}
	}
	if k.TopologyManagerPolicy == policyNone {
		topologyOptions = []string{"(none with this policy)"}
	}
	return []sharedMap{
		{"cpuManagerPolicyOptions", &k.CPUManagerPolicyOptions, []string{optionFullPCPUsOnly}, cpuOptions},
		{"topologyManagerPolicyOptions", &k.TopologyManagerPolicyOptions, []string{optionMaxNUMANodes}, topologyOptions},
		{"systemReserved", &k.SystemReserved, []string{resourceMemory}, []string{"cpu", "ephemeral-storage", "pid"}},
		{"kubeReserved", &k.KubeReserved, []string{resourceMemory}, []string{"cpu", "ephemeral-storage", "pid"}},
		{"evictionHard", &k.EvictionHard, []string{evictMemoryAvailable}, nil},
	}
}

// mergeMap adds the user's keys to a map of the plan.
func (p *planner) mergeMap(m sharedMap, given any) {
	values, _ := given.(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, _ := values[key].(string)
		switch {
		case slices.Contains(m.computed, key):
			p.critical(ruleKubeletExtra, additionalField, "Remove it.", "%s.%s is computed by the operator", m.name, key)
		case len(m.known) > 0 && !slices.Contains(m.known, key):
			p.critical(ruleKubeletExtra, additionalField, "Remove it.",
				"%s.%s is not one of %s", m.name, key, strings.Join(m.known, ", "))
		case strings.HasSuffix(m.name, "PolicyOptions") && !isBool(value):
			p.critical(ruleKubeletExtra, additionalField, "Write \"true\" or \"false\".",
				"%s.%s is %q, which is neither true nor false", m.name, key, value)
		default:
			if *m.values == nil {
				*m.values = map[string]string{}
			}
			(*m.values)[key] = value
		}
	}
}

func isBool(text string) bool {
	_, err := strconv.ParseBool(text)
	return err == nil
}

const (
	optionAcrossNUMA = "distribute-cpus-across-numa"
	optionByCache    = "prefer-align-cpus-by-uncorecache"
)

// checkOptions refuses the combination of options with which the kubelet does not start
// (NewStaticPolicyOptions in pkg/kubelet/cm/cpumanager/policy_options.go).
func (p *planner) checkOptions() {
	enabled := func(option string) bool {
		value, err := strconv.ParseBool(p.plan.Kubelet.CPUManagerPolicyOptions[option])
		return err == nil && value
	}
	if enabled(optionByCache) && enabled(optionAcrossNUMA) {
		p.critical(ruleKubeletExtra, additionalField, "Remove one of them.",
			"the options %s and %s of the CPU manager exclude each other", optionByCache, optionAcrossNUMA)
	}
}
