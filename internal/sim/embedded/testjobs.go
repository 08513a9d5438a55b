// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package embedded

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// The simulated jitter of a quiet host and of one on which a check fails, in nanoseconds.
const (
	quietNanoseconds, quietSpread         = 2_000, 3_000
	disturbedNanoseconds, disturbedSpread = 40_000, 50_000
)

// TestJobs simulates, for the Jobs of LatencyTests, the Job controller, the scheduler and the kubelet. No container is made and nothing
// is measured: a pod leaves invented figures, long interruptions where the agent of its node has found a failed check and short ones
// elsewhere, and names itself as their cause. The pod of a server is ready at an invented address until its Job is deleted, and its client
// leaves invented latencies, which its words about the path say.
type TestJobs struct {
	Client client.Client
	Clock  clock.WithTicker
	// Interval between two looks at the cluster; a pod runs for one.
	Interval time.Duration
}

// Run works until the context ends.
func (j *TestJobs) Run(ctx context.Context) error {
	return repeat(ctx, j.Clock, j.Interval, j.Once)
}

// Once starts the pods of new Jobs, and ends those that run.
func (j *TestJobs) Once(ctx context.Context) error {
	var jobs batchv1.JobList
	if err := j.Client.List(ctx, &jobs, client.HasLabels{v1alpha1.LabelLatencyTest}); err != nil {
		return fmt.Errorf("listing Jobs: %w", err)
	}
	failures := make([]error, 0, len(jobs.Items)+1)
	failures = append(failures, j.remove(ctx))
	for i := range jobs.Items {
		if job := &jobs.Items[i]; job.DeletionTimestamp.IsZero() && job.Status.CompletionTime == nil {
			failures = append(failures, j.advance(ctx, job))
		}
	}
	return errors.Join(failures...)
}

// remove lets go of pods that are being deleted, as their kubelets would.
func (j *TestJobs) remove(ctx context.Context) error {
	var pods corev1.PodList
	if err := j.Client.List(ctx, &pods, client.HasLabels{v1alpha1.LabelLatencyTest}); err != nil {
		return fmt.Errorf("listing Pods: %w", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; !pod.DeletionTimestamp.IsZero() {
			if err := client.IgnoreNotFound(j.Client.Delete(ctx, pod, client.GracePeriodSeconds(0))); err != nil {
				return fmt.Errorf("removing Pod %s: %w", pod.Name, err)
			}
		}
	}
	return nil
}

// advance brings a Job one step further: its pod starts, or ends with the Job.
func (j *TestJobs) advance(ctx context.Context, job *batchv1.Job) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: job.Namespace, Name: job.Name, Labels: job.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
	}}
	err := j.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Pod %s: %w", pod.Name, err)
	case err != nil:
		return j.start(ctx, job, pod)
	case pod.Status.Phase == corev1.PodRunning && !slices.Contains(job.Spec.Template.Spec.Containers[0].Args, "--role=Server"):
		return j.end(ctx, job, pod)
	default:
		return nil
	}
}

func (j *TestJobs) start(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) error {
	pod.Spec = *job.Spec.Template.Spec.DeepCopy()
	pod.Spec.NodeName = job.Annotations[v1alpha1.AnnotationNode]
	if err := j.Client.Create(ctx, pod); err != nil {
		return fmt.Errorf("creating Pod %s: %w", pod.Name, err)
	}
	pod.Status.Phase, pod.Status.PodIP = corev1.PodRunning, simulatedAddress
	pod.Status.PodIPs = []corev1.PodIP{{IP: simulatedAddress}}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(j.Clock.Now())}}
	pod.Annotations = job.Spec.Template.Annotations
	if err := j.Client.Status().Update(ctx, pod); err != nil {
		return fmt.Errorf("starting Pod %s: %w", pod.Name, err)
	}
	return nil
}

func (j *TestJobs) end(ctx context.Context, job *batchv1.Job, pod *corev1.Pod) error {
	message, err := j.message(ctx, pod)
	if err != nil {
		return err
	}
	now := metav1.NewTime(j.Clock.Now())
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: now, Message: message}},
	}}
	if err := j.Client.Status().Update(ctx, pod); err != nil {
		return fmt.Errorf("ending Pod %s: %w", pod.Name, err)
	}
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	if err := j.Client.Status().Update(ctx, job); err != nil {
		return fmt.Errorf("ending Job %s: %w", job.Name, err)
	}
	return nil
}

