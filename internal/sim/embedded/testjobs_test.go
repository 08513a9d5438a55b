// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// TestInventedRecordsAreTaken: the operator believes what a simulated pod leaves, and a host on which a check fails is worse in every repetition.
func TestInventedRecordsAreTaken(t *testing.T) {
	node, report := &corev1.Node{}, &v1alpha1.LowLatencyNode{}
	node.Name, node.Status.NodeInfo.BootID = "n1", "b1"
	if _, err := invent(node, report, request{}, "job"); err == nil {
		t.Error("a node without a report is measured")
	}
	report.Status.Inventory = &v1alpha1.Inventory{KernelRelease: "6.12", OnlineCPUs: "0-7"}
	wanted, err := asked([]string{"probe", "latencytest", "--kind=Jitter", "--cpus=2", "--own=4", "--duration=1m0s", "--repetitions=3"})
	if err != nil || wanted.measured != 2 || wanted.repetitions != 3 {
		t.Fatalf("%+v, %v", wanted, err)
	}
	quiet, err := invent(node, report, wanted, "job")
	if err != nil {
		t.Fatal(err)
	}
	report.Status.Findings = []v1alpha1.Finding{{Check: "irq.delivered", Outcome: v1alpha1.OutcomeFailed}}
	disturbed, err := invent(node, report, wanted, "job")
	if err != nil {
		t.Fatal(err)
	}
	expectTaken(t, quiet)
	expectTaken(t, disturbed)
	change := qualification.CompareMeasurements(
		&v1alpha1.LatencyMeasurement{RepetitionMaximumsNanoseconds: quiet.RepetitionMaximums},
		&v1alpha1.LatencyMeasurement{RepetitionMaximumsNanoseconds: disturbed.RepetitionMaximums})
	if quiet.CPUs != "6-7" || change.Trend != qualification.TrendWorse || disturbed.Causes[0] != "simulated: irq.delivered" {
		t.Errorf("%+v and %+v", quiet, disturbed)
	}
}

// TestInventedLatenciesAreTaken: the same of messages, with the fewest and with the most sizes and rates.
func TestInventedLatenciesAreTaken(t *testing.T) {
	node, report := &corev1.Node{}, &v1alpha1.LowLatencyNode{}
	node.Name, node.Status.NodeInfo.BootID = "n1", "b1"
	report.Status.Inventory = &v1alpha1.Inventory{KernelRelease: "6.12", OnlineCPUs: "0-7"}
	for _, more := range [][]string{
		{"--kind=PingPong", "--sizes=64"}, {"--kind=PingPong", "--sizes=0,1,64,128,256,1024,1472,65507", "--repetitions=10"},
		{"--kind=RateSweep", "--sizes=64", "--rates=1"}, {"--kind=RateSweep", "--sizes=65507", "--rates=1,2,3,4,5,6,7,5000000", "--repetitions=10"},
		{"--kind=ContainerVersusHost", "--sizes=64"}, {"--kind=StackComparison", "--sizes=64", "--sockets=Kernel"},
		{"--kind=LoadSearch", "--sizes=64", "--minimum=1000", "--highest=5000000", "--granularity=0.01"},
		{"--kind=LoadSearch", "--sizes=65507", "--minimum=1", "--highest=2", "--granularity=1", "--repetitions=10"},
	} {
		network, err := asked(append([]string{"probe", "latencytest", "--role=Client", "--server=" + simulatedAddress}, more...))
		if err != nil {
			t.Fatal(err)
		}
		record, err := invent(node, report, network, "job")
		if err != nil {
			t.Fatal(err)
		}
		expectTaken(t, record)
	}
}

// expectTaken is that the operator can read a record.
func expectTaken(t *testing.T, record qualification.Record) {
	t.Helper()
	text, err := qualification.Encode(record)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := qualification.Parse(string(text)); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

var _ = Describe("the Jobs of latency tests", func() {
	It("run a pod each, which leaves a record, and let go of pods that are deleted", func(ctx SpecContext) {
		jobs := &TestJobs{Client: cluster, Clock: clock.RealClock{}, Interval: time.Second}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "measured-1"}}
		Expect(cluster.Create(ctx, node)).To(Succeed())
		node.Status.NodeInfo.BootID = "b1"
		Expect(cluster.Status().Update(ctx, node)).To(Succeed())
		report := &v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: node.Name}, Spec: v1alpha1.LowLatencyNodeSpec{Profile: "trading"}}
		Expect(cluster.Create(ctx, report)).To(Succeed())
		report.Status.Inventory = &v1alpha1.Inventory{Hash: "h", Architecture: "amd64", KernelRelease: "6.12", OnlineCPUs: "0-7"}
		Expect(cluster.Status().Update(ctx, report)).To(Succeed())
		labels := map[string]string{v1alpha1.LabelLatencyTest: "quiet"}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "quiet-1", Labels: labels, Annotations: map[string]string{v1alpha1.AnnotationNode: node.Name},
		}}
		job.Spec.Template.Labels = labels
		job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
		job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "measure", Image: "i", Args: []string{"probe", "latencytest", "--cpus=2", "--repetitions=3"}}}
		Expect(cluster.Create(ctx, job)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(cluster.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
			Expect(cluster.Delete(ctx, report)).To(Succeed())
			Expect(cluster.Delete(ctx, node)).To(Succeed())
		})

		pod := &corev1.Pod{}
		Expect(jobs.Once(ctx)).To(Succeed())
		Expect(cluster.Get(ctx, client.ObjectKeyFromObject(job), pod)).To(Succeed())
		Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
		Expect(jobs.Once(ctx)).To(Succeed())
		Expect(cluster.Get(ctx, client.ObjectKeyFromObject(job), pod)).To(Succeed())
		Expect(pod.Status.ContainerStatuses).To(HaveLen(1))
		record, err := qualification.Parse(pod.Status.ContainerStatuses[0].State.Terminated.Message)
		Expect(err).NotTo(HaveOccurred())
		Expect(record.BootID).To(Equal("b1"))
		Expect(record.RepetitionMaximums).To(HaveLen(3))
		Expect(cluster.Get(ctx, client.ObjectKeyFromObject(job), job)).To(Succeed())
		Expect(job.Status.Conditions).To(ContainElement(And(HaveField("Type", batchv1.JobComplete), HaveField("Status", corev1.ConditionTrue))))
		Expect(jobs.Once(ctx)).To(Succeed())

		Expect(client.IgnoreNotFound(cluster.Delete(ctx, pod))).To(Succeed())
		Expect(jobs.Once(ctx)).To(Succeed())
		Expect(apierrors.IsNotFound(cluster.Get(ctx, client.ObjectKeyFromObject(job), pod))).To(BeTrue())
	})
})
