// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// maximumFailure bounds what is read of why a node could not reach the port, in bytes.
const maximumFailure = 1 << 10

// forwardTo connects to a port of a pod through the API server and the kubelet, at the pod's URL for it. Other than
// kubectl port-forward, it opens no port on this machine: nobody else here is to read what is weak on the node.
func forwardTo(config *rest.Config, target *url.URL, port uint16) connector {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		dialer, err := streamDialer(config, target)
		if err != nil {
			return nil, err
		}
		return within(ctx, func() (io.ReadWriteCloser, error) { return openPort(dialer, port) })
	}
}

// streamDialer opens connections with several streams as kubectl does: through a WebSocket, and as SPDY where an API
// server or a proxy in between does not upgrade to that.
func streamDialer(config *rest.Config, target *url.URL) (httpstream.Dialer, error) {
	tunnel, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, fmt.Errorf("preparing a WebSocket: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("preparing SPDY: %w", err)
	}
	plain := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	return portforward.NewFallbackDialerForStreaming(tunnel, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// within waits for a connection until the context ends: the dialers know of no context. A connection that comes later
// is closed.
func within(ctx context.Context, open func() (io.ReadWriteCloser, error)) (io.ReadWriteCloser, error) {
	type outcome struct {
		connection io.ReadWriteCloser
		err        error
	}
	opened := make(chan outcome, 1)
	go func() {
		connection, err := open()
		opened <- outcome{connection, err}
	}()
	select {
	case found := <-opened:
		return found.connection, found.err
	case <-ctx.Done():
		go func() {
			if late := <-opened; late.err == nil {
				_ = late.connection.Close()
			}
		}()
		return nil, fmt.Errorf("connecting: %w", ctx.Err())
	}
}

// forwarded is a connection to a port of a pod: a stream of data, and one on which the node says why there is none.
type forwarded struct {
	connection     httpstream.Connection
	data, failures httpstream.Stream
}

// openPort opens the two streams for one connection to a port.
func openPort(dialer httpstream.Dialer, port uint16) (io.ReadWriteCloser, error) {
	connection, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		_ = connection.Close()
		return nil, fmt.Errorf("the API server forwards ports by the protocol %q, which is not known", protocol)
	}
	opened, err := openStreams(connection, port)
	if err != nil {
		_ = connection.Close()
		return nil, fmt.Errorf("opening a stream to port %d: %w", port, err)
	}
	return opened, nil
}

// openStreams opens the streams in the order of kubectl, and ends our side of the one on which only the node writes.
func openStreams(connection httpstream.Connection, port uint16) (*forwarded, error) {
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	failures, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	if err := failures.Close(); err != nil {
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := connection.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	return &forwarded{connection: connection, data: data, failures: failures}, nil
}

func (f *forwarded) Read(p []byte) (int, error) {
	n, err := f.data.Read(p)
	return n, f.explain(err)
}

func (f *forwarded) Write(p []byte) (int, error) {
	n, err := f.data.Write(p)
	return n, f.explain(err)
}

func (f *forwarded) Close() error { return f.connection.Close() }

// explain replaces the end of the data by what the node says about it, if it does.
func (f *forwarded) explain(err error) error {
	if err == nil {
		return nil
	}
	// What cannot be read says nothing more than the error.
	if message, _ := io.ReadAll(io.LimitReader(f.failures, maximumFailure)); len(message) > 0 {
		return errors.New(string(message))
	}
	return err
}
