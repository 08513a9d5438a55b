// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bypass

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

const fileTCPDirect = "libonload_zf.so.1"

func tcpDirectStack() Stack {
	return Stack{
		Type: v1alpha1.StackTCPDirect, Sample: "order-entry/tcpdirect/pool.yaml", Section: "TCPDirect",
		Measures:   "zfudppingpong",
		hasSection: func(s *v1alpha1.BypassStack) bool { return s.TCPDirect != nil },
		needs:      func(s *v1alpha1.BypassStack) needs { return tcpDirectNeeds(s.TCPDirect) },
		supported:  (*candidate).supported,
		rules:      onloadRules((*candidate).userVersion, (*candidate).builtWith),
		badSettings: func(s *v1alpha1.BypassStack) []string {
			_, bad := good(s.TCPDirect.Attributes, CheckAttribute)
			return bad
		},
		addEdits: addOnloadEdits(func(held []*candidate) []Variable { return []Variable{{"ZF_ATTR", zfAttributes(held)}} }),
		shares:   sharesByVirtualInterfaces,
	}
}

// tcpDirectNeeds: zf opens /dev/sfc_char for the NIC and /dev/onload for the control plane, and loads
// libefcp.so.1 when it starts. It allocates all buffers from hugepages of 2 MiB.
func tcpDirectNeeds(t *v1alpha1.TCPDirectStack) needs {
	return needs{
		moduleVersion: string(t.OnloadVersion), moduleField: "spec.stack.tcpDirect.onloadVersion",
		userVersion: string(t.Version), userField: "spec.stack.tcpDirect.version",
		userSpace:   t.UserSpace,
		smallPages:  true,
		nodes:       []string{nodeSFCChar, nodeOnload},
		nodesForAll: true,
		modules:     []string{moduleOnload, moduleChar, moduleResource},
		library:     fileTCPDirect,
		files:       []string{fileTCPDirect, fileCPlane},
	}
}

// builtWith wants libonload_zf.so to be built with the release of Onload that the kernel runs: "TCPDirect must be used
// with a matching version of Onload" (release notes of TCPDirect 9.0).
func (c *candidate) builtWith() verdict {
	file, ok := c.library()
	if !ok || file.Unreadable != "" || !c.isLoaded() {
		return passed()
	}
	version := c.bypass().Onload.Version
	if v := absent(version, "The version of the module onload", file.Path+" may not fit it", remedyProc); v.level != levelPassed {
		return v
	}
	if file.BuiltWith == "" {
		return unknown("%s does not say which release of Onload it was built with, and the module onload has %s (%s); see "+
			"where the file comes from.", file.Path, shown(version.Value), version.Source)
	}
	if isSameRelease(file.BuiltWith, version.Value) {
		return passed()
	}
	return failed("%s%s was built with Onload %s and the module onload has %s (%s); install the TCPDirect that belongs to "+
		"that release.", file.Path, inBrackets(file.Version), shown(file.BuiltWith), shown(version.Value), version.Source)
}

// isSameRelease reports whether two parts are of one release: by their last words, "v9_2" in "24d0c2a7 2026-07-24 v9_2",
// and of 9.0.1.31 by the first three numbers, because the fourth counts the packages of one product.
func isSameRelease(a, b string) bool {
	return lastWord(a) != "" && releaseNumber(lastWord(a)) == releaseNumber(lastWord(b))
}

// releaseNumber cuts the fourth number off.
func releaseNumber(version string) string {
	numbers := strings.Split(version, ".")
	return strings.Join(numbers[:min(len(numbers), 3)], ".")
}

// The attributes of TCPDirect in release 9.2 (ZF_ATTR in src/include/zf_internal/attr_tmpl.h), without the hidden ones
// of its emulator and without interface, which the operator sets.
const (
	numberAttributes = "alt_buf_size alt_count arp_reply_timeout ctpio ctpio_max_frame_len force_separate_tx_vi " +
		"log_format log_level max_tcp_endpoints max_tcp_listen_endpoints max_tcp_syn_backlog max_udp_rx_endpoints " +
		"max_udp_tx_endpoints n_bufs phys_address_mode pio reactor_spin_count rx_ring_max rx_ring_refill_batch_size " +
		"rx_ring_refill_interval rx_timestamping shrub_controller tcp_alt_ack_rewind tcp_delayed_ack tcp_finwait_ms " +
		"tcp_initial_cwnd tcp_retries tcp_syn_retries tcp_synack_retries tcp_timewait_ms tcp_wait_for_time_wait " +
		"tx_error_recovery tx_ring_max tx_timestamping udp_ttl zfss_fd_table_size"
	textAttributes = "ctpio_mode log_file name rx_datapath tph_mode zfss_implicit_host"
)

// CheckAttribute returns one sentence about an attribute that TCPDirect does not know or that is not the number it
// must be, and "" for a good one. With a bad one in ZF_ATTR, zf_attr_alloc fails and the program does not start.
func CheckAttribute(a v1alpha1.TCPDirectAttribute) string {
	switch {
	case slices.Contains(strings.Fields(textAttributes), a.Name):
		return ""
	case !slices.Contains(strings.Fields(numberAttributes), a.Name):
		return fmt.Sprintf("Attribute %s in spec.stack.tcpDirect.attributes is not set, because TCPDirect 9.2 does "+
			"not know it; correct the name.", shorten.Sentence(a.Name, valueLimit))
	case !isNumber(a.Value):
		return fmt.Sprintf("Attribute %s in spec.stack.tcpDirect.attributes is not set, because its value %q is not a "+
			"whole number; correct the value.", a.Name, shorten.Sentence(a.Value, valueLimit))
	default:
		return ""
	}
}

// isNumber reports whether sscanf with %li reads a text to its end: decimal, 0 and octal, or 0x and hexadecimal.
func isNumber(text string) bool {
	if strings.ContainsAny(text, "_obOB") && !strings.HasPrefix(strings.ToLower(text), "0x") {
		return false
	}
	_, err := strconv.ParseInt(text, 0, 64)
	return err == nil && !strings.Contains(text, "_")
}

// attachedInterface is the name that Multus gives the first interface which it adds to a pod.
const attachedInterface = "net1"

// zfAttributes is the text of ZF_ATTR. TCPDirect has one default interface: that of the first NIC. A program that
// holds several opens the others by name.
func zfAttributes(held []*candidate) string {
	name := held[0].nic.Name.Value
	if held[0].in.Pool.Spec.NetworkAttachment != nil || name == "" {
		name = attachedInterface
	}
	attributes, _ := good(held[0].in.Pool.Spec.Stack.TCPDirect.Attributes, CheckAttribute)
	parts := make([]string, 0, 1+len(attributes))
	parts = append(parts, "interface="+name)
	for _, attribute := range attributes {
		parts = append(parts, attribute.Name+"="+attribute.Value)
	}
	return strings.Join(parts, ";")
}
