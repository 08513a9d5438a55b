// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const kubeletField = "metadata.annotations[" + annotationKubelet + "]"

// kubelet converts the annotation kubeletconfig.experimental, a KubeletConfiguration in JSON under the
// values of the operator, and the annotation that hands resources to DRA drivers.
func (c *converter) kubelet() error {
	c.spec.Kubelet.ResourceManagement = v1alpha1.ResourceManagementKubelet
	if c.dynamicAllocation() {
		c.useDynamicAllocation()
	} else {
		c.spec.Kubelet.FullCores = v1alpha1.FullCoresNotRequired
		if c.spec.NUMA.TopologyPolicy == v1alpha1.TopologySingleNUMANode {
			c.spec.Kubelet.FullCores = v1alpha1.FullCoresRequired
		}
	}
	c.spec.Kubelet.SystemReservedMemory = "500Mi"
	c.spec.Kubelet.KubeReservedMemory = "500Mi"
	c.spec.Kubelet.EvictionHardMemory = "100Mi"
	c.remarkOnReservedMemory()
	if c.annotation(annotationKubelet) == "" {
		return nil
	}
	configuration, err := c.kubeletAnnotation()
	if err != nil {
		return err
	}
	return c.kubeletConfiguration(configuration)
}

// useDynamicAllocation switches the kubelet's managers off, as a PerformanceProfile with the annotation does.
func (c *converter) useDynamicAllocation() {
	c.spec.Kubelet.ResourceManagement = v1alpha1.ResourceManagementDRA
	c.spec.NUMA.TopologyPolicy, c.spec.NUMA.Scope = v1alpha1.TopologyNone, ""
	c.remark("metadata.annotations["+annotationDRA+"]", "under a PerformanceProfile the kubelet then reserves no CPUs and no memory; this profile keeps reserving the housekeeping CPUs.")
}

func (c *converter) remarkOnReservedMemory() {
	strict := []v1alpha1.TopologyPolicy{v1alpha1.TopologyRestricted, v1alpha1.TopologySingleNUMANode}
	if slices.Contains(strict, c.spec.NUMA.TopologyPolicy) {
		c.remark("spec.numa.topologyPolicy", "a PerformanceProfile reserves the kubelet's memory on NUMA node 0; this profile reserves the same amount on a NUMA node with housekeeping CPUs, away from bypass NICs.")
	}
}

// kubeletAnnotation reads the annotation. Fields that KubeletConfiguration does not have, which the
// PerformanceProfile's operator drops, are dropped with a remark.
func (c *converter) kubeletAnnotation() (map[string]any, error) {
	text := []byte(c.annotation(annotationKubelet))
	var typed kubeletconfig.KubeletConfiguration
	strict, err := kjson.UnmarshalStrict(text, &typed)
	if err != nil {
		return nil, invalid(kubeletField, "reading a KubeletConfiguration: %w", err)
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, invalid(kubeletField, "reading JSON: %w", err)
	}
	for _, problem := range strict {
		c.remark(kubeletField, "%s; the field was left out.", problem)
		if _, path, found := strings.Cut(problem.Error(), `"`); found {
			delete(fields, path[:strings.IndexAny(path, `."[`)])
		}
	}
	delete(fields, "kind")
	delete(fields, "apiVersion")
	return fields, nil
}

// kubeletConfiguration takes a KubeletConfiguration apart: what has a field of its own, what the
// operator computes in both worlds, and the rest.
func (c *converter) kubeletConfiguration(configuration map[string]any) error {
	c.memoryQuantity(configuration, "systemReserved", "memory", &c.spec.Kubelet.SystemReservedMemory)
	c.memoryQuantity(configuration, "kubeReserved", "memory", &c.spec.Kubelet.KubeReservedMemory)
	c.memoryQuantity(configuration, "evictionHard", "memory.available", &c.spec.Kubelet.EvictionHardMemory)
	c.fullCores(configuration)
	c.topologyScope(configuration)
	for _, key := range refusedKubeletFields() {
		if _, ok := configuration[key]; ok {
			c.remarkOnKubelet(key, "the operator computes it; the value was left out.")
			delete(configuration, key)
		}
	}
	options := kubeletOptions()
	for _, key := range slices.Sorted(maps.Keys(options)) {
		c.keepEntries(configuration, key, options[key])
	}
	if len(configuration) == 0 {
		return nil
	}
	rest, err := yaml.Marshal(configuration)
	if err != nil {
		return invalid(kubeletField, "writing YAML: %w", err)
	}
	c.spec.Kubelet.AdditionalConfiguration = string(rest)
	return nil
}

