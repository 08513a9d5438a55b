// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/xdpclient"
)

// received is what is printed for a frame.
type received struct {
	// Queue is the one that the device plugin named, and Text what the UDP datagram carried.
	Queue string `json:"queue"`
	Text  string `json:"text"`
	// Capabilities are the effective ones of the program and Interfaces those of its network namespace: neither is
	// needed.
	Capabilities string   `json:"capabilities"`
	Interfaces   []string `json:"interfaces"`
}

// receive asks for a socket on the first of some queues, as in "ens2f0:4 ens2f0:5", and prints what it receives.
func receive(queues string) error {
	first, _, _ := strings.Cut(queues, " ")
	name, number, _ := strings.Cut(first, ":")
	queue, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%q names no queue", queues)
	}
	receiver, err := openSocket(name, queue)
	if err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fmt.Errorf("reading what the kernel gave: %w", err)
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("listing the interfaces: %w", err)
	}
	report := received{Queue: first, Capabilities: field(string(status), "CapEff:")}
	for _, device := range interfaces {
		report.Interfaces = append(report.Interfaces, device.Name)
	}
	frame, err := receiver.Next(-1)
	if err != nil {
		return err
	}
	// Headers of Ethernet, IPv4 without options, and UDP.
	const headers = 14 + 20 + 8
	if len(frame) > headers {
		report.Text = strings.TrimSpace(string(frame[headers:]))
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func openSocket(name string, queue int) (*xdpclient.Receiver, error) {
	client, err := xdpclient.Dial(filepath.Join("/tmp/afxdp_dp", name, "afxdp.sock"))
	if err != nil {
		return nil, err
	}
	// The protocol begins with a name, which proves nothing.
	if err := client.Expect("/connect,receiver", "/host_ok"); err != nil {
		return nil, err
	}
	memory, area, err := xdpclient.NewMemory()
	if err != nil {
		return nil, err
	}
	socket, err := client.Socket(name, queue, memory)
	if err != nil {
		return nil, err
	}
	return xdpclient.NewReceiver(socket, area)
}
