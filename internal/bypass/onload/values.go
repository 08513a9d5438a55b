// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package onload

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/shorten"
)

const (
	// maximumPID is the largest PID of Linux (PID_MAX_LIMIT).
	maximumPID = 1 << 22
	// counterBits bounds counters. Onload's have 32 bits; a sum over all sockets of all stacks must fit in 64.
	counterBits = 36
	// maximumWord bounds the texts that are kept, in bytes: addresses of IPv6 with a port have 47, names of stacks 16.
	maximumWord = 64
	// interfaceDigits is the length of uk_intf_ver: CI_CHSUM_STR_LEN.
	interfaceDigits = 32
	decimal, hex    = 10, 16
	// maximumHandovers bounds the calls that hand sockets over; Onload has eight.
	maximumHandovers = 32
)

// counter is where the counter with Onload's name is kept; nil for counters that are not.
func (c *Counters) counter(name string) **uint64 {
	switch name {
	case "udp_tot_recv_pkts_ul":
		return &c.UDPReceivedUser
	case "udp_tot_recv_pkts_os":
		return &c.UDPReceivedKernel
	case "udp_tot_send_pkts_ul":
		return &c.UDPSentUser
	case "udp_tot_send_pkts_os":
		return &c.UDPSentKernel
	case "ul_accepts":
		return &c.TCPAcceptedUser
	case "tcp_accept_os":
		return &c.TCPAcceptedKernel
	default:
		return nil
	}
}

// isHandover tells the counters of sockets that Onload handed to the kernel, one for each call by which that happens.
func isHandover(name string) bool {
	return strings.HasPrefix(name, "tcp_handover_") || strings.HasPrefix(name, "udp_handover_")
}

func (c *Counters) addHandover(name, value string) error {
	var one *uint64
	if err := set(&one, value); err != nil {
		return err
	}
	if name, err := printable(name); err == nil && *one > 0 && len(c.Handovers) < maximumHandovers {
		c.Handovers = append(c.Handovers, Handover{Counter: name, Sockets: *one})
	}
	if c.HandedToKernel == nil {
		c.HandedToKernel = new(uint64)
	}
	*c.HandedToKernel += *one
	return nil
}

func (s *Stack) setInterface(version string) error {
	if len(version) != interfaceDigits || strings.Trim(version, "0123456789abcdef") != "" {
		return fmt.Errorf("%s is no checksum of an interface", quote(version))
	}
	s.InterfaceVersion = &version
	return nil
}

// setUser reads the value of tot_pkts, which is decimal for UDP (ci_udp_recvq_dump of src/lib/transport/ip/udp.c) and
// hexadecimal for TCP (ci_tcp_state_dump of tcp_debug.c).
func (s *Socket) setUser(value string) error {
	base := decimal
	if s.Protocol == protocolTCP {
		base = hex
	}
	number, err := strconv.ParseUint(value, base, counterBits)
	if err != nil {
		return fmt.Errorf("%s is no number of packets", quote(value))
	}
	s.ReceivedUser = &number
	return nil
}

// setKernel reads "997(100%) os_slow=0 os_error=0".
func (s *Socket) setKernel(value string) error {
	if s.Protocol != protocolUDP {
		return nil
	}
	count, rest, _ := strings.Cut(value, "(")
	percent, _, closed := strings.Cut(rest, "%)")
	const all = 100
	part, err := integer(percent, all)
	if err != nil || !closed {
		return fmt.Errorf("%s is no number of datagrams with a percentage", quote(value))
	}
	s.KernelPercent = &part
	return set(&s.ReceivedKernel, count)
}

// setAccepted reads the field os of "a_loop2_closed=0 a_no_fd=0 ack_rsts=0 os=3 rx_pkts=4".
func (s *Socket) setAccepted(line string) error {
	for field := range strings.FieldsSeq(line) {
		if value, ok := strings.CutPrefix(field, "os="); ok {
			return set(&s.AcceptedKernel, value)
		}
	}
	return nil
}

// set reads a counter.
func set(to **uint64, text string) error {
	number, err := strconv.ParseUint(text, decimal, counterBits)
	if err != nil {
		return fmt.Errorf("%s is no number from 0 to 2^%d", quote(text), counterBits)
	}
	*to = &number
	return nil
}

// integer reads a number from 0 to a maximum.
func integer(text string, maximum int) (int, error) {
	number, err := strconv.ParseUint(text, decimal, counterBits)
	if err != nil || number > uint64(maximum) {
		return 0, fmt.Errorf("%s is no number from 0 to %d", quote(text), maximum)
	}
	return int(number), nil
}

// printable returns a word that may be shown on a terminal.
func printable(word string) (string, error) {
	if len(word) > maximumWord {
		return "", fmt.Errorf("%s is longer than names and addresses are", quote(word))
	}
	for _, c := range []byte(word) {
		if c <= ' ' && c != ' ' || c > '~' {
			return "", errors.New("a name or an address has characters that cannot be printed")
		}
	}
	return word, nil
}

// quote is the beginning of a text for a message, without what a terminal would obey.
func quote(text string) string {
	return strconv.QuoteToASCII(shorten.Sentence(text, maximumWord))
}
