// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
)

// monitor is a connection to QEMU's machine protocol (QMP; QEMU's docs/interop/qmp-spec). It is used by one
// goroutine at a time.
type monitor struct {
	connection net.Conn
	decoder    *json.Decoder
}

// message is anything that QEMU sends.
type message struct {
	Return json.RawMessage `json:"return"`
	Error  *struct {
		Class, Desc string
	} `json:"error"`
	Event string `json:"event"`
	Data  struct {
		Device string `json:"device"`
	} `json:"data"`
}

// openMonitor connects and leaves the mode in which only capabilities can be negotiated.
func openMonitor(ctx context.Context, socket string) (*monitor, error) {
	var dialer net.Dialer
	connection, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("connecting to QEMU's monitor: %w", err)
	}
	m := &monitor{connection: connection, decoder: json.NewDecoder(connection)}
	stop := m.bound(ctx)
	defer stop()
	var greeting message
	err = m.decoder.Decode(&greeting)
	if err == nil {
		err = m.execute(ctx, "qmp_capabilities", nil)
	}
	if err != nil {
		return nil, fmt.Errorf("talking to QEMU's monitor: %w", errors.Join(err, m.close()))
	}
	return m, nil
}

// bound ends reading and writing with the context.
func (m *monitor) bound(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { _ = m.connection.Close() })
}

// execute sends a command and waits for its answer; events in between are dropped.
func (m *monitor) execute(ctx context.Context, command string, arguments map[string]any) error {
	_, err := m.ask(ctx, command, arguments)
	return err
}

// human gives QEMU a command of its monitor for people, which says in its answer, and not by an error, what went wrong.
func (m *monitor) human(ctx context.Context, command string) error {
	answer, err := m.ask(ctx, "human-monitor-command", map[string]any{"command-line": command})
	if err != nil {
		return err
	}
	var text string
	if err := json.Unmarshal(answer, &text); err != nil {
		return fmt.Errorf("reading QEMU's answer to %s: %w", command, err)
	}
	if text = strings.TrimSpace(text); text != "" {
		return fmt.Errorf("QEMU says to %s: %s", command, text)
	}
	return nil
}

// ask sends a command and returns what QEMU answers; events in between are dropped.
func (m *monitor) ask(ctx context.Context, command string, arguments map[string]any) (json.RawMessage, error) {
	stop := m.bound(ctx)
	defer stop()
	request := map[string]any{"execute": command}
	if arguments != nil {
		request["arguments"] = arguments
	}
	if err := json.NewEncoder(m.connection).Encode(request); err != nil {
		return nil, fmt.Errorf("sending %s to QEMU: %w", command, cause(ctx, err))
	}
	for {
		var answer message
		if err := m.decoder.Decode(&answer); err != nil {
			return nil, fmt.Errorf("waiting for QEMU's answer to %s: %w", command, cause(ctx, err))
		}
		if answer.Error != nil {
			return nil, fmt.Errorf("QEMU refuses %s: %s", command, answer.Error.Desc)
		}
		if answer.Event == "" {
			return answer.Return, nil
		}
	}
}

// waitDeleted waits until the guest has let a device go.
func (m *monitor) waitDeleted(ctx context.Context, device string) error {
	stop := m.bound(ctx)
	defer stop()
	for {
		var event message
		if err := m.decoder.Decode(&event); err != nil {
			return fmt.Errorf("waiting for the machine to let %s go: %w", device, cause(ctx, err))
		}
		if event.Event == "DEVICE_DELETED" && event.Data.Device == device {
			return nil
		}
	}
}

func (m *monitor) close() error { return ignoreClosed(m.connection.Close()) }

// cause prefers why the context ended over what closing the connection looked like.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
