// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package policies spells NetworkPolicies as rules of nftables for one machine that has all pods, which is what a cluster of the lab is.
package policies

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Cluster is what rules are made of.
type Cluster struct {
	Policies   []networkingv1.NetworkPolicy
	Namespaces []corev1.Namespace
	Pods       []corev1.Pod
}

// direction is one of the two that a policy may restrict, with the word of nftables for the other end's address.
type direction struct {
	kind        networkingv1.PolicyType
	chain, peer string
	own         string
}

func directions() []direction {
	return []direction{
		{networkingv1.PolicyTypeEgress, "from", "daddr", "saddr"},
		{networkingv1.PolicyTypeIngress, "to", "saddr", "daddr"},
	}
}

// Rules is a file for "nft -f" that replaces the table "inet policies". A pod that a policy selects in a direction takes or sends only what
// a rule allows; answers pass, and so does what the node itself sends, because only forwarded packets are looked at. Packets between ports of
// one bridge are seen with br_netfilter alone. The error names what is not spelled here: IPv6, and names of ports for egress.
func Rules(c Cluster) (string, error) {
	var jumps, chains strings.Builder
	for i := range c.Pods {
		pod := &c.Pods[i]
		if !isOnNetwork(pod) {
			continue
		}
		for _, d := range directions() {
			name, text, err := c.chain(pod, d)
			if err != nil {
				return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
			}
			if text != "" {
				fmt.Fprintf(&jumps, "    ip %s %s jump %s\n", d.own, pod.Status.PodIP, name)
				chains.WriteString(text)
			}
		}
	}
	return "table inet policies\ndelete table inet policies\ntable inet policies {\n" + chains.String() +
		"  chain forwarded {\n    type filter hook forward priority filter; policy accept;\n    ct state established,related accept\n" +
		jumps.String() + "  }\n}\n", nil
}

// isOnNetwork tells whether a pod has an address that is its own.
func isOnNetwork(pod *corev1.Pod) bool {
	hasEnded := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return pod.Status.PodIP != "" && !pod.Spec.HostNetwork && !hasEnded
}

// chain is that of a pod in a direction: each line returns for what is allowed, and the last drops the rest. It is empty where no
// policy selects the pod.
func (c Cluster) chain(pod *corev1.Pod, d direction) (name, text string, err error) {
	isSelected, lines := false, []string{}
	for i := range c.Policies {
		policy := &c.Policies[i]
		selects, err := restricts(policy, pod, d)
		if err != nil {
			return "", "", fmt.Errorf("policy %s: %w", policy.Name, err)
		}
		if !selects {
			continue
		}
		isSelected = true
		for _, rule := range rulesOf(&policy.Spec, d.kind) {
			allowed, err := c.allowed(policy.Namespace, pod, d, rule)
			if err != nil {
				return "", "", fmt.Errorf("policy %s: %w", policy.Name, err)
			}
			lines = append(lines, allowed...)
		}
	}
	if !isSelected {
		return "", "", nil
	}
	address, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || !address.Is4() {
		return "", "", fmt.Errorf("address %s is none of IPv4", pod.Status.PodIP)
	}
	name = d.chain + "_" + strings.ReplaceAll(pod.Status.PodIP, ".", "_")
	var written strings.Builder
	fmt.Fprintf(&written, "  chain %s { # %s/%s\n", name, pod.Namespace, pod.Name)
	for _, line := range lines {
		fmt.Fprintf(&written, "    %s\n", strings.Join(strings.Fields(line+" return"), " "))
	}
	written.WriteString("    drop\n  }\n")
	return name, written.String(), nil
}

// restricts tells whether a policy says something about what a pod takes or sends.
func restricts(policy *networkingv1.NetworkPolicy, pod *corev1.Pod, d direction) (bool, error) {
	if policy.Namespace != pod.Namespace || !slices.Contains(policy.Spec.PolicyTypes, d.kind) {
		return false, nil
	}
	return matches(&policy.Spec.PodSelector, pod.Labels)
}

// rule is one of a policy, whatever its direction.
type rule struct {
	peers []networkingv1.NetworkPolicyPeer
	ports []networkingv1.NetworkPolicyPort
}

func rulesOf(spec *networkingv1.NetworkPolicySpec, kind networkingv1.PolicyType) []rule {
	var rules []rule
	if kind == networkingv1.PolicyTypeIngress {
		for _, r := range spec.Ingress {
			rules = append(rules, rule{r.From, r.Ports})
		}
		return rules
	}
	for _, r := range spec.Egress {
		rules = append(rules, rule{r.To, r.Ports})
	}
	return rules
}

