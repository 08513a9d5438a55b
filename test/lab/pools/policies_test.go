// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package pools_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/test/lab"
)

const (
	// foreignEnforcer names a program of somebody else that enforces policies in place of the lab's: kube-network-policies of Kubernetes'
	// network group, linked statically.
	foreignEnforcer = "LAB_POLICY_ENFORCER"
	// enforcerUnit starts what enforces policies. Packets between pods, which are behind one bridge, pass the rules with br_netfilter only.
	enforcerUnit = `[Unit]
Description=Enforces network policies
After=lab-network.service
[Service]
ExecStartPre=/usr/sbin/modprobe br_netfilter
ExecStartPre=/usr/sbin/sysctl -w net.bridge.bridge-nf-call-iptables=1
ExecStart=%s/bin/enforcer --kubeconfig=/etc/kubernetes/enforcer.kubeconfig %s
Restart=always
RestartSec=2
[Install]
WantedBy=multi-user.target
`
	// listened is a port at which a program of the lab listens in pods that listen at none.
	listened = 7777
)

// enforce starts what enforces network policies on the node, until the end of the test and over reboots.
func (s *scene) enforce(t *testing.T) string {
	kubeconfig, err := s.cluster.KubeconfigInside("enforcer", "system:masters")
	must(t, err)
	flags, seen := "", "the lab's own, by nftables"
	if path := os.Getenv(foreignEnforcer); path != "" {
		flags, seen = "--hostname-override="+nodeName+" --disable-nri --metrics-bind-address=127.0.0.1:9080", path
	}
	must(t, s.machine.WriteFile(t.Context(), "/etc/kubernetes/enforcer.kubeconfig", kubeconfig, 0o600))
	must(t, s.machine.WriteFile(t.Context(), "/etc/systemd/system/enforcer.service", fmt.Sprintf(enforcerUnit, lab.FilesPath, flags), 0o644))
	s.run(t, "systemctl daemon-reload && systemctl enable --now enforcer.service")
	return seen
}

// end is one of a connection: a pod, or the node itself.
type end struct {
	name string
	pod  *corev1.Pod
	// process is in the pod's network namespace.
	process string
}

// way is a connection from one end to another, which the policies allow or not.
type way struct {
	from, to end
	port     int
	allowed  bool
}

func (w way) String() string { return fmt.Sprintf("%s to %s:%d", w.from.name, w.to.name, w.port) }

// policies tries connections with the policies that are shipped, without them, and with them again. The manager and the agent go on talking to the
// API server meanwhile.
func (s *scene) policies(t *testing.T) string {
	start := metav1.NowMicro()
	ways := s.ways(t)
	defer s.leaveWays(t, ways)
	s.expectWays(t, ways, func(w way) bool { return w.allowed })
	s.expectScraped(t, ways)
	shipped := s.shippedPolicies()
	for _, policy := range shipped {
		must(t, s.api.Delete(t.Context(), policy.DeepCopy()))
	}
	s.expectWays(t, ways, func(way) bool { return true })
	for _, policy := range shipped {
		again := policy.DeepCopy()
		again.SetResourceVersion("")
		s.create(t, again)
	}
	s.expectWays(t, ways, func(w way) bool { return w.allowed })
	s.expectRenewed(t, start)
	denied := showWays(ways)
	return fmt.Sprintf("%d policies: %d connections made and %d dropped, all made without them, the same again with them; Leases of manager and agent are renewed",
		len(shipped), len(ways)-denied, denied)
}

// showWays prints what was seen, and returns how many connections the policies drop.
func showWays(ways []way) (denied int) {
	rows := make([][]string, 1, len(ways)+1)
	rows[0] = []string{"FROM", "TO", "WITH THE POLICIES", "WITHOUT"}
	for _, w := range ways {
		with := "connected"
		if !w.allowed {
			with = "no answer"
			denied++
		}
		rows = append(rows, []string{w.from.name, fmt.Sprintf("%s:%d", w.to.name, w.port), with, "connected"})
	}
	show(rows)
	return denied
}

// shippedPolicies are those that make deploy applies.
func (s *scene) shippedPolicies() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, object := range s.deployment {
		if object.GetKind() == "NetworkPolicy" {
			found = append(found, object)
		}
	}
	return found
}

// ways are the connections that are tried. Where a pod listens at no port, a program of the lab listens in its network namespace.
func (s *scene) ways(t *testing.T) []way {
	t.Helper()
	measuring := map[string]string{v1alpha1.LabelComponent: v1alpha1.ComponentLatencyTest}
	reader := s.waitingPod(t, "prometheus", "lab-monitoring", map[string]string{"metrics": "enabled"}, nil)
	stranger := s.waitingPod(t, "stranger", "lab-elsewhere", nil, nil)
	sender := s.waitingPod(t, "client of a LatencyTest", agentNamespace, nil, measuring)
	answerer := s.waitingPod(t, "server of a LatencyTest", agentNamespace, nil, measuring)
	node := end{name: "node"}
	manager := s.endOf(t, "manager", s.readyPod(t, operatorNamespace, client.MatchingLabels{"control-plane": "controller-manager"}))
	agent := s.endOf(t, "agent", s.readyPod(t, agentNamespace, client.MatchingLabels{v1alpha1.LabelComponent: v1alpha1.ComponentAgent}))
	plugin := s.endOf(t, "device plugin", s.plugin(t, "whole"))
	for i, e := range []end{agent, plugin, stranger, answerer} {
		s.run(t, fmt.Sprintf("systemd-run --quiet --unit=listens-%d nsenter -t %s -n %s/bin/workload -listen :%d", i, e.process, lab.FilesPath, listened))
	}
	return []way{
		{node, manager, 8081, true},
		{reader, manager, 8443, true},
		{reader, manager, 8081, false},
		{stranger, manager, 8443, false},
		{stranger, manager, 8081, false},
		{sender, manager, 8443, false},
		{reader, agent, listened, false},
		{stranger, agent, listened, false},
		{manager, agent, listened, false},
		{stranger, plugin, listened, false},
		{agent, plugin, listened, false},
		{sender, answerer, listened, true},
		{stranger, answerer, listened, false},
		{agent, answerer, listened, false},
		{sender, stranger, listened, false},
		{sender, end{name: "API server"}, 443, false},
		{agent, end{name: "API server"}, 443, true},
		{manager, end{name: "API server"}, 443, true},
	}
}

