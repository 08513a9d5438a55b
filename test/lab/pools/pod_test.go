// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func objectName(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}
}

// podSpec is a Guaranteed pod that holds units of a resource, whole CPUs and hugepages of 2 MiB.
func podSpec(name, units string, count, processors, hugepages int64) *corev1.Pod {
	amounts := corev1.ResourceList{
		corev1.ResourceCPU:         *resource.NewQuantity(processors, resource.DecimalSI),
		corev1.ResourceMemory:      resource.MustParse("64Mi"),
		"hugepages-2Mi":            *resource.NewQuantity(hugepages<<21, resource.BinarySI),
		corev1.ResourceName(units): *resource.NewQuantity(count, resource.DecimalSI),
	}
	return &corev1.Pod{
		ObjectMeta: objectName(name),
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			AutomountServiceAccountToken:  new(false),
			TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{
				Name: "main", Image: workloadImage,
				Args:      []string{fmt.Sprintf("-hugepages=%d", hugepages), "-devices=/dev/vfio/*"},
				Resources: corev1.ResourceRequirements{Requests: amounts, Limits: amounts},
			}},
		},
	}
}

func (s *scene) createPod(t *testing.T, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	s.create(t, pod)
	return pod
}

// words is what the program workload prints.
type words struct {
	CPUs          string            `json:"cpus"`
	MemoryNodes   string            `json:"memoryNodes"`
	HugepageNodes []string          `json:"hugepageNodes"`
	Environment   []string          `json:"environment"`
	Devices       map[string]string `json:"devices"`
	Files         map[string]string `json:"files"`
}

// variable is the value of an environment variable.
func (w words) variable(name string) string {
	for _, line := range w.Environment {
		if value, found := strings.CutPrefix(line, name+"="); found {
			return value
		}
	}
	return ""
}

// said waits until a pod runs and returns what its program said. The log is read on the node.
func (s *scene) said(t *testing.T, pod *corev1.Pod) words {
	t.Helper()
	s.wait(t, "pod "+pod.Name+" to run", func(ctx context.Context) (bool, string) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		if pod.Status.Phase == corev1.PodFailed {
			t.Fatalf("pod %s failed: %s %s %s", pod.Name, pod.Status.Reason, pod.Status.Message, waiting(pod))
		}
		return isReady(pod), fmt.Sprint(pod.Status.Phase, pod.Status.Conditions, waiting(pod), err)
	})
	var said words
	s.wait(t, "pod "+pod.Name+" to say what it has", func(context.Context) (bool, string) {
		log := s.run(t, fmt.Sprintf("cat /var/log/pods/%s_%s_%s/main/*.log", pod.Namespace, pod.Name, pod.UID))
		// The format of the CRI: a time, the stream and a tag come before the line.
		_, line, _ := strings.Cut(log, " stdout F ")
		return json.Unmarshal([]byte(line), &said) == nil, log
	})
	return said
}

// expand lists the CPUs of the kernel's list format.
func expand(t *testing.T, list string) []int {
	t.Helper()
	set, err := cpus.Parse(list)
	must(t, err)
	return set.IDs()
}