// allowed are the matches of a rule: each peer with each port. No peers are all peers, and no ports are all ports.
func (c Cluster) allowed(namespace string, pod *corev1.Pod, d direction, r rule) ([]string, error) {
	peers, ports := []string{}, []string{}
	for i := range r.peers {
		peer, err := c.peer(namespace, d, &r.peers[i])
		if err != nil {
			return nil, err
		}
		if peer != "" {
			peers = append(peers, peer)
		}
	}
	if len(r.peers) == 0 {
		peers = []string{""}
	}
	for i := range r.ports {
		port, err := portOf(pod, d, &r.ports[i])
		if err != nil {
			return nil, err
		}
		if port != "" {
			ports = append(ports, port)
		}
	}
	if len(r.ports) == 0 {
		ports = []string{""}
	}
	var lines []string
	for _, peer := range peers {
		for _, port := range ports {
			lines = append(lines, peer+" "+port)
		}
	}
	return lines, nil
}

// peer matches the other end; it is empty where no pod is selected.
func (c Cluster) peer(namespace string, d direction, peer *networkingv1.NetworkPolicyPeer) (string, error) {
	if block := peer.IPBlock; block != nil {
		text := "ip " + d.peer + " " + block.CIDR
		if len(block.Except) > 0 {
			text += " ip " + d.peer + " != { " + strings.Join(block.Except, ", ") + " }"
		}
		return text, nil
	}
	inside, err := c.selected(namespace, peer.NamespaceSelector)
	if err != nil {
		return "", err
	}
	var addresses []string
	for i := range c.Pods {
		pod := &c.Pods[i]
		isMeant := true
		if peer.PodSelector != nil {
			if isMeant, err = matches(peer.PodSelector, pod.Labels); err != nil {
				return "", err
			}
		}
		if isMeant && isOnNetwork(pod) && slices.Contains(inside, pod.Namespace) {
			addresses = append(addresses, pod.Status.PodIP)
		}
	}
	if len(addresses) == 0 {
		return "", nil
	}
	slices.Sort(addresses)
	return "ip " + d.peer + " { " + strings.Join(addresses, ", ") + " }", nil
}

// selected are the namespaces that a peer means: the policy's own without a selector.
func (c Cluster) selected(own string, selector *metav1.LabelSelector) ([]string, error) {
	if selector == nil {
		return []string{own}, nil
	}
	var names []string
	for i := range c.Namespaces {
		isMeant, err := matches(selector, c.Namespaces[i].Labels)
		if err != nil {
			return nil, err
		}
		if isMeant {
			names = append(names, c.Namespaces[i].Name)
		}
	}
	return names, nil
}

// portOf matches a port of the pod that is connected to; it is empty where the pod names no such port.
func portOf(pod *corev1.Pod, d direction, port *networkingv1.NetworkPolicyPort) (string, error) {
	protocol := corev1.ProtocolTCP
	if port.Protocol != nil {
		protocol = *port.Protocol
	}
	word := strings.ToLower(string(protocol))
	switch {
	case port.Port == nil:
		return "meta l4proto " + word, nil
	case port.EndPort != nil:
		return fmt.Sprintf("%s dport %d-%d", word, port.Port.IntVal, *port.EndPort), nil
	case port.Port.Type == intstr.Int:
		return fmt.Sprintf("%s dport %d", word, port.Port.IntVal), nil
	case d.kind == networkingv1.PolicyTypeEgress:
		return "", errors.New("the name of a port for egress means another number in each pod, which is not spelled here")
	}
	if number := named(pod, protocol, port.Port.StrVal); number != 0 {
		return fmt.Sprintf("%s dport %d", word, number), nil
	}
	return "", nil
}

// named is the number of a port that a pod names, or 0.
func named(pod *corev1.Pod, protocol corev1.Protocol, name string) int32 {
	for i := range pod.Spec.Containers {
		for _, port := range pod.Spec.Containers[i].Ports {
			if port.Name == name && port.Protocol == protocol {
				return port.ContainerPort
			}
		}
	}
	return 0
}

func matches(selector *metav1.LabelSelector, set map[string]string) (bool, error) {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return false, fmt.Errorf("reading a selector: %w", err)
	}
	return parsed.Matches(labels.Set(set)), nil
}
