// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package manifests

import (
	"maps"
	"path"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

const (
	// PoolServiceAccount is the service account of device plugins in the agents' namespace, under the name that it
	// has after config/default. It has no rights in the API; on OpenShift it may use the security context constraint
	// that lets a pod mount the host.
	PoolServiceAccount = "lowlatency-operator-device-plugin"
	// DriverServiceAccount is that of DRA drivers. It reads claims and writes ResourceSlices, those of its own node
	// only by an admission policy.
	DriverServiceAccount = "lowlatency-operator-dra-driver"

	devicePlugin = v1alpha1.ComponentDevicePlugin
	// draDriver is the command that takes the place of the device plugin.
	draDriver = "dra-driver"
	// hostFolder, configFolder, socketFolder and cdiFolder are where the container finds the host, the pool, the
	// kubelet's socket (k8s.io/kubelet/pkg/apis/deviceplugin, DevicePluginPath) and the folder of CDI
	// specifications that change (cncf-tags/container-device-interface, DefaultDynamicDir).
	hostFolder   = "/host"
	configFolder = "/etc/lowlatency"
	socketFolder = "/var/lib/kubelet/device-plugins"
	cdiFolder    = "/var/run/cdi"
	// registryFolder is where the kubelet looks for the sockets of DRA drivers, pluginsFolder where they keep
	// their own (k8s.io/dynamic-resource-allocation/kubeletplugin, KubeletRegistryDir, KubeletPluginsDir).
	registryFolder = "/var/lib/kubelet/plugins_registry"
	// podResourcesFolder has the socket of the kubelet's PodResources service.
	podResourcesFolder = "/var/lib/kubelet/pod-resources"
	pluginsFolder      = "/var/lib/kubelet/plugins"
)

// poolDaemonSet runs the device plugin of a pool on its nodes, or its DRA driver. It is one DaemonSet for both, so that
// Kubernetes ends the plugin on a node before it starts the driver; a driver that the plugin follows offers nothing any
// more. The container is root without any capability: the
// folder of the kubelet's socket is root's. It reads the folders of the host that it needs, and writes that folder and the folder of CDI
// specifications only. Some stacks need more; see withStack.
func poolDaemonSet(in PoolInput) *appsv1.DaemonSet {
	metadata := in.metadata(PoolObjectName(in.Pool.Name), in.AgentNamespace, devicePlugin)
	return &appsv1.DaemonSet{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "DaemonSet"},
		ObjectMeta: metadata,
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: poolPodLabels(in)},
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: in.rollingUpdate(),
			},
			MinReadySeconds: settlingSeconds,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels: maps.Clone(metadata.Labels),
					Annotations: map[string]string{
						"kubectl.kubernetes.io/default-container": devicePlugin,
						"openshift.io/required-scc":               "lowlatency-operator-bypass",
						"target.workload.openshift.io/management": `{"effect": "PreferredDuringScheduling"}`,
					},
				},
				Spec: withStack(in, poolPod(in)),
			},
		},
	}
}

// settlingSeconds is how long a new pod runs before the next one is replaced, or the one beside it ends: enough to look at
// the host and to register with the kubelet.
const settlingSeconds = 10

// rollingUpdate updates a tenth of the nodes at a time. A device plugin starts beside the one that it replaces, which ends
// once the new one has settled, so that the kubelet always has one of them. Two DRA drivers cannot have one socket, and
// plugins of some stacks cannot run beside each other: there the old one ends first.
func (in PoolInput) rollingUpdate() *appsv1.RollingUpdateDaemonSet {
	share, none := intstr.FromString("10%"), intstr.FromInt32(0)
	if in.isDynamic() || in.stackPod().Alone {
		return &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &share}
	}
	return &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &none, MaxSurge: &share}
}

// poolPodLabels select the pods of the DaemonSet; they can never change, even when the DRA driver takes over.
func poolPodLabels(in PoolInput) map[string]string {
	return map[string]string{
		v1alpha1.LabelComponent:  devicePlugin,
		v1alpha1.LabelBypassPool: in.Pool.Name,
	}
}

