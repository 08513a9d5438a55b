// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package latencytest

import (
	"fmt"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// InUse is what tests use now, each with the test that uses it, as NAMESPACE/NAME.
type InUse struct {
	// Nodes by their names.
	Nodes map[string]string
	// Groups of multicast by their addresses.
	Groups map[string]string
	// Addresses of IPv4 that tests give to their ends.
	Addresses map[string]string
	// Leaving are the nodes on which pods of Jobs still end that were deleted, by the names of the nodes.
	Leaving map[string]string
}

// obstacle says why a test has to wait for another because of what goes over the network; "" where it has not.
func (u *InUse) obstacle(p *qualification.Parameters) string {
	if group := p.Group(); u.Groups[group] != "" {
		return fmt.Sprintf("waits until LatencyTest %s leaves multicast group %s: members of a group receive what all others send to it", u.Groups[group], group)
	}
	for _, address := range p.Addresses() {
		if other := u.Addresses[address]; other != "" {
			return fmt.Sprintf("waits until LatencyTest %s leaves address %s: of two ends with one address, either may get the messages", other, address)
		}
	}
	return ""
}

// RunningElsewhere are the nodes that other tests measure, or on which their servers run, the groups of multicast on which their messages go, and the addresses
// of their ends, with these tests as their statuses say it. Jobs do not tell: whoever may make one could keep a node from being measured. The status of a test that
// is being deleted is written no more, however long a finalizer keeps it: its nodes are those that its pods leave.
func RunningElsewhere(tests []v1alpha1.LatencyTest, except *v1alpha1.LatencyTest) InUse {
	running := InUse{Nodes: map[string]string{}, Groups: map[string]string{}, Addresses: map[string]string{}}
	for i := range tests {
		if test := &tests[i]; test.UID != except.UID && test.DeletionTimestamp.IsZero() {
			running.add(test)
		}
	}
	return running
}

// add takes what a test uses.
func (u *InUse) add(test *v1alpha1.LatencyTest) {
	name, parameters := test.Namespace+"/"+test.Name, qualification.ParametersOf(&test.Spec)
	for i := range test.Status.Results {
		result := &test.Status.Results[i]
		if result.Activity != v1alpha1.LatencyRunning {
			continue
		}
		u.Nodes[result.Node] = name
		if result.Server != nil {
			u.Nodes[result.Server.Node] = name
		}
		if group := parameters.Group(); group != "" {
			u.Groups[group] = name
		}
		for _, address := range parameters.Addresses() {
			u.Addresses[address] = name
		}
	}
}

// Leave adds the nodes on which a pod has not ended whose Job, or the test of that, was deleted: the garbage collector deletes it, which takes a moment, and until
// then it has CPUs and may send. Jobs are those of tests, and those of UnknownJobs that are there. So a pod that somebody else makes like one is not believed
// for long: either its Job is there and belongs to no test that was deleted, or the collector deletes it, too, and it has a second to end.
func (u *InUse) Leave(tests []v1alpha1.LatencyTest, jobs []batchv1.Job, pods []corev1.Pod) {
	u.Leaving = map[string]string{}
	living := map[types.UID]bool{}
	for i := range tests {
		living[tests[i].UID] = tests[i].DeletionTimestamp.IsZero()
	}
	owned := map[types.UID]bool{}
	for i := range jobs {
		of := metav1.GetControllerOf(&jobs[i])
		owned[jobs[i].UID] = of == nil || of.Kind != "LatencyTest" || living[of.UID] && jobs[i].DeletionTimestamp.IsZero()
	}
	for i := range pods {
		if of := jobOfRunning(&pods[i]); of != nil && !owned[of.UID] {
			u.Leaving[pods[i].Spec.NodeName] = pods[i].Namespace + "/" + pods[i].Name
		}
	}
}

// UnknownJobs are those that control pods which have not ended, and are not among these.
func UnknownJobs(jobs []batchv1.Job, pods []corev1.Pod) []types.NamespacedName {
	var unknown []types.NamespacedName
	for i := range pods {
		of := jobOfRunning(&pods[i])
		if of != nil && !slices.ContainsFunc(jobs, func(job batchv1.Job) bool { return job.UID == of.UID }) {
			unknown = append(unknown, types.NamespacedName{Namespace: pods[i].Namespace, Name: of.Name})
		}
	}
	return unknown
}

// jobOfRunning is the Job that controls a pod; nil where none does, the pod is on no node, or has ended, or is none as tests have them. The API server takes any
// owner that somebody writes down, also one whose kind there is not: such a pod the garbage collector never deletes. And one with much time to end would
// be there for that time.
func jobOfRunning(pod *corev1.Pod) *metav1.OwnerReference {
	of := metav1.GetControllerOfNoCopy(pod)
	grace := pod.Spec.TerminationGracePeriodSeconds
	switch {
	case of == nil || of.Kind != "Job" || of.APIVersion != batchv1.SchemeGroupVersion.String() || len(validation.IsDNS1123Subdomain(of.Name)) > 0:
		return nil
	case pod.Spec.NodeName == "" || grace == nil || *grace > graceSeconds:
		return nil
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return nil
	}
	return of
}

// Freed reports whether a test uses a node, a group or an address no more that it used: others may wait for it.
func Freed(before, after *v1alpha1.LatencyTest) bool {
	was, is := RunningElsewhere([]v1alpha1.LatencyTest{*before}, &v1alpha1.LatencyTest{}), RunningElsewhere([]v1alpha1.LatencyTest{*after}, &v1alpha1.LatencyTest{})
	return len(missing(was.Nodes, is.Nodes)) > 0 || len(missing(was.Groups, is.Groups)) > 0 || len(missing(was.Addresses, is.Addresses)) > 0
}

// missing are the keys that only the first has.
func missing(first, second map[string]string) []string {
	return slices.DeleteFunc(slices.Collect(maps.Keys(first)), func(key string) bool { return second[key] != "" })
}