// message is what a pod leaves behind.
func (j *TestJobs) message(ctx context.Context, pod *corev1.Pod) (string, error) {
	node, report := &corev1.Node{}, &v1alpha1.LowLatencyNode{}
	key := client.ObjectKey{Name: pod.Spec.NodeName}
	if err := j.Client.Get(ctx, key, node); err != nil {
		return "", fmt.Errorf("reading Node %s: %w", key.Name, err)
	}
	if err := j.Client.Get(ctx, key, report); err != nil {
		return "", fmt.Errorf("reading LowLatencyNode %s: %w", key.Name, err)
	}
	wanted, err := asked(pod.Spec.Containers[0].Args)
	if err != nil {
		return "", err
	}
	record, err := invent(node, report, wanted, pod.Name)
	if err != nil {
		return "", err
	}
	text, err := qualification.Encode(record)
	return string(text), err
}

// simulatedAddress is that of all pods: nobody sends anything there (RFC 5737).
const simulatedAddress = "192.0.2.1"

// request is what the arguments of a test's program ask for.
type request struct {
	kind                  string
	measured, repetitions int
	sizes, rates          []int32
	// minimum, highest and granularity are those of a search.
	minimum, highest int32
	granularity      float64
}

func asked(arguments []string) (request, error) {
	var r request
	flags := pflag.NewFlagSet("latencytest", pflag.ContinueOnError)
	flags.ParseErrorsAllowlist.UnknownFlags = true
	flags.StringVar(&r.kind, "kind", string(v1alpha1.LatencyTestJitter), "")
	flags.IntVar(&r.measured, "cpus", 1, "")
	flags.IntVar(&r.repetitions, "repetitions", 1, "")
	flags.Int32SliceVar(&r.sizes, "sizes", nil, "")
	flags.Int32SliceVar(&r.rates, "rates", nil, "")
	flags.Int32Var(&r.minimum, "minimum", 1, "")
	flags.Int32Var(&r.highest, "highest", v1alpha1.MaxMessagesPerSecond, "")
	flags.Float64Var(&r.granularity, "granularity", 1, "")
	if err := flags.Parse(arguments); err != nil {
		return r, fmt.Errorf("reading the arguments of a test: %w", err)
	}
	return r, nil
}

// invent makes up what was measured on a node. The same run of the same node gives the same.
func invent(node *corev1.Node, report *v1alpha1.LowLatencyNode, wanted request, seed string) (qualification.Record, error) {
	jitter, err := inventJitter(node, report, wanted.measured, wanted.repetitions, seed)
	if err != nil || wanted.kind == string(v1alpha1.LatencyTestJitter) {
		return jitter, err
	}
	return inventTraffic(&jitter, wanted), nil
}

// Shares of the longest latency that the shortest, the mean and the percentiles of invented latencies are, in hundredths.
const shortestShare, medianShare, meanShare, tailShare, samplesInvented = 40, 50, 55, 80, 100_000

// perMessage is by how much an invented latency grows with the rate: a nanosecond for so many messages a second.
const perMessage = 100

// inventTraffic makes latencies of invented interruptions: a larger message takes longer, and one at a higher rate.
func inventTraffic(jitter *qualification.Record, wanted request) qualification.Record {
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestKind(wanted.kind), Kernel: jitter.Kernel, BootID: jitter.BootID,
		CPUs: strconv.Itoa(int(*jitter.WorstCPU)), Causes: jitter.Causes, Histogram: jitter.Histogram,
		Network: &qualification.NetworkRecord{
			Path: v1alpha1.LatencyPathUnknown, PathMessage: "simulated: no message was sent", ServerKernel: jitter.Kernel,
		},
	}
	measured := &v1alpha1.NetworkMeasurement{}
	for _, bytes := range wanted.sizes {
		measured.Sizes = append(measured.Sizes, v1alpha1.SizeMeasurement{Bytes: bytes, LatencyFigures: inventFigures(jitter.MaximumNanoseconds + int64(bytes))})
		r.Network.Sizes = append(r.Network.Sizes, qualification.SizeRow(&measured.Sizes[len(measured.Sizes)-1]))
	}
	if wanted.kind == string(v1alpha1.LatencyTestLoadSearch) {
		r.Network.Load = inventLoad(jitter, &wanted)
		measured.Load = &v1alpha1.LoadMeasurement{}
	}
	for i, rate := range wanted.rates {
		figures := inventFigures(jitter.MaximumNanoseconds + int64(rate/perMessage))
		measured.Rates = append(measured.Rates, v1alpha1.RateMeasurement{
			MessagesPerSecond: rate, AchievedPerSecond: int64(rate), Bytes: wanted.sizes[0], Sent: int64(rate), FromIntended: figures, FromSent: figures,
		})
		if l := r.Network.Load; l != nil {
			measured.Rates[i].Trial = l.Trials[i]
		}
		r.Network.Rates = append(r.Network.Rates, qualification.RateRow(&measured.Rates[i]))
	}
	judged := qualification.Judged(measured)
	r.MaximumNanoseconds, r.Percentiles = qualification.Worst(judged)
	for _, longest := range jitter.RepetitionMaximums {
		r.RepetitionMaximums = append(r.RepetitionMaximums, longest+r.MaximumNanoseconds-jitter.MaximumNanoseconds)
		r.Network.Medians = append(r.Network.Medians, (longest+judged[0].MaximumNanoseconds-jitter.MaximumNanoseconds)*medianShare/100)
	}
	return r
}

