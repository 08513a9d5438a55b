// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/layout"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
)

const (
	// managerLabel is what pods of the operator have, and no others of that namespace (config/manager).
	managerLabel = "control-plane=controller-manager"
	// managerContainer is the container of the operator in them, and managerProgram what it runs.
	managerContainer, managerProgram = "manager", "/lowlatency-operator"
	// versionTimeout bounds the question to one pod.
	versionTimeout = 10 * time.Second
)

// versions are what is known about the builds that run. The fields are those of version -o json.
type versions struct {
	Client string `json:"client"`
	// Cluster is null when no cluster was asked.
	Cluster *clusterVersions `json:"cluster"`
}

type clusterVersions struct {
	Operator []podVersion `json:"operator"`
	// Agents are the pods of agents by image, the most frequent first; null when they are not known, and AgentsProblem says why.
	Agents        []imageCount `json:"agents"`
	AgentsProblem string       `json:"agentsProblem,omitempty"`
}

// podVersion is a pod of the operator.
type podVersion struct {
	Pod   string `json:"pod"`
	Image string `json:"image"`
	// Version is what the program in the pod says; "" when it could not be asked, and Problem says why.
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// imageCount is how many pods run an image.
type imageCount struct {
	Image string `json:"image"`
	Pods  int    `json:"pods"`
}

// versionsOfCluster asks the operator in a cluster which builds of it run.
func versionsOfCluster(ctx context.Context, options *versionOptions) (*clusterVersions, error) {
	config, err := options.access.config()
	if err != nil {
		return nil, err
	}
	core, err := options.access.connectCore()
	if err != nil {
		return nil, err
	}
	managers, err := podsWith(ctx, core, options.namespace, managerLabel)
	if err != nil {
		return nil, err
	}
	if len(managers) == 0 {
		return nil, fmt.Errorf("namespace %q has no pod of the operator; say with --namespace where it runs", options.namespace)
	}
	found := &clusterVersions{}
	for i := range managers {
		found.Operator = append(found.Operator, askVersion(ctx, config, core, &managers[i]))
	}
	found.Agents, found.AgentsProblem = agentImages(ctx, core, options.agents)
	return found, nil
}

// agentImages are the images of agents, or why they are not known.
func agentImages(ctx context.Context, core *rest.RESTClient, namespace string) ([]imageCount, string) {
	pods, err := podsWith(ctx, core, namespace, agentLabel)
	if err != nil {
		return nil, err.Error()
	}
	return countImages(pods), ""
}

// podsWith are the pods of a namespace with a label, by name, without those that are going.
func podsWith(ctx context.Context, core *rest.RESTClient, namespace, label string) ([]corev1.Pod, error) {
	var all []corev1.Pod
	for next := ""; ; {
		var list corev1.PodList
		options := metav1.ListOptions{LabelSelector: label, Limit: pageSize, Continue: next}
		err := core.Get().Namespace(namespace).Resource("pods").VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(&list)
		if err != nil {
			return nil, fmt.Errorf("listing the pods of namespace %q: %w", namespace, err)
		}
		all = append(all, list.Items...)
		if next = list.Continue; next == "" {
			break
		}
	}
	all = slices.DeleteFunc(all, func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	slices.SortFunc(all, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// askVersion runs the operator's program in one of its pods for its version: the name of an image promises one.
func askVersion(ctx context.Context, config *rest.Config, core *rest.RESTClient, pod *corev1.Pod) podVersion {
	found := podVersion{Pod: pod.Name, Image: imageOf(pod)}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	ended, err := containerOf(config, core, pod.Namespace, pod.Name, managerContainer)(ctx, []string{managerProgram, "--version"})
	switch said, _, _ := strings.Cut(strings.TrimSpace(ended.Output), "\n"); {
	case err != nil:
		found.Problem = err.Error()
	case ended.ExitCode != 0:
		found.Problem = fmt.Sprintf("%s --version ended with exit code %d: %s", managerProgram, ended.ExitCode, strings.TrimSpace(ended.Complaint))
	case said == "":
		found.Problem = managerProgram + " --version printed nothing"
	default:
		found.Version = said
	}
	return found
}

// imageOf is the image that a pod runs: by the digest that its node pulled, or as its specification names it while no container runs.
func imageOf(pod *corev1.Pod) string {
	for i := range pod.Status.ContainerStatuses {
		if id := pod.Status.ContainerStatuses[i].ImageID; id != "" {
			return id
		}
	}
	if len(pod.Spec.Containers) == 0 {
		return ""
	}
	return pod.Spec.Containers[0].Image
}

// countImages counts pods by their images, the most frequent first.
func countImages(pods []corev1.Pod) []imageCount {
	counts := map[string]int{}
	for i := range pods {
		counts[imageOf(&pods[i])]++
	}
	images := make([]imageCount, 0, len(counts))
	for image, pods := range counts {
		images = append(images, imageCount{image, pods})
	}
	slices.SortFunc(images, func(a, b imageCount) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), strings.Compare(a.Image, b.Image))
	})
	return images
}

// text is a line for each build, with where it runs.
func (v *versions) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kubectl-lowlatency %s\n", v.Client)
	if v.Cluster == nil {
		return b.String()
	}
	for _, pod := range v.Cluster.Operator {
		said := pod.Version
		if said == "" {
			said = "the version of the operator is not known: " + pod.Problem
		}
		fmt.Fprintf(&b, "%s\n  pod %s, image %s\n", said, pod.Pod, pod.Image)
	}
	switch {
	case v.Cluster.AgentsProblem != "":
		fmt.Fprintf(&b, "which agents run is not known: %s\n", v.Cluster.AgentsProblem)
	case len(v.Cluster.Agents) == 0:
		b.WriteString("no agent runs: no profile matches a node\n")
	}
	for _, agents := range v.Cluster.Agents {
		fmt.Fprintf(&b, "agents in %s\n  image %s\n", layout.Plural(agents.Pods, "pod"), agents.Image)
	}
	return text.Harmless(b.String())
}
