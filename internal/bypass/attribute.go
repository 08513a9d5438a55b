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

// isNumber tells whether sscanf with %li reads a text to its end: decimal, 0 and octal, or 0x and hexadecimal.
func isNumber(text string) bool {
	if strings.ContainsAny(text, "_obOB") && !strings.HasPrefix(strings.ToLower(text), "0x") {
		return false
	}
	_, err := strconv.ParseInt(text, 0, 64)
	return err == nil && !strings.Contains(text, "_")
}

// goodAttributes returns the attributes that are set; the second result has a sentence for each other one.
func goodAttributes(attributes []v1alpha1.TCPDirectAttribute) (good []v1alpha1.TCPDirectAttribute, bad []string) {
	for _, a := range attributes {
		if sentence := CheckAttribute(a); sentence != "" {
			bad = append(bad, sentence)
		} else {
			good = append(good, a)
		}
	}
	return good, bad
}
