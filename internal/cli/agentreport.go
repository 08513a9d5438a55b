// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apifields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/heartbeat"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/nodereport"
)

const (
	// askAgent is the value of --report by which agents are asked.
	askAgent = "auto"
	// agentLabel is what pods of agents have, and no others of that namespace (config/agent).
	agentLabel = v1alpha1.LabelComponent + "=" + v1alpha1.ComponentAgent
	// reportTimeout bounds all that is done to get a report: what it adds to the drawing is not worth a longer wait.
	reportTimeout = 10 * time.Second
	// maximumHead bounds the head of the agent's answer, in bytes.
	maximumHead = 64 << 10
	// maximumRefusal bounds what is told of an answer that is no report, in bytes.
	maximumRefusal = 512
)

// connector opens a connection to the port of an agent.
type connector func(ctx context.Context) (io.ReadWriteCloser, error)

// reportInCluster asks the agent on a node for its full report. Without an answer, the sentence says what is not known
// and why: that somebody has no right to reach into pods is no error.
// What an agent says that does not look at its host any more is not asked for.
func reportInCluster(ctx context.Context, node string, staleness heartbeat.Staleness, options *nodeOptions) (*nodereport.Report, string) {
	const unknown = "which containers own CPUs, which hugepages are there and which checks passed is not known: "
	switch {
	case options.report.Value != askAgent:
		return nil, unknown + "the agent was not asked"
	case staleness.Exists():
		return nil, unknown + "the agent does not look at the host"
	}
	ctx, cancel := context.WithTimeout(ctx, reportTimeout)
	defer cancel()
	report, err := fetchReport(ctx, &options.access, options.agents, node)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, fmt.Sprintf("%sthe agent did not answer within %s", unknown, reportTimeout)
	case err != nil:
		return nil, unknown + err.Error()
	}
	return report, ""
}

// fetchReport finds the agent of a node, connects to it through the API server and asks it.
func fetchReport(ctx context.Context, access *clusterAccess, namespace, node string) (*nodereport.Report, error) {
	connect, pod, err := connectAgent(ctx, access, namespace, node)
	if err != nil {
		return nil, err
	}
	report, err := askReport(ctx, connect, node)
	if err != nil {
		return nil, fmt.Errorf("asking pod %q: %w", pod, err)
	}
	return report, nil
}

// connectAgent finds the pod of the agent on a node, and how it is reached through the API server.
func connectAgent(ctx context.Context, access *clusterAccess, namespace, node string) (connect connector, name string, err error) {
	core, err := access.connectCore()
	if err != nil {
		return nil, "", err
	}
	pod, err := agentPod(ctx, core, namespace, node)
	if err != nil {
		return nil, "", err
	}
	port, err := reportPort(pod)
	if err != nil {
		return nil, "", err
	}
	config, err := access.config()
	if err != nil {
		return nil, "", err
	}
	target := core.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("portforward").URL()
	return forwardTo(config, target, port), pod.Name, nil
}

// agentPod finds the pod of the agent on a node.
func agentPod(ctx context.Context, core *rest.RESTClient, namespace, node string) (*corev1.Pod, error) {
	options := metav1.ListOptions{LabelSelector: agentLabel, FieldSelector: apifields.OneTermEqualSelector("spec.nodeName", node).String()}
	var list corev1.PodList
	err := core.Get().Namespace(namespace).Resource("pods").VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(&list)
	if err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %q: %w", namespace, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("namespace %q has no agent on node %q; say with --agent-namespace where the agents run", namespace, node)
	}
	if at := slices.IndexFunc(list.Items, isReady); at >= 0 {
		return &list.Items[at], nil
	}
	return nil, fmt.Errorf("pod %q of the agent is not ready", list.Items[0].Name)
}

// isReady reports whether a pod can be asked.
func isReady(pod corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// reportPort is the port of the loopback interface of its pod at which an agent serves, as its flag --listen says.
func reportPort(pod *corev1.Pod) (uint16, error) {
	for i := range pod.Spec.Containers {
		for _, argument := range slices.Concat(pod.Spec.Containers[i].Command, pod.Spec.Containers[i].Args) {
			listen, given := strings.CutPrefix(argument, "--listen=")
			if !given {
				continue
			}
			address, err := netip.ParseAddrPort(listen)
			if err != nil {
				return 0, fmt.Errorf("pod %q of the agent serves its report at %q, which has no port", pod.Name, listen)
			}
			return address.Port(), nil
		}
	}
	return 0, fmt.Errorf("pod %q of the agent serves no report: it has no argument --listen=127.0.0.1:9470", pod.Name)
}

// askReport asks for the report about a node, until the context ends.
func askReport(ctx context.Context, connect connector, node string) (report *nodereport.Report, err error) {
	err = askAgentFor(ctx, connect, nodereport.Path, nodereport.MaximumBytes, func(response *http.Response) error {
		if response.StatusCode != http.StatusOK {
			return refusal(response)
		}
		report, err = nodereport.Decode(response.Body, node)
		return err
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// askAgentFor asks an agent for something of no more than some bytes, until the context ends.
func askAgentFor(ctx context.Context, connect connector, path string, most int64, read func(*http.Response) error) error {
	connection, err := connect(ctx)
	if err != nil {
		return err
	}
	// Whoever waits for an answer is woken up. That it cannot be closed twice is of no interest.
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	defer func() {
		if stop() {
			_ = connection.Close()
		}
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	request.Close = true
	if err := request.Write(connection); err != nil {
		return fmt.Errorf("asking: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(io.LimitReader(connection, most+maximumHead)), request)
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	return read(response)
}

// refusal is what an agent says that does not answer.
func refusal(response *http.Response) error {
	// What of the text cannot be read is left out.
	text, _ := io.ReadAll(io.LimitReader(response.Body, maximumRefusal))
	return fmt.Errorf("it answers %s: %s", response.Status, strings.TrimSpace(string(text)))
}
