// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package probe

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"
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

// writeLatencyHTML writes the page that test report writes of a LatencyTest, of what a probe has measured over the network; of a measurement without figures,
// how it has ended.
func writeLatencyHTML(out io.Writer, result *latency.Result) error {
	kinds := map[latency.Kind]v1alpha1.LatencyTestKind{
		latency.KindPingPong: v1alpha1.LatencyTestPingPong, latency.KindRateSweep: v1alpha1.LatencyTestRateSweep, latency.KindLoadSearch: v1alpha1.LatencyTestLoadSearch,
	}
	commands := map[latency.Kind]string{latency.KindPingPong: "probe pingpong", latency.KindRateSweep: "probe rate", latency.KindLoadSearch: "probe load"}
	client := &result.Setup.Client
	var measured *v1alpha1.LatencyMeasurement
	if answered := answeredOf(result); answered != nil {
		record, err := recordOf(kinds[result.Kind], max(0, client.CPU), []*latency.Result{answered}, client.Kernel, "")
		if err != nil {
			return err
		}
		if client.CPU < 0 {
			record.CPUs = ""
		}
		measured = record.Measurement(text.Harmless(result.Setup.Server.Name))
	}
	node := nodeOf(client.Name, client.Kernel, measured)
	node.Outcome, node.Reason, node.Message = v1alpha1.LatencyOutcome(result.Outcome.Verdict), string(result.Outcome.Reason), text.Harmless(result.Outcome.Message)
	return writeProbePage(out, commands[result.Kind], kinds[result.Kind], node, remarksOf(result, measured != nil))
}

// answeredOf is a result with those sizes alone of which a message came back, as records have them; nil where no record can be made of it.
func answeredOf(result *latency.Result) *latency.Result {
	answered := *result
	answered.Sizes = slices.DeleteFunc(slices.Clone(result.Sizes), func(size latency.Size) bool { return size.Distribution.Samples == 0 })
	if len(answered.Sizes) == 0 || result.Kind == latency.KindLoadSearch && (result.Load == nil || result.Load.Low() == nil) {
		return nil
	}
	return &answered
}

// remarksOf say what the latencies of a page are of, and what it does not have.
func remarksOf(result *latency.Result, hasFigures bool) []string {
	var remarks []string
	isOnSchedule := len(result.Rates) > 0 || result.Load != nil && len(result.Load.Trials) > 0
	switch {
	case hasFigures && isOnSchedule:
		remarks = append(remarks, "Latencies are "+text.Reported(result)+".")
	case hasFigures:
		remarks = append(remarks, "Latencies are "+text.ReportedOneAtATime(result)+".")
	case isOnSchedule:
		remarks = append(remarks, "There are no figures of messages on a schedule here, since none came back while nothing else was sent: -o json has what was measured.")
	}
	var unanswered []string
	for i := range result.Sizes {
		if result.Sizes[i].Distribution.Samples == 0 {
			unanswered = append(unanswered, strconv.Itoa(result.Sizes[i].Bytes))
		}
	}
	if len(unanswered) > 0 {
		remarks = append(remarks, "No message of "+fewOf(unanswered)+" bytes came back.")
	}
	return remarks
}

// writeJitterHTML writes the same page of what was measured on CPUs of this host.
func writeJitterHTML(out io.Writer, result *jitter.Result) error {
	here := traffic.ThisHost(-1, nil)
	record, err := testrun.RecordOf([]*jitter.Result{result}, here.Kernel, "")
	if err != nil {
		return err
	}
	// The probe of jitter takes no limits, so that there is no verdict but that figures are not those of all interruptions.
	node := nodeOf(here.Name, here.Kernel, record.Measurement(""))
	if dropped := result.Dropped(); len(dropped) > 0 {
		node.Outcome, node.Reason, node.Message = v1alpha1.LatencyInconclusive, v1alpha1.TestMeasurementFailed, strings.Join(dropped, "; ")
	}
	return writeProbePage(out, "probe jitter", v1alpha1.LatencyTestJitter, node, nil)
}

// nodeOf is a host that was measured now; measured is nil without figures.
func nodeOf(name, kernel string, measured *v1alpha1.LatencyMeasurement) *view.LatencyNode {
	if measured != nil {
		measured.CompletedTime, measured.Fingerprint.Kernel = metav1.NewTime(time.Now()), text.Harmless(kernel)
	}
	result := &v1alpha1.LatencyTestResult{Node: cmp.Or(text.Harmless(name), "this host"), Measured: measured, Freshness: v1alpha1.LatencyFresh}
	node := view.OfLatencyResult(result, nil)
	return &node
}

func writeProbePage(out io.Writer, command string, kind v1alpha1.LatencyTestKind, node *view.LatencyNode, remarks []string) error {
	written, err := page.Probe(command, kind, node, remarks, time.Now())
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, written)
	return err
}
