// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gotest.tools/v3/golden"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab/policies"
)

// read reads the policies of files.
func read(t *testing.T, pattern string) []networkingv1.NetworkPolicy {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all []networkingv1.NetworkPolicy
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var policy networkingv1.NetworkPolicy
		if strings.HasSuffix(path, "kustomization.yaml") {
			continue
		}
		if err := yaml.UnmarshalStrict(content, &policy); err != nil {
			t.Fatal(err)
		}
		all = append(all, policy)
	}
	return all
}

func pod(namespace, name, address string, labels map[string]string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{Name: "feed", ContainerPort: 9000, Protocol: corev1.ProtocolUDP}},
		}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address},
	}
}

func namespace(name string, labels map[string]string) corev1.Namespace {
	return corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

// TestRules compares the rules of the shipped policies, and of one that uses what they do not, with files.
func TestRules(t *testing.T) {
	const system, agents = "lowlatency-operator-system", "lowlatency-operator-agents"
	component := func(name string) map[string]string { return map[string]string{"app.kubernetes.io/component": name} }
	ended := pod(agents, "quiet-0", "10.244.1.9", component("latency-test"))
	ended.Status.Phase = corev1.PodSucceeded
	shared := pod("monitoring", "node-exporter", "10.0.2.15", nil)
	shared.Spec.HostNetwork = true
	cluster := policies.Cluster{
		Namespaces: []corev1.Namespace{namespace(system, nil), namespace(agents, nil), namespace("monitoring", map[string]string{"metrics": "enabled"}), namespace("trading", nil)},
		Pods: []corev1.Pod{
			pod(system, "manager", "10.244.1.2", map[string]string{"control-plane": "controller-manager"}),
			pod(agents, "agent", "10.244.1.3", component("agent")),
			pod(agents, "plugin", "10.244.1.4", component("device-plugin")),
			pod(agents, "way", "10.244.1.5", component("latency-test")), pod(agents, "way-server", "10.244.1.6", component("latency-test")), ended,
			pod("monitoring", "prometheus", "10.244.1.7", nil), shared,
			pod("trading", "feed", "10.244.1.8", map[string]string{"app": "feed"}),
		},
	}
	for name, pattern := range map[string]string{"shipped": "../../../config/network-policy/*.yaml", "other": "testdata/*.yaml"} {
		t.Run(name, func(t *testing.T) {
			cluster.Policies = read(t, pattern)
			rules, err := policies.Rules(cluster)
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, rules, name+".golden")
		})
	}
}

// TestWhatIsNotSpelled looks at what has to be refused, because rules that are too wide would show nothing.
func TestWhatIsNotSpelled(t *testing.T) {
	isolated := networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}}}
	for name, address := range map[string]string{"IPv6": "fd00::1", "nonsense": "10.244.1"} {
		t.Run(name, func(t *testing.T) {
			rules, err := policies.Rules(policies.Cluster{Policies: []networkingv1.NetworkPolicy{isolated}, Pods: []corev1.Pod{pod("", "a", address, nil)}})
			if err == nil {
				t.Errorf("no error, but rules:\n%s", rules)
			}
		})
	}
}