func poolPod(in PoolInput) corev1.PodSpec {
	pod := corev1.PodSpec{
		ServiceAccountName:            PoolServiceAccount,
		AutomountServiceAccountToken:  new(in.isDynamic()),
		PriorityClassName:             "system-node-critical",
		TerminationGracePeriodSeconds: new(int64(5)),
		Affinity:                      poolAffinity(in.Pool.Spec.NodeSelector),
		// A node that is not yet verified has our own taint; its NICs are to be there when it is lifted.
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		SecurityContext: &corev1.PodSecurityContext{
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			// Where SELinux is enforced, only this type may read the files of the host and write the folder of
			// the kubelet's socket.
			SELinuxOptions: &corev1.SELinuxOptions{Type: "spc_t"},
		},
		Containers: []corev1.Container{poolContainer(in)},
	}
	for _, folder := range in.readFolders() {
		pod.Volumes = append(pod.Volumes, hostVolume(folder.name, folder.path, folder.kind))
	}
	if in.isDynamic() {
		pod.ServiceAccountName = DriverServiceAccount
	}
	for _, folder := range in.writableFolders() {
		pod.Volumes = append(pod.Volumes, hostVolume(folder.name, folder.path, folder.kind))
	}
	pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "pool", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: PoolObjectName(in.Pool.Name)}},
	}})
	return pod
}

// folder is a folder of the host.
type folder struct {
	name, path string
	kind       corev1.HostPathType
}

// readFolders are what host.ReadNICs reads, and the folder of the one socket that is asked who holds what: whoever is root, even
// without capabilities, reads all of root's secrets and connects to all of root's sockets that it sees. User files are looked for
// where the pool says that they are.
func (in PoolInput) readFolders() []folder {
	folders := []folder{
		{"proc", "/proc", corev1.HostPathDirectory},
		{"sys", "/sys", corev1.HostPathDirectory},
		{"dev", "/dev", corev1.HostPathDirectory},
		{"pod-resources", podResourcesFolder, corev1.HostPathDirectory},
	}
	for _, userSpace := range bypass.UserSpaceFolders(&in.Pool.Spec) {
		isMounted := slices.ContainsFunc(folders, func(f folder) bool { return userSpace == f.path || strings.HasPrefix(userSpace, f.path+"/") })
		if !isMounted {
			folders = append(folders, folder{"user-space", userSpace, corev1.HostPathDirectoryOrCreate})
		}
	}
	return folders
}

// writableFolders are what the container writes, under the same path: the kubelet is told the path of a socket.
func (in PoolInput) writableFolders() []folder {
	cdi := folder{"cdi", cdiFolder, corev1.HostPathDirectoryOrCreate}
	if !in.isDynamic() {
		return []folder{{"sockets", socketFolder, corev1.HostPathDirectory}, cdi}
	}
	return []folder{
		{"registry", registryFolder, corev1.HostPathDirectory},
		// Only its own folder: the sockets of other drivers are beside it.
		{"driver", path.Join(pluginsFolder, bypass.DriverName(in.Pool.Name)), corev1.HostPathDirectoryOrCreate},
		cdi,
	}
}

// arguments say which of the two the container is.
func (in PoolInput) arguments() []string {
	common := []string{
		"--pool-file=" + path.Join(configFolder, v1alpha1.PoolKey), "--root=" + hostFolder, "--node-name=$(NODE_NAME)",
	}
	switch {
	case !in.isDynamic():
		return slices.Concat([]string{devicePlugin}, common)
	case in.Draining:
		return slices.Concat([]string{draDriver, "--pool=" + in.Pool.Name}, common, []string{"--drain"})
	default:
		return slices.Concat([]string{draDriver, "--pool=" + in.Pool.Name}, common)
	}
}

