// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"cmp"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/page"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/jitter"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/testrun"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/traffic"
)

// writeLatencyHTML writes the page that test report writes of a LatencyTest, of what a probe has measured over the network.
func writeLatencyHTML(out io.Writer, result *latency.Result) error {
	kinds := map[latency.Kind]v1alpha1.LatencyTestKind{
		latency.KindPingPong: v1alpha1.LatencyTestPingPong, latency.KindRateSweep: v1alpha1.LatencyTestRateSweep, latency.KindLoadSearch: v1alpha1.LatencyTestLoadSearch,
	}
	commands := map[latency.Kind]string{latency.KindPingPong: "probe pingpong", latency.KindRateSweep: "probe rate", latency.KindLoadSearch: "probe load"}
	client := &result.Setup.Client
	record, err := recordOf(kinds[result.Kind], max(0, client.CPU), []*latency.Result{result}, client.Kernel, "")
	if err != nil {
		return err
	}
	if client.CPU < 0 {
		record.CPUs = ""
	}
	node := nodeOf(client.Name, client.Kernel, record.Measurement(text.Harmless(result.Setup.Server.Name)))
	node.Outcome, node.Reason, node.Message = v1alpha1.LatencyOutcome(result.Outcome.Verdict), string(result.Outcome.Reason), text.Harmless(result.Outcome.Message)
	return writeProbePage(out, commands[result.Kind], kinds[result.Kind], node)
}

// writeJitterHTML writes the same page of what was measured on CPUs of this host.
func writeJitterHTML(out io.Writer, result *jitter.Result) error {
	here := traffic.ThisHost(-1, nil)
	record, err := testrun.RecordOf([]*jitter.Result{result}, here.Kernel, "")
	if err != nil {
		return err
	}
	// The probe of jitter takes no limits, so that there is no verdict.
	return writeProbePage(out, "probe jitter", v1alpha1.LatencyTestJitter, nodeOf(here.Name, here.Kernel, record.Measurement("")))
}

// nodeOf is a host that was measured now.
func nodeOf(name, kernel string, measured *v1alpha1.LatencyMeasurement) *view.LatencyNode {
	measured.CompletedTime, measured.Fingerprint.Kernel = metav1.NewTime(time.Now()), text.Harmless(kernel)
	result := &v1alpha1.LatencyTestResult{Node: cmp.Or(text.Harmless(name), "this host"), Measured: measured, Freshness: v1alpha1.LatencyFresh}
	node := view.OfLatencyResult(result, nil)
	return &node
}

func writeProbePage(out io.Writer, command string, kind v1alpha1.LatencyTestKind, node *view.LatencyNode) error {
	written, err := page.Probe(command, kind, node, time.Now())
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, written)
	return err
}