// expectScraped reads the manager's metrics from where the policies allow it.
func (s *scene) expectScraped(t *testing.T, ways []way) {
	t.Helper()
	token := s.token(t, "metrics-reader")
	for _, w := range ways {
		if w.port != 8443 || !w.allowed {
			continue
		}
		said := s.run(t, fmt.Sprintf("TOKEN=%s nsenter -t %s -n %s/bin/workload -get https://%s:%d/metrics", token, w.from.process, lab.FilesPath,
			w.to.pod.Status.PodIP, w.port))
		if !strings.HasPrefix(said, "200 ") {
			t.Errorf("%s: the metrics are answered with %s", w, said)
		}
	}
}

// leaveWays ends what was started to make connections.
func (s *scene) leaveWays(t *testing.T, ways []way) {
	t.Helper()
	s.run(t, "systemctl stop 'listens-*'")
	for _, w := range ways {
		for _, e := range []end{w.from, w.to} {
			if e.pod != nil && e.pod.Spec.Containers[0].Image == workloadImage {
				s.remove(t, e.pod)
			}
		}
	}
}

// waitingPod is a pod of a namespace, which is made where it is missing, that waits for connections to be made from it.
func (s *scene) waitingPod(t *testing.T, name, namespace string, namespaceLabels, labels map[string]string) end {
	t.Helper()
	if namespace != agentNamespace {
		s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: namespaceLabels}})
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(strings.ReplaceAll(name, " ", "-")), Labels: labels},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false), TerminationGracePeriodSeconds: new(int64(1)),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:  []corev1.Container{{Name: "main", Image: workloadImage}},
		},
	}
	s.create(t, pod)
	s.wait(t, "pod "+pod.Name+" to run", func(ctx context.Context) (bool, string) {
		err := s.api.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return isReady(pod), fmt.Sprint(pod.Status.Conditions, waiting(pod), err)
	})
	return s.endOf(t, name, pod)
}

func (s *scene) endOf(t *testing.T, name string, pod *corev1.Pod) end {
	t.Helper()
	return end{name, pod, s.process(t, pod)}
}

// expectWays tries all connections at once, again and again until each is made or gets no answer, as is to be.
func (s *scene) expectWays(t *testing.T, ways []way, isMade func(way) bool) {
	t.Helper()
	s.wait(t, "connections to be made and dropped", func(context.Context) (bool, string) {
		var wrong []string
		for i, said := range s.tryWays(t, ways) {
			want := "no answer"
			if isMade(ways[i]) {
				want = "connected"
			}
			if said != want {
				wrong = append(wrong, fmt.Sprintf("%s: %q, want %q", ways[i], said, want))
			}
		}
		return len(wrong) == 0, strings.Join(wrong, "; ")
	})
}

// tryWays makes the connections from the network namespaces of their pods, and returns what came of each.
func (s *scene) tryWays(t *testing.T, ways []way) []string {
	t.Helper()
	var script strings.Builder
	for i, w := range ways {
		inside, address := "", lab.ServiceAddress
		if w.from.process != "" {
			inside = "nsenter -t " + w.from.process + " -n "
		}
		if w.to.pod != nil {
			address = w.to.pod.Status.PodIP
		}
		fmt.Fprintf(&script, "{ echo \"%d $(%s%s/bin/workload -connect %s:%d 2>&1)\"; } & ", i, inside, lab.FilesPath, address, w.port)
	}
	said := make([]string, len(ways))
	for line := range strings.Lines(s.run(t, script.String()+"wait")) {
		number, outcome, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i, err := strconv.Atoi(number); err == nil && i < len(said) {
			said[i] = outcome
		}
	}
	return said
}

// expectRenewed waits until every Lease of manager and agents has been renewed.
func (s *scene) expectRenewed(t *testing.T, since metav1.MicroTime) {
	t.Helper()
	for _, namespace := range []string{operatorNamespace, agentNamespace} {
		s.wait(t, "Leases in "+namespace+" to be renewed", func(ctx context.Context) (bool, string) {
			leases := &coordinationv1.LeaseList{}
			if err := s.api.List(ctx, leases, client.InNamespace(namespace)); err != nil || len(leases.Items) == 0 {
				return false, fmt.Sprint("no Lease ", err)
			}
			for i := range leases.Items {
				if renewed := leases.Items[i].Spec.RenewTime; renewed == nil || !renewed.After(since.Add(time.Second)) {
					return false, fmt.Sprintf("%s was renewed at %s", leases.Items[i].Name, renewed)
				}
			}
			return true, ""
		})
	}
}
