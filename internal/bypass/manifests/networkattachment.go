// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	// annotationResourceName tells Multus whose devices the attachment is for: it puts the identifier of the
	// container's device into the plugin's configuration as deviceID and pciBusID.
	annotationResourceName = "k8s.v1.cni.cncf.io/resourceName"
	// cniVersion is the version of the CNI specification that the configuration follows.
	cniVersion = "1.0.0"
)

// NetworkAttachmentDefinitionGroupVersionKind is the kind of Multus' NetworkAttachmentDefinition.
func NetworkAttachmentDefinitionGroupVersionKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "k8s.cni.cncf.io", Version: "v1", Kind: "NetworkAttachmentDefinition"}
}

// cniConfig is the configuration of a CNI plugin, as far as we use it.
type cniConfig struct {
	CNIVersion string `json:"cniVersion"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	// Master and Mode are those of macvlan and ipvlan.
	Master string `json:"master,omitempty"`
	Mode   string `json:"mode,omitempty"`
	*virtualFunctionConfig
	// Capabilities lets Multus hand over the addresses of the pod's annotation.
	Capabilities map[string]bool `json:"capabilities,omitempty"`
	IPAM         *cniIPAM        `json:"ipam,omitempty"`
}

// virtualFunctionConfig is what the sriov plugin tells a NIC about a virtual function (sriov-cni, configuration reference).
type virtualFunctionConfig struct {
	VLAN       int32  `json:"vlan,omitempty"`
	VLANQoS    int32  `json:"vlanQoS,omitempty"`
	SpoofCheck string `json:"spoofchk,omitempty"`
	Trust      string `json:"trust,omitempty"`
	LinkState  string `json:"link_state,omitempty"`
	// MinimumRate and MaximumRate are in megabits per second.
	MinimumRate int32 `json:"min_tx_rate,omitempty"`
	MaximumRate int32 `json:"max_tx_rate,omitempty"`
}

func virtualFunctionConfigOf(settings *v1alpha1.VirtualFunctionSettings) *virtualFunctionConfig {
	if settings == nil {
		return nil
	}
	states := map[v1alpha1.LinkStateSetting]string{
		v1alpha1.LinkStateAuto: "auto", v1alpha1.LinkStateEnabled: "enable", v1alpha1.LinkStateDisabled: "disable",
	}
	return &virtualFunctionConfig{
		VLAN: settings.VLAN, VLANQoS: settings.VLANPriority,
		SpoofCheck: strings.ToLower(string(settings.SpoofCheck)), Trust: strings.ToLower(string(settings.Trust)),
		LinkState: states[settings.LinkState], MinimumRate: settings.MinimumTransmitMegabits, MaximumRate: settings.MaximumTransmitMegabits,
	}
}

type cniIPAM struct {
	Type string `json:"type"`
}

// networkAttachmentDefinition gives a pod of the namespace the interface of the NIC that it was given.
func networkAttachmentDefinition(in PoolInput, namespace string) (*unstructured.Unstructured, error) {
	config, err := attachmentConfig(in.Pool)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(config)
	if err != nil {
		return nil, fmt.Errorf("printing the CNI configuration: %w", err)
	}
	metadata := in.metadata(in.Pool.Name, namespace, "network-attachment")
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"config": string(text)}}}
	object.SetGroupVersionKind(NetworkAttachmentDefinitionGroupVersionKind())
	object.SetName(metadata.Name)
	object.SetNamespace(metadata.Namespace)
	object.SetLabels(metadata.Labels)
	object.SetAnnotations(map[string]string{annotationResourceName: in.Pool.Spec.ResourceName})
	return object, nil
}

// attachmentConfig is the CNI configuration (containernetworking/plugins and sriov-cni, README of each plugin).
func attachmentConfig(pool *v1alpha1.BypassNICPool) (cniConfig, error) {
	attachment := pool.Spec.NetworkAttachment
	config := cniConfig{CNIVersion: cniVersion, Name: pool.Name}
	switch attachment.Type {
	case v1alpha1.AttachmentHostDevice:
		config.Type = "host-device"
	case v1alpha1.AttachmentSRIOV:
		config.Type, config.virtualFunctionConfig = "sriov", virtualFunctionConfigOf(attachment.VirtualFunction)
	case v1alpha1.AttachmentMACVLAN:
		config.Type, config.Master, config.Mode = "macvlan", attachment.ParentInterface, "bridge"
	case v1alpha1.AttachmentIPVLAN:
		config.Type, config.Master, config.Mode = "ipvlan", attachment.ParentInterface, "l2"
	default:
		return cniConfig{}, fmt.Errorf("spec.networkAttachment.type %q is not known", attachment.Type)
	}
	if config.Master == "" && pool.Spec.Sharing.Mode == v1alpha1.SharingShared {
		return cniConfig{}, fmt.Errorf("spec.networkAttachment.type %s moves the interface into one pod, but spec.sharing.mode "+
			"Shared hands it to several; choose MACVLAN, IPVLAN or spec.sharing.mode Exclusive", attachment.Type)
	}
	if attachment.Addresses != v1alpha1.AddressesNone {
		config.Capabilities, config.IPAM = map[string]bool{"ips": true}, &cniIPAM{Type: "static"}
	} else if attachment.Type == v1alpha1.AttachmentIPVLAN {
		return cniConfig{}, errors.New("spec.networkAttachment.type IPVLAN needs spec.networkAttachment.addresses Static: " +
			"the ipvlan plugin makes no interface without an address")
	}
	return config, nil
}
