// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// sourceGroup is the API group of PerformanceProfile.
const sourceGroup = "performance.openshift.io"

// performanceProfile is a PerformanceProfile of performance.openshift.io/v2. The older versions v1 and
// v1alpha1 have a part of its fields, with the same names and meanings but one: see
// globallyDisableIrqLoadBalancing.
type performanceProfile struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            sourceSpec        `json:"spec"`
	Status          json.RawMessage   `json:"status,omitempty"`
}

type sourceSpec struct {
	CPU                             *sourceCPU            `json:"cpu,omitempty"`
	HardwareTuning                  *sourceHardwareTuning `json:"hardwareTuning,omitempty"`
	HugePages                       *sourceHugepages      `json:"hugepages,omitempty"`
	MachineConfigLabel              map[string]string     `json:"machineConfigLabel,omitempty"`
	MachineConfigPoolSelector       map[string]string     `json:"machineConfigPoolSelector,omitempty"`
	NodeSelector                    map[string]string     `json:"nodeSelector,omitempty"`
	RealTimeKernel                  *sourceRealTimeKernel `json:"realTimeKernel,omitempty"`
	KernelPageSize                  *string               `json:"kernelPageSize,omitempty"`
	AdditionalKernelArgs            []string              `json:"additionalKernelArgs,omitempty"`
	NUMA                            *sourceNUMA           `json:"numa,omitempty"`
	Net                             *sourceNet            `json:"net,omitempty"`
	GloballyDisableIrqLoadBalancing *bool                 `json:"globallyDisableIrqLoadBalancing,omitempty"`
	WorkloadHints                   *sourceHints          `json:"workloadHints,omitempty"`
}

type sourceCPU struct {
	Reserved        *cpuText `json:"reserved,omitempty"`
	Isolated        *cpuText `json:"isolated,omitempty"`
	BalanceIsolated *bool    `json:"balanceIsolated,omitempty"`
	Offlined        *cpuText `json:"offlined,omitempty"`
	Shared          *cpuText `json:"shared,omitempty"`
	OvsDpdk         *cpuText `json:"ovsDpdk,omitempty"`
}

// cpuText is a CPU list. One CPU without quotes is a number in YAML; what is meant is clear.
type cpuText string

// UnmarshalJSON reads a text or a whole number.
func (t *cpuText) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		*t = cpuText(text)
		return nil
	}
	var number uint32
	if err := json.Unmarshal(data, &number); err != nil {
		return fmt.Errorf("a CPU list is a text such as \"0-3,8\", not %.40s", data)
	}
	*t = cpuText(strconv.FormatUint(uint64(number), 10))
	return nil
}

type sourceHardwareTuning struct {
	IsolatedFrequency *int64 `json:"isolatedCpuFreq,omitempty"`
	ReservedFrequency *int64 `json:"reservedCpuFreq,omitempty"`
}

type sourceHugepages struct {
	DefaultHugepagesSize *string              `json:"defaultHugepagesSize,omitempty"`
	Pages                []sourceHugepageSize `json:"pages,omitempty"`
}

type sourceHugepageSize struct {
	Size  string `json:"size,omitempty"`
	Count int32  `json:"count,omitempty"`
	Node  *int32 `json:"node,omitempty"`
}

type sourceRealTimeKernel struct {
	Enabled *bool `json:"enabled,omitempty"`
}

type sourceNUMA struct {
	TopologyPolicy *string `json:"topologyPolicy,omitempty"`
}

type sourceNet struct {
	UserLevelNetworking *bool          `json:"userLevelNetworking,omitempty"`
	Devices             []sourceDevice `json:"devices,omitempty"`
}

type sourceDevice struct {
	InterfaceName *string `json:"interfaceName,omitempty"`
	VendorID      *string `json:"vendorID,omitempty"`
	DeviceID      *string `json:"deviceID,omitempty"`
}

type sourceHints struct {
	HighPowerConsumption  *bool `json:"highPowerConsumption,omitempty"`
	RealTime              *bool `json:"realTime,omitempty"`
	PerPodPowerManagement *bool `json:"perPodPowerManagement,omitempty"`
	MixedCpus             *bool `json:"mixedCpus,omitempty"`
}

// decode reads one PerformanceProfile in YAML or JSON. Fields that the type does not have are returned
// as remarks: the API server that holds the original dropped them, too.
func decode(document []byte) (*performanceProfile, []string, error) {
	data, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, nil, fmt.Errorf("reading YAML: %w", err)
	}
	// Another kind may have fields of the same names and other types, so what it is has to be said first.
	var about metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &about); err != nil {
		return nil, nil, describe(err)
	}
	if err := checkKind(about); err != nil {
		return nil, nil, err
	}
	var source performanceProfile
	strict, err := kjson.UnmarshalStrict(data, &source)
	if err != nil {
		return nil, nil, describe(err)
	}
	if source.Metadata.Name == "" {
		return nil, nil, errors.New("metadata.name: a PerformanceProfile has a name")
	}
	remarks := make([]string, 0, len(strict))
	for _, problem := range strict {
		remarks = append(remarks, problem.Error()+" is not a field of a PerformanceProfile; it was ignored.")
	}
	return &source, remarks, nil
}

// describe says in the words of YAML which field has a value of the wrong type.
func describe(err error) error {
	wrongType := regexp.MustCompile(`^json: cannot unmarshal (\S+) .*into Go struct field \w+\.(\S+) of type (\S+)$`)
	parts := wrongType.FindStringSubmatch(err.Error())
	if parts == nil {
		return fmt.Errorf("reading a PerformanceProfile: %w", err)
	}
	wanted := parts[3]
	switch {
	case strings.HasPrefix(wanted, "[]"):
		wanted = "list"
	case strings.HasPrefix(wanted, "map") || strings.Contains(wanted, "."):
		wanted = "object"
	}
	return invalid(parts[2], "it must be of type %s, not %s", wanted, parts[1])
}

// IsPerformanceProfile reports whether a document in YAML or JSON says that it is a PerformanceProfile.
func IsPerformanceProfile(document []byte) bool {
	var about metav1.TypeMeta
	return yaml.Unmarshal(document, &about) == nil && checkKind(about) == nil
}

func checkKind(about metav1.TypeMeta) error {
	version := about.GroupVersionKind()
	if about.Kind != "PerformanceProfile" || version.Group != sourceGroup {
		return fmt.Errorf("kind: %q of %q is not a PerformanceProfile of %s", about.Kind, about.APIVersion, sourceGroup)
	}
	if !slices.Contains([]string{"v2", "v1", "v1alpha1"}, version.Version) {
		return fmt.Errorf("apiVersion: %q is none of %s/v2, v1 and v1alpha1", about.APIVersion, sourceGroup)
	}
	return nil
}

// isTrue returns the value of an optional switch.
func isTrue(value *bool, fallback bool) bool {
	if value == nil {
		return fallback
	}
	return *value
}

// hints returns spec.workloadHints with the operator's defaults: realTime is on unless told otherwise.
func (p *performanceProfile) hints() (realTime, highPower, perPodPower, mixedCPUs bool) {
	hints := p.Spec.WorkloadHints
	if hints == nil {
		hints = &sourceHints{}
	}
	return isTrue(hints.RealTime, true), isTrue(hints.HighPowerConsumption, false),
		isTrue(hints.PerPodPowerManagement, false), isTrue(hints.MixedCpus, false)
}
