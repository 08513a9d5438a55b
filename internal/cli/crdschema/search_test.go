// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

const (
	// searches are how many are made up.
	searches = 600
	// mostProbes are those of a trial, of which the client takes no more.
	mostProbes = 5_000_000
)

// TestSearchesThatAreAdmitted makes up LatencyTests of kind LoadSearch whose times and probes are around the limits between which the rules decide: what
// is admitted can be made, and what is refused for its times or its probes cannot.
func TestSearchesThatAreAdmitted(t *testing.T) {
	schemas, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	admitted := 0
	for range searches {
		spec := madeUpSearch(random)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v1alpha1.LatencyTest{Spec: *spec})
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: object}
		u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("LatencyTest"))
		u.SetName("search")
		u.SetNamespace("default")
		unstructured.RemoveNestedField(u.Object, "status")
		refused, problem := schemas.Validate(t.Context(), u), searchProblem(spec)
		if len(refused) == 0 {
			admitted++
		}
		if (len(refused) == 0) != (problem == "") {
			t.Fatalf("%+v for %d s\nthe API says: %v\nthe search says: %q", spec.LoadSearch, spec.DurationSeconds, refused, problem)
		}
	}
	t.Logf("%d of %d were admitted", admitted, searches)
	if admitted < searches/10 || admitted > searches*9/10 {
		t.Error("nearly all of them are admitted, or refused")
	}
}

// madeUpSearch leaves out every second field.
func madeUpSearch(random *rand.Rand) *v1alpha1.LatencyTestSpec {
	one := func(values ...int32) int32 {
		if random.IntN(2) == 0 {
			return 0
		}
		return values[random.IntN(len(values))]
	}
	percentile := func() v1alpha1.PercentileName {
		all := []v1alpha1.PercentileName{v1alpha1.P50, v1alpha1.P99, v1alpha1.P999, v1alpha1.P9999, v1alpha1.P99999}
		return all[random.IntN(len(all))]
	}
	search := &v1alpha1.LoadSearchTest{
		SniffSeconds: one(1, 2, 14, 15, 16, 59, 60, 61, 90, 3600), TrialSeconds: one(1, 2, 14, 15, 30, 60, 61, 112, 3600),
		ConfirmSeconds: one(1, 5, 14, 15, 59, 60, 61, 112, 300, 5000, 43_200), ProbesPerSecond: one(1, 2, 3, 10, 14, 15, 25, 26, 309, 5000, 100_000),
	}
	if random.IntN(3) == 0 {
		search.Percentiles = []v1alpha1.LatencyPercentile{{Percentile: percentile(), Nanoseconds: 1}}
	}
	if random.IntN(3) == 0 {
		search.Growth = &v1alpha1.LatencyGrowth{Percentile: percentile(), MaximumPercent: 300}
	}
	return &v1alpha1.LatencyTestSpec{
		Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"}, Kind: v1alpha1.LatencyTestLoadSearch, LoadSearch: search,
		DurationSeconds: one(10, 30, 74, 75, 90, 120, 200, 223, 224, 2224, 7200, 86_400),
		Traffic:         &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingBlock, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}},
	}
}

// searchProblem is why a search cannot be made; "" when it can.
func searchProblem(spec *v1alpha1.LatencyTestSpec) string {
	p := qualification.ParametersOf(spec)
	l := p.Load
	options := latency.SearchOptions{
		Minimum: uint64(l.Lowest), Start: uint64(l.First), Maximum: uint64(l.Highest), Granularity: l.Granularity(), Sniff: l.Sniff, Search: l.Trial, Confirm: l.Confirm,
		Longest: p.Duration, Probes: uint64(l.ProbesPerSecond), Growth: l.Growth(), GrowthPercent: qualification.PercentOf(l.GrowthPercentile),
	}
	for _, bound := range l.Percentiles {
		options.Budget.Limits = append(options.Budget.Limits, latency.Limit{Percent: qualification.PercentOf(bound.Percentile), Nanoseconds: bound.Nanoseconds})
	}
	if _, err := latency.NewSearch(options); err != nil {
		return err.Error()
	}
	if l.GrowthPercent == 0 {
		return "its probes carry no growth"
	}
	if float64(l.ProbesPerSecond)*l.Confirm.Seconds() > mostProbes {
		return "too many probes"
	}
	return ""
}
