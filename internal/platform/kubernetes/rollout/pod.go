// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package rollout

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/enactment"
)

// Where the pod finds the host and the instruction.
const (
	hostMount        = "/host"
	instructionMount = "/instruction"
	hostVolume       = "host"
	// Account is the service account of the pod, which has no right in the API, and no token.
	Account = "lowlatency-operator-enactment"
	// installRole is the first argument of the operator's program in the pod.
	installRole = "install-guard"
)

// pod installs the guard on one host and hands the instruction to it. It is the only pod that writes a host, runs on the node of
// the instruction alone, and is removed when the guard has answered.
func (p *Platform) pod(node *corev1.Node, configMap *corev1.ConfigMap) *corev1.Pod {
	pod := Pod(node, p.Image, p.AgentNamespace)
	pod.Labels = maps.Clone(configMap.Labels)
	pod.Spec.Containers[0].Args = args(node, configMap)
	pod.Annotations[v1alpha1.AnnotationNumber] = configMap.Annotations[v1alpha1.AnnotationNumber]
	return pod
}

// args are the arguments of the operator's program in the pod.
func args(node *corev1.Node, configMap *corev1.ConfigMap) []string {
	var instruction []string
	if configMap.Annotations[v1alpha1.AnnotationAction] != string(enactment.MoveKey) {
		instruction = []string{"--instruction=" + instructionMount + "/" + InstructionEntry}
	}
	return slices.Concat([]string{
		installRole, "--root=" + hostMount, "--public-key=" + instructionMount + "/" + PublicKeyEntry,
		"--key-chain=" + instructionMount + "/" + KeyChainEntry, "--node-name=" + node.Name, "--node-uid=" + string(node.UID),
	}, instruction)
}

// Pod is that pod for a node, without the profile and the number of the instruction.
func Pod(node *corev1.Node, image, namespace string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metadataOf(node, namespace), Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyOnFailure, ServiceAccountName: Account, AutomountServiceAccountToken: new(false),
		EnableServiceLinks: new(false), HostPID: true, PriorityClassName: "system-node-critical",
		TerminationGracePeriodSeconds: new(int64(5)), Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Affinity: onNode(node.Name),
		Containers: []corev1.Container{{
			Name: installRole, Image: image,
			Args: args(node, &corev1.ConfigMap{}),
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("32Mi"),
			}},
			SecurityContext: &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0)), ReadOnlyRootFilesystem: new(true)},
			VolumeMounts: []corev1.VolumeMount{
				{Name: hostVolume, MountPath: hostMount}, {Name: InstructionEntry, MountPath: instructionMount, ReadOnly: true},
			},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}},
		Volumes: []corev1.Volume{
			{Name: hostVolume, VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: new(corev1.HostPathDirectory)}}},
			{Name: InstructionEntry, VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: objectName(node.Name)},
			}}},
		},
	}}
}

// onNode has the scheduler put a pod on one node: the kubelet refuses no pod then that does not fit, as it does where nodeName is
// given.
func onNode(name string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
		}}}},
	}}}
}
