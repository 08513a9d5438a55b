// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1

// NodeContainerRuntime is what runs the containers of pods.
//
// +kubebuilder:validation:Enum=CRIO;Containerd
type NodeContainerRuntime string

const (
	// NodeContainerRuntimeCRIO is CRI-O.
	NodeContainerRuntimeCRIO NodeContainerRuntime = "CRIO"
	// NodeContainerRuntimeContainerd is containerd.
	NodeContainerRuntimeContainerd NodeContainerRuntime = "Containerd"
)

// NodeSoftware is the software of a node as far as it decides how a plan is written there. Plans do not depend on it. An
// absent field means that the host does not say, or that the agent does not see it.
type NodeSoftware struct {
	// kernelPageSizeBytes is the size of the pages of the running kernel.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	// +optional
	KernelPageSizeBytes int64 `json:"kernelPageSizeBytes,omitempty"`

	// possibleCPUs are the CPUs that the running kernel could ever have.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	PossibleCPUs string `json:"possibleCPUs,omitempty"`

	// containerRuntime is CRIO or Containerd, where one is known by its service.
	// +optional
	ContainerRuntime NodeContainerRuntime `json:"containerRuntime,omitempty"`

	// tunedProfiles is the folder in which TuneD looks for the profiles of the host's owner; absent where TuneD is not
	// installed or not enabled.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	TuneDProfiles string `json:"tunedProfiles,omitempty"`

	// kubelet is the kubelet of the node.
	// +optional
	Kubelet *NodeKubelet `json:"kubelet,omitempty"`
}

// NodeKubelet is the configuration of a kubelet, with our own files.
type NodeKubelet struct {
	// unit is the service that runs it, such as kubelet.service or k3s-agent.service.
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Unit string `json:"unit,omitempty"`

	// configArguments is the variable KUBELET_CONFIG_ARGS, by which the unit of kubeadm gives the kubelet its configuration
	// file, without what the operator has written. When omitted, the unit has none.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ConfigArguments string `json:"configArguments,omitempty"`

	// flags are those of the running kubelet that bear on its configuration, at most 64.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	// +listType=atomic
	// +optional
	Flags []string `json:"flags,omitempty"`

	// dropInFolder is the folder whose files it merges over its configuration file. When omitted, it runs without one.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	DropInFolder string `json:"dropInFolder,omitempty"`

	// files are its configuration file and the files of dropInFolder, at most 17. A folder that the agent does not see stands
	// here itself, without content.
	// +kubebuilder:validation:MaxItems=17
	// +listType=map
	// +listMapKey=path
	// +optional
	Files []NodeKubeletFile `json:"files,omitempty"`
}

// KubeletFileRole is what the kubelet takes a file for.
//
// +kubebuilder:validation:Enum=Configuration;DropIn
type KubeletFileRole string

const (
	// KubeletFileConfiguration is the file of the flag --config.
	KubeletFileConfiguration KubeletFileRole = "Configuration"
	// KubeletFileDropIn files are merged over it.
	KubeletFileDropIn KubeletFileRole = "DropIn"
)

// NodeKubeletFile is a file of a kubelet's configuration.
type NodeKubeletFile struct {
	// path of the file.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Path string `json:"path"`

	// role is Configuration or DropIn.
	// +required
	Role KubeletFileRole `json:"role"`

	// content is what the file says, without addresses, domains, headers and paths. When omitted, the agent cannot read it, or it
	// is longer than anybody's.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Content string `json:"content,omitempty"`
}
