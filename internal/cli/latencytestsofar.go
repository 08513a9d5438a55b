// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	liveprogress "github.com/lowlatency-dev/lowlatency-operator/internal/cli/progress"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

const (
	// mostFollowed is of how many nodes the logs are read at a time, and logLines and logBytes how much of each.
	mostFollowed       = 8
	logLines, logBytes = 20, 16 << 10
)

// follower shows what becomes of the nodes of a test, and how far those are that are measured now.
type follower struct {
	*app

	core  *rest.RESTClient
	shown *liveprogress.Writer
	// said is the last line about each node, pods the pod of each Job, and isShut that logs may not be read, which is said once.
	said, pods map[string]string
	isShut     bool
	// lost is why the test could not be read last; nil when it could.
	lost error
}

func (a *app) newFollower(access *clusterAccess) (*follower, error) {
	core, err := access.connectCore()
	if err != nil {
		return nil, err
	}
	return &follower{app: a, core: core, shown: liveprogress.New(a.Err), said: map[string]string{}, pods: map[string]string{}}, nil
}

// show writes a line for each node of which something else is to be said, and shows how far the measurements are that run.
func (f *follower) show(ctx context.Context, v *view.LatencyTest) {
	for i := range v.Nodes {
		if node := &v.Nodes[i]; f.said[node.Node] != text.LatencyProgress(node) {
			f.said[node.Node] = text.LatencyProgress(node)
			f.say("%s", f.said[node.Node])
		}
	}
	var lines []string
	running := 0
	for i := range v.Nodes {
		result := &v.Nodes[i].LatencyTestResult
		if result.Activity != v1alpha1.LatencyRunning || result.Job == "" {
			continue
		}
		if running++; running > mostFollowed || f.isShut {
			continue
		}
		if soFar := f.soFar(ctx, v.Namespace, result.Job); soFar != "" {
			lines = append(lines, text.Harmless(result.Node)+"  "+text.SoFar+soFar)
		}
	}
	if running > mostFollowed && len(lines) > 0 {
		lines = append(lines, fmt.Sprintf("and %d more nodes are measured", running-mostFollowed))
	}
	f.shown.Show(lines...)
}

// say writes a line that stays.
func (f *follower) say(format string, values ...any) {
	f.shown.Say("%s  %s", clock(), text.Harmless(fmt.Sprintf(format, values...)))
}

// soFar is what the pod of a Job says of how far it is; "" when it says nothing yet.
func (f *follower) soFar(ctx context.Context, namespace, job string) string {
	pod, err := f.podOf(ctx, namespace, job)
	if err == nil && pod != "" {
		var log []byte
		log, err = f.core.Get().Namespace(namespace).Resource("pods").Name(pod).SubResource("log").
			Param("tailLines", strconv.Itoa(logLines)).Param("limitBytes", strconv.Itoa(logBytes)).DoRaw(ctx)
		if err == nil {
			return text.LastSoFar(string(log))
		}
	}
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		f.isShut = true
		f.say("how far the measurements are stands in the logs of their pods, which you may not read: %v", err)
	}
	// A container that has not started has no log, and a pod that is gone none any more.
	return ""
}

// podOf is the pod of a Job; "" while there is none.
func (f *follower) podOf(ctx context.Context, namespace, job string) (string, error) {
	if pod := f.pods[job]; pod != "" {
		return pod, nil
	}
	var list corev1.PodList
	options := metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job, Limit: 1}
	err := f.core.Get().Namespace(namespace).Resource("pods").VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(&list)
	if err != nil || len(list.Items) == 0 {
		return "", err
	}
	f.pods[job] = list.Items[0].Name
	return f.pods[job], nil
}
