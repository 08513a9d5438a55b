// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/klog/v2"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/onload"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/stackdump"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/bounded"
)

// maximumComplaint bounds what a program in a container may write to its standard error, in bytes.
const maximumComplaint = 64 << 10

// containerOf runs programs in a container through the API server and the kubelet, as kubectl exec does: over a
// WebSocket, and by SPDY where an API server or a proxy in between does not upgrade to that.
func containerOf(config *rest.Config, core *rest.RESTClient, namespace, pod, container string) stackdump.Run {
	return func(ctx context.Context, command []string) (stackdump.Ended, error) {
		request := core.Post().Namespace(namespace).Resource("pods").Name(pod).SubResource("exec").
			Param("container", container).Param("stdout", "true").Param("stderr", "true")
		for _, word := range command {
			request.Param("command", word)
		}
		executor, err := newExecutor(config, request.URL())
		if err != nil {
			return stackdump.Ended{}, err
		}
		return execute(ctx, executor)
	}
}

func newExecutor(config *rest.Config, target *url.URL) (remotecommand.Executor, error) {
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, target.String())
	if err != nil {
		return nil, fmt.Errorf("preparing a WebSocket: %w", err)
	}
	plain, err := remotecommand.NewSPDYExecutor(config, http.MethodPost, target)
	if err != nil {
		return nil, fmt.Errorf("preparing SPDY: %w", err)
	}
	return remotecommand.NewFallbackExecutor(socket, plain, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// execute waits for the end of a program, of the context, or of what is read of the program.
func execute(ctx context.Context, executor remotecommand.Executor) (stackdump.Ended, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tooMuch := func() { cancel(stackdump.ErrTooMuch) }
	output, complaint := &bounded.Writer{Left: onload.MaximumBytes, Full: tooMuch}, &bounded.Writer{Left: maximumComplaint, Full: tooMuch}
	// The library logs that streams end when a connection is closed in the midst of them.
	err := executor.StreamWithContext(klog.NewContext(ctx, logr.Discard()), remotecommand.StreamOptions{Stdout: output, Stderr: complaint})
	if cause := context.Cause(ctx); cause != nil {
		// Somebody may still be writing.
		return stackdump.Ended{}, cause
	}
	ended := stackdump.Ended{Output: output.Text.String(), Complaint: complaint.Text.String()}
	if code, isCode := errors.AsType[exec.CodeExitError](err); isCode {
		ended.ExitCode, err = code.Code, nil
	}
	return ended, err
}
