// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubelet

import (
	"encoding/json"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Properties are those of a service that ReadUnit reads, as systemctl show prints them.
func Properties() []string {
	return []string{"LoadState", "ActiveState", "InvocationID", "NRestarts", "MainPID", "ExecMainStartTimestampMonotonic"}
}

// ReadUnit reads what systemctl show has printed of a service, at a time of the monotonic clock. It is nil when the host has no such
// service.
func ReadUnit(name, printed string, monotonic time.Duration) (*Unit, error) {
	values := map[string]string{}
	for line := range strings.Lines(printed) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[key] = value
	}
	if values["LoadState"] == "" || values["ActiveState"] == "" {
		return nil, fmt.Errorf("systemd says of %s neither whether it is loaded nor whether it is active: %q", name, printed)
	}
	if values["LoadState"] != "loaded" {
		return nil, nil //nolint:nilnil // There is no such service, and that is no error.
	}
	unit := &Unit{Name: name, Active: values["ActiveState"], Invocation: values["InvocationID"]}
	started := 0
	for _, number := range []struct {
		key  string
		into *int
	}{{"NRestarts", &unit.Restarts}, {"MainPID", &unit.Process}, {"ExecMainStartTimestampMonotonic", &started}} {
		value, err := strconv.Atoi(values[number.key])
		if err != nil {
			return nil, fmt.Errorf("systemd says of %s that its %s is %q, which is no number", name, number.key, values[number.key])
		}
		*number.into = value
	}
	if unit.Process != 0 {
		unit.Running = monotonic - time.Duration(started)*time.Microsecond
	}
	return unit, nil
}

// The names of flags that the running kubelet may have, and what it does without them (cmd/kubelet/app/options and
// pkg/kubelet/apis/config/v1beta1/defaults.go of Kubernetes).
const (
	defaultFile    = "/var/lib/kubelet/config.yaml"
	defaultAddress = "127.0.0.1"
	defaultPort    = 10248
)

// Flags are those of the running kubelet by which its health is found.
type Flags struct {
	// File is its configuration, and Folder that of its drop-ins; "" without one.
	File, Folder string

	address, port string
}

// ReadFlags reads the command line of a process, as /proc shows it.
func ReadFlags(commandLine string) Flags {
	flags := Flags{File: defaultFile}
	words := strings.Split(strings.TrimRight(commandLine, "\x00"), "\x00")
	for i, word := range words {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		into := map[string]*string{
			"config": &flags.File, "config-dir": &flags.Folder, "healthz-bind-address": &flags.address, "healthz-port": &flags.port,
		}[name]
		if into == nil || !strings.HasPrefix(word, "-") {
			continue
		}
		if !hasValue && i+1 < len(words) {
			value = words[i+1]
		}
		*into = value
	}
	return flags
}

// Address is where the kubelet says whether it is healthy, as host:port, by its flags and its merged configuration, JSON; "" when it
// was told not to say it.
func (f Flags) Address(configuration string) string {
	fields := struct {
		Port    *int   `json:"healthzPort"`
		Address string `json:"healthzBindAddress"`
	}{}
	// What the kubelet cannot read it does not run with, and then there is nobody at any address.
	_ = json.Unmarshal([]byte(configuration), &fields)
	host, port := defaultAddress, strconv.Itoa(defaultPort)
	if fields.Port != nil {
		port = strconv.Itoa(*fields.Port)
	}
	if fields.Address != "" {
		host = fields.Address
	}
	if f.port != "" {
		port = f.port
	}
	if f.address != "" {
		host = f.address
	}
	switch {
	case port == "0":
		return ""
	case host == "0.0.0.0" || host == "::":
		host = defaultAddress
	}
	return net.JoinHostPort(host, port)
}