// refusedKubeletFields are the fields of KubeletConfiguration that a LowLatencyNodeProfile computes, those
// that the kubelet refuses beside them, and those that OpenShift's machine-config operator keeps to itself.
func refusedKubeletFields() []string {
	return []string{
		"cgroupDriver", "clusterDNS", "clusterDomain", "cpuManagerPolicy", "cpuManagerReconcilePeriod", "failSwapOn",
		"featureGates", "kubeReservedCgroup", "memoryManagerPolicy", "memorySwap", "reservedMemory", "reservedSystemCPUs",
		"staticPodPath", "systemReservedCgroup", "topologyManagerPolicy", "topologyManagerScope",
	}
}

// kubeletOptions are the entries that spec.kubelet.additionalConfiguration takes in maps of which the
// operator computes others.
func kubeletOptions() map[string][]string {
	resources := []string{"cpu", "ephemeral-storage", "pid"}
	return map[string][]string{
		"cpuManagerPolicyOptions": {
			"distribute-cpus-across-numa", "strict-cpu-reservation", "prefer-align-cpus-by-uncorecache",
		},
		"topologyManagerPolicyOptions": {"prefer-closest-numa-nodes"},
		"systemReserved":               resources,
		"kubeReserved":                 resources,
	}
}

func (c *converter) remarkOnKubelet(key, format string, args ...any) {
	c.remark(kubeletField+"."+key, format, args...)
}

// keepEntries leaves only the given entries in a map of the configuration.
func (c *converter) keepEntries(configuration map[string]any, key string, allowed []string) {
	values, _ := configuration[key].(map[string]any)
	if strings.HasSuffix(key, "PolicyOptions") && c.dynamicAllocation() {
		allowed = nil
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(allowed, name) {
			c.remarkOnKubelet(key+"["+name+"]", "%v has no counterpart; it was left out.", values[name])
			delete(values, name)
		}
	}
	if len(values) == 0 {
		delete(configuration, key)
	}
}

// take removes an entry from a map of the configuration and returns it.
func take(configuration map[string]any, key, entry string) (string, bool) {
	values, _ := configuration[key].(map[string]any)
	value, ok := values[entry].(string)
	delete(values, entry)
	if len(values) == 0 {
		delete(configuration, key)
	}
	return value, ok
}

// memoryQuantity moves one amount of memory into a field of its own.
func (c *converter) memoryQuantity(configuration map[string]any, key, entry string, to *v1alpha1.MemoryQuantity) {
	amount, ok := take(configuration, key, entry)
	if !ok {
		return
	}
	quantity, err := resource.ParseQuantity(amount)
	bytes := resource.NewQuantity(quantity.Value(), resource.BinarySI)
	if err != nil || bytes.Cmp(quantity) != 0 || bytes.Sign() <= 0 {
		c.remarkOnKubelet(key+"["+entry+"]", "%q is not a whole number of bytes; %s stays.", amount, *to)
		return
	}
	*to = v1alpha1.MemoryQuantity(bytes.String())
}

// fullCores moves full-pcpus-only into its field; a PerformanceProfile lets the annotation win.
func (c *converter) fullCores(configuration map[string]any) {
	value, ok := take(configuration, "cpuManagerPolicyOptions", "full-pcpus-only")
	if !ok || c.dynamicAllocation() {
		return
	}
	c.spec.Kubelet.FullCores = v1alpha1.FullCoresNotRequired
	if value == "true" {
		c.spec.Kubelet.FullCores = v1alpha1.FullCoresRequired
	}
}

// topologyScope moves topologyManagerScope into its field.
func (c *converter) topologyScope(configuration map[string]any) {
	scope, ok := configuration["topologyManagerScope"].(string)
	if !ok || c.spec.NUMA.TopologyPolicy == v1alpha1.TopologyNone {
		return
	}
	scopes := map[string]v1alpha1.TopologyScope{"container": v1alpha1.TopologyScopeContainer, "pod": v1alpha1.TopologyScopePod}
	if to, known := scopes[scope]; known {
		c.spec.NUMA.Scope = to
		delete(configuration, "topologyManagerScope")
	}
}
