// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const (
	// containerName is the only container of a test's pod.
	containerName = "measure"
	// RecordFile is where the container leaves its record, for the kubelet.
	RecordFile = "/dev/termination-log"
	// keptSeconds is for how long a finished Job, its pod and its log stay.
	keptSeconds = 3600
	// graceSeconds is how long a pod has to end when it is deleted.
	graceSeconds = 1
	// repetitionOverhead is what a repetition takes besides its measurement.
	repetitionOverheadSeconds = 10
	// baseMemory is for the program, cpuMemory for the records of one CPU (64 MiB at most, which are sorted in a copy).
	baseMemoryMebibytes, cpuMemoryMebibytes = 192, 160
	// unknownThreads is how many threads a core may have that nobody has reported.
	unknownThreads = 2
)

// jobFor is the Job that measures a node. Its pod is Guaranteed and asks for whole CPUs, tolerates the taints that keep other pods
// off the node (and not those by which Kubernetes says that a node is unwell), and may do nothing but measure.
func (w *World) jobFor(c *candidate, result *v1alpha1.LatencyTestResult) *batchv1.Job {
	if w.Test.Spec.Kind != v1alpha1.LatencyTestJitter {
		return w.clientJobFor(c, result.Job, result)
	}
	parameters := qualification.ParametersOf(&w.Test.Spec)
	seconds := int64(parameters.Repetitions) * int64(parameters.Duration.Seconds()+repetitionOverheadSeconds)
	return w.job(c, w.jobName(c, result), seconds, w.jitterContainer(c, parameters))
}

// job is a Job with one pod on a node, which takes so many seconds.
func (w *World) job(on *candidate, name string, seconds int64, container corev1.Container) *batchv1.Job {
	labels := manifest.Labels(v1alpha1.ComponentLatencyTest)
	labels[v1alpha1.LabelLatencyTest] = w.Test.Name
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.Test.Namespace, Name: name, Labels: labels,
			Annotations: map[string]string{
				v1alpha1.AnnotationNode: on.node.Name, v1alpha1.AnnotationParameters: qualification.ParametersOf(&w.Test.Spec).Hash(),
				v1alpha1.AnnotationRun: strconv.Itoa(int(w.Test.Spec.Run)),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "LatencyTest", Name: w.Test.Name, UID: w.Test.UID, Controller: new(true),
			}},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: new(int32(0)), Completions: new(int32(1)), Parallelism: new(int32(1)),
			ActiveDeadlineSeconds:   new(int64(StartTime.Seconds()) + seconds + keptSeconds/10),
			TTLSecondsAfterFinished: new(int32(keptSeconds)),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       pod(on, container),
			},
		},
	}
}

// jobName is another for each run, and the same however often the run is decided upon. A Job that has ended is never that of a new run: it measured a node of whose
// result nothing is known any more, as where the node was not selected for a while, and which may be another since.
func (w *World) jobName(c *candidate, result *v1alpha1.LatencyTestResult) string {
	for former := result.Job; ; {
		name := w.nameAfter(c, result, former)
		job := w.jobNamed(w.nameOfRun(name, 0))
		if job == nil || !isDone(job) {
			return name
		}
		former = name
	}
}

// nameAfter is the name of the Jobs of a run after that of another one.
func (w *World) nameAfter(c *candidate, result *v1alpha1.LatencyTestResult, former string) string {
	seed := []string{string(w.Test.UID), string(c.node.UID), c.node.Name, qualification.ParametersOf(&w.Test.Spec).Hash(),
		strconv.Itoa(int(w.Test.Spec.Run)), strconv.Itoa(int(result.Attempts)), former}
	sum := sha256.Sum256([]byte(strings.Join(seed, "\n")))
	// The server of a measurement has the name of its Job with a suffix, and so have the runs of a comparison.
	const readable, bytes = 35, 8
	name := w.Test.Name
	if len(name) > readable {
		name = strings.TrimRight(name[:readable], "-.")
	}
	return name + "-" + hex.EncodeToString(sum[:bytes])
}

func pod(c *candidate, container corev1.Container) corev1.PodSpec {
	return corev1.PodSpec{
		RestartPolicy:                 corev1.RestartPolicyNever,
		AutomountServiceAccountToken:  new(false),
		EnableServiceLinks:            new(false),
		TerminationGracePeriodSeconds: new(int64(graceSeconds)),
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{
					Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{c.node.Name},
				}},
			}}},
		}},
		Tolerations: tolerations(c.node.Spec.Taints),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{container},
	}
}

func (w *World) jitterContainer(c *candidate, parameters qualification.Parameters) corev1.Container {
	wanted := CPUsAskedFor(parameters.CPUs, c.report)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(wanted), resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", baseMemoryMebibytes+cpuMemoryMebibytes*int(parameters.CPUs))),
	}
	return w.container(w.Image, resources, []string{
		"--kind=" + string(parameters.Kind), fmt.Sprintf("--cpus=%d", parameters.CPUs), fmt.Sprintf("--own=%d", wanted),
		"--duration=" + parameters.Duration.String(), fmt.Sprintf("--repetitions=%d", parameters.Repetitions),
		"--threshold=" + parameters.Threshold.String(), "--record=" + RecordFile,
	})
}

// container runs the probe of a test.
func (w *World) container(image string, resources corev1.ResourceList, args []string) corev1.Container {
	return corev1.Container{
		Name: containerName, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
		Args:                     append([]string{"probe", "latencytest"}, args...),
		Resources:                corev1.ResourceRequirements{Requests: resources, Limits: resources},
		TerminationMessagePath:   RecordFile,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		SecurityContext: &corev1.SecurityContext{
			Privileged: new(false), AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true), RunAsNonRoot: new(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
}

// CPUsAskedFor is how many CPUs a pod asks for that measures so many: whole cores, and one more for the thread that reads the
// kernel's counters. A kubelet with the option full-pcpus-only refuses parts of cores.
func CPUsAskedFor(measured int32, report *v1alpha1.LowLatencyNode) int32 {
	threads := threadsPerCore(report)
	return (measured+threads-1)/threads*threads + threads
}

// threadsPerCore is how many online CPUs the largest core of a node has.
func threadsPerCore(report *v1alpha1.LowLatencyNode) int32 {
	if report == nil || report.Status.Inventory == nil || len(report.Status.Inventory.Cores) == 0 {
		return unknownThreads
	}
	online, err := cpus.Parse(report.Status.Inventory.OnlineCPUs)
	if err != nil {
		return unknownThreads
	}
	threads := 1
	for _, text := range report.Status.Inventory.Cores {
		if core, err := cpus.Parse(text); err == nil {
			threads = max(threads, core.Intersection(online).Len())
		}
	}
	return int32(threads)
}

// tolerations are those of a node's taints that people and operators have put on it to keep it for certain pods, ours among them.
func tolerations(taints []corev1.Taint) []corev1.Toleration {
	all := []corev1.Toleration{{Key: v1alpha1.TaintUnverified, Operator: corev1.TolerationOpExists}}
	for _, taint := range taints {
		if strings.HasPrefix(taint.Key, "node.kubernetes.io/") || taint.Key == v1alpha1.TaintUnverified {
			continue
		}
		all = append(all, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value, Effect: taint.Effect})
	}
	return all
}