// inventLoad makes up a search for what a server carries that takes as long for each message as the longest interruption, and asks for its rates.
func inventLoad(jitter *qualification.Record, wanted *request) *qualification.LoadRecord {
	carries := func(longest int64) int32 {
		return int32(min(max(int64(time.Second)/max(1, longest), int64(wanted.minimum)), int64(wanted.highest)))
	}
	l := &qualification.LoadRecord{State: v1alpha1.LoadConfirmed, Trials: []v1alpha1.LoadTrial{v1alpha1.LoadTrialLow, v1alpha1.LoadTrialBestPass}}
	for _, longest := range jitter.RepetitionMaximums {
		l.BestPasses = append(l.BestPasses, carries(longest))
	}
	best := slices.Min(l.BestPasses)
	wanted.rates, l.BestPass = []int32{wanted.minimum, best}, int64(best)
	if fail := best + max(1, int32(float64(best)*wanted.granularity)); fail <= wanted.highest {
		wanted.rates, l.LowestFail = append(wanted.rates, fail), int64(fail)
		l.Trials = append(l.Trials, v1alpha1.LoadTrialLowestFail)
		l.Reason, l.Message = string(latency.ReasonLoss), "simulated: no message was sent"
	}
	l.Made = int64(len(l.Trials))
	return l
}

// inventFigures are those of latencies of which the longest is given.
func inventFigures(longest int64) v1alpha1.LatencyFigures {
	return v1alpha1.LatencyFigures{
		Samples: samplesInvented, MinimumNanoseconds: longest * shortestShare / 100, MeanNanoseconds: longest * meanShare / 100, MaximumNanoseconds: longest,
		Percentiles: []v1alpha1.LatencyPercentile{
			{Percentile: v1alpha1.P50, Nanoseconds: longest * medianShare / 100}, {Percentile: v1alpha1.P90, Nanoseconds: longest * meanShare / 100},
			{Percentile: v1alpha1.P99, Nanoseconds: longest * tailShare / 100},
		},
	}
}

// inventJitter makes up what was measured on the last CPUs of a node.
func inventJitter(node *corev1.Node, report *v1alpha1.LowLatencyNode, measured, repetitions int, seed string) (qualification.Record, error) {
	if report.Status.Inventory == nil {
		return qualification.Record{}, fmt.Errorf("the agent of node %s has reported nothing yet", node.Name)
	}
	online, err := cpus.Parse(report.Status.Inventory.OnlineCPUs)
	if err != nil {
		return qualification.Record{}, fmt.Errorf("reading the CPUs of node %s: %w", node.Name, err)
	}
	ids := online.IDs()
	ids = ids[max(len(ids)-measured, 0):]
	least, spread, cause := quietNanoseconds, quietSpread, "simulated: a quiet host"
	failed := slices.IndexFunc(report.Status.Findings, func(f v1alpha1.Finding) bool { return f.Outcome == v1alpha1.OutcomeFailed })
	if failed >= 0 {
		least, spread, cause = disturbedNanoseconds, disturbedSpread, "simulated: "+string(report.Status.Findings[failed].Check)
	}
	r := qualification.Record{
		Version: qualification.Version, Kind: v1alpha1.LatencyTestJitter, Kernel: report.Status.Inventory.KernelRelease,
		BootID: node.Status.NodeInfo.BootID, CPUs: cpus.Of(ids...).String(), Causes: []string{cause}, StolenPartsPerMillion: int32(least / 1000),
	}
	for repetition := range repetitions {
		hash := fnv.New32a()
		_, _ = fmt.Fprintf(hash, "%s/%s/%d", seed, node.Name, repetition)
		r.RepetitionMaximums = append(r.RepetitionMaximums, int64(least)+int64(hash.Sum32())%int64(spread))
	}
	r.MaximumNanoseconds, r.Interruptions = slices.Max(r.RepetitionMaximums), int64(len(r.RepetitionMaximums))
	worst := int32(ids[len(ids)-1])
	r.WorstCPU = &worst
	for _, name := range qualification.Percentiles() {
		r.Percentiles = append(r.Percentiles, v1alpha1.LatencyPercentile{Percentile: name})
	}
	r.Percentiles[len(r.Percentiles)-1].Nanoseconds = r.MaximumNanoseconds
	r.Histogram, err = latency.EncodeHDR(slices.Values(r.RepetitionMaximums))
	return r, err
}