func poolContainer(in PoolInput) corev1.Container {
	container := corev1.Container{
		Name:  devicePlugin,
		Image: in.Image,
		Args:  in.arguments(),
		Env: []corev1.EnvVar{
			// One thread that reads, one for the garbage collector and the kubelet.
			{Name: "GOMAXPROCS", Value: "2"},
			{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}}},
			// A NIC that carries these addresses is never handed to a pod; without them, no NIC is known to be free.
			{Name: "HOST_IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.hostIPs"}}},
		},
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse("32Mi"),
		}},
		SecurityContext: &corev1.SecurityContext{
			RunAsUser:                new(int64(0)),
			RunAsGroup:               new(int64(0)),
			Privileged:               new(false),
			AllowPrivilegeEscalation: new(false),
			ReadOnlyRootFilesystem:   new(true),
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	for _, folder := range in.readFolders() {
		// Also what is mounted below it, where the runtime can do that.
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{
			Name: folder.name, MountPath: path.Join(hostFolder, folder.path), ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyIfPossible),
		})
	}
	for _, folder := range in.writableFolders() {
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: folder.name, MountPath: folder.path})
	}
	// The whole folder: a file mounted by itself would not follow a change of the ConfigMap.
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "pool", MountPath: configFolder, ReadOnly: true})
	return container
}

// IsDriver reports whether a DaemonSet of a pool runs the DRA driver, and whether it drains.
func IsDriver(daemonSet *appsv1.DaemonSet) (dynamic, draining bool) {
	for _, container := range daemonSet.Spec.Template.Spec.Containers {
		if len(container.Args) > 0 && container.Args[0] == draDriver {
			return true, slices.Contains(container.Args, "--drain")
		}
	}
	return false, false
}

// stackPod is what the pod of the device plugin needs besides, because of the pool's stack.
func (in PoolInput) stackPod() bypass.PluginPod {
	return bypass.StackOf(in.Pool.Spec.Stack.Type).Plugin
}

// withStack adds what the device plugin needs besides, because of the pool's stack.
func withStack(in PoolInput, pod corev1.PodSpec) corev1.PodSpec {
	stack := in.stackPod()
	pod.HostNetwork = stack.HostNetwork
	container := &pod.Containers[0]
	for _, capability := range stack.Capabilities {
		container.SecurityContext.Capabilities.Add = append(container.SecurityContext.Capabilities.Add, corev1.Capability(capability))
	}
	for _, folder := range stack.Folders {
		kind := corev1.HostPathDirectory
		if folder.Created {
			kind = corev1.HostPathDirectoryOrCreate
		}
		pod.Volumes = append(pod.Volumes, hostVolume(folder.Name, folder.Path, kind))
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: folder.Name, MountPath: folder.Path})
	}
	return pod
}

// poolAffinity brings the plugin to the nodes of the pool that a profile governs.
func poolAffinity(selector v1alpha1.NodeSelector) *corev1.Affinity {
	labels := nodeLabels(selector)
	expressions := make([]corev1.NodeSelectorRequirement, 0, 1+len(labels))
	expressions = append(expressions, corev1.NodeSelectorRequirement{Key: v1alpha1.LabelProfile, Operator: corev1.NodeSelectorOpExists})
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		expressions = append(expressions, corev1.NodeSelectorRequirement{
			Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{labels[key]},
		})
	}
	for _, expression := range selector.MatchExpressions {
		// Node affinity has the operators of a LabelSelector, by the same names.
		expressions = append(expressions, corev1.NodeSelectorRequirement{
			Key: string(expression.Key), Operator: corev1.NodeSelectorOperator(expression.Operator), Values: plainValues(expression.Values),
		})
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: expressions}},
		},
	}}
}

// plainValues are the values of a requirement; nil when it has none.
func plainValues(values []v1alpha1.LabelValue) []string {
	if len(values) == 0 {
		return nil
	}
	plain := make([]string, 0, len(values))
	for _, value := range values {
		plain = append(plain, string(value))
	}
	return plain
}

// nodeLabels are the labels that a node of the pool carries.
func nodeLabels(selector v1alpha1.NodeSelector) map[string]string {
	labels := make(map[string]string, len(selector.MatchLabels))
	for key, value := range selector.MatchLabels {
		labels[key] = string(value)
	}
	return labels
}

func hostVolume(name, folder string, kind corev1.HostPathType) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &kind},
	}}
}
