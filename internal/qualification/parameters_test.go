// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"reflect"
	"testing"
	"time"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// TestHashesStay: results that are there were measured with these parameters. A version of the operator that tells another hash of one of these would
// measure every node of every fleet again, so what is added to a test later must not change them.
func TestHashesStay(t *testing.T) {
	server := v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{"far", "farther"}}
	ends := server
	ends.TestEnd = v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.32/24"}
	for name, tc := range map[string]struct {
		spec v1alpha1.LatencyTestSpec
		want string
	}{
		"jitter": {v1alpha1.LatencyTestSpec{Kind: v1alpha1.LatencyTestJitter}, "8f42adbc735c0ae4"},
		"jitter of several CPUs": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestJitter, DurationSeconds: 600, Repetitions: 3, Jitter: &v1alpha1.JitterTest{CPUs: 4, ThresholdNanoseconds: 1000},
		}, "87d9b370c2191703"},
		"messages between pods": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestPingPong, Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportTCP, Server: server},
		}, "06e446f767825c1c"},
		"messages on one node": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestPingPong, PingPong: &v1alpha1.PingPongTest{Sizes: []int32{64}},
			Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Waiting: v1alpha1.WaitingBlock, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnSameNode}},
		}, "0bf75d52f31ef1b6"},
		"messages between NICs": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestPingPong, Repetitions: 3,
			Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportMulticast, Server: ends, Client: &v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.31/24"}},
		}, "2c19649af4001366"},
		"rates": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestRateSweep, RateSweep: &v1alpha1.RateSweepTest{MessagesPerSecond: []int32{1000, 2000}, Bytes: 128},
			Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: ends},
		}, "935776792dde58b3"},
		"a search": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestLoadSearch, Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: server},
		}, "a99c2b38e09fb8e7"},
		"a search with bounds": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestLoadSearch, Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: server},
			LoadSearch: &v1alpha1.LoadSearchTest{
				Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: 9000}, {Percentile: v1alpha1.P99, Nanoseconds: 50_000}},
				Growth:      &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P99, MaximumPercent: 300},
			},
		}, "fb217fc781f24fea"},
		"a container and its host": {v1alpha1.LatencyTestSpec{
			Kind: v1alpha1.LatencyTestContainerVersusHost, Traffic: &v1alpha1.TestTraffic{Transport: v1alpha1.TransportUDP, Server: ends, Client: &v1alpha1.TestEnd{BypassNICPool: "x2"}},
		}, "abfff8222d485ca3"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ParametersOf(&tc.spec).Hash(); got != tc.want {
				t.Errorf("the hash is %s, and was %s", got, tc.want)
			}
		})
	}
}

// TestEveryFieldIsHashed: what was measured otherwise has another hash, also where a field is added later.
func TestEveryFieldIsHashed(t *testing.T) {
	measured := func() *Parameters { return &Parameters{Traffic: &Traffic{}, Load: &Load{}} }
	was := measured().Hash()
	for _, of := range []func(*Parameters) any{
		func(p *Parameters) any { return p.Traffic }, func(p *Parameters) any { return &p.Traffic.Server }, func(p *Parameters) any { return &p.Traffic.Server.TestEnd },
		func(p *Parameters) any { return &p.Traffic.Client }, func(p *Parameters) any { return p.Load },
	} {
		kind := reflect.TypeOf(of(measured())).Elem()
		for i := range kind.NumField() {
			p := measured()
			field := reflect.ValueOf(of(p)).Elem().Field(i)
			if kind.Field(i).Type.Kind() != reflect.Struct {
				set(t, field)
				if p.Hash() == was {
					t.Errorf("%s of %s is not hashed", kind.Field(i).Name, kind)
				}
			}
		}
	}
}

// set gives a field another value than the one that it has when it is omitted.
func set(t *testing.T, field reflect.Value) {
	t.Helper()
	switch field.Interface().(type) {
	case []string:
		field.Set(reflect.ValueOf([]string{"other"}))
	case []v1alpha1.LatencyPercentile:
		field.Set(reflect.ValueOf([]v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50}}))
	case int32, time.Duration:
		field.SetInt(7)
	default:
		field.SetString("other")
	}
}

// TestGrowthByDefault: the median is bounded where the probes of a trial carry it, as trials do whose length nobody gives.
func TestGrowthByDefault(t *testing.T) {
	if got := PercentOf(defaultGrowthPercentile); got != latency.DefaultGrowthPercent {
		t.Errorf("the percentile is %g, and %d is bounded", got, latency.DefaultGrowthPercent)
	}
	for name, tc := range map[string]struct {
		given v1alpha1.LoadSearchTest
		want  float64
	}{
		"nothing given":     {v1alpha1.LoadSearchTest{}, 10},
		"few probes":        {v1alpha1.LoadSearchTest{ProbesPerSecond: 1}, 10},
		"a trial just long": {v1alpha1.LoadSearchTest{ProbesPerSecond: 15, TrialSeconds: 15}, 10},
		"a trial too short": {v1alpha1.LoadSearchTest{ProbesPerSecond: 14, TrialSeconds: 15}, 0},
		"somebody's own":    {v1alpha1.LoadSearchTest{Growth: &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P50, MaximumPercent: 150}}, 1.5},
	} {
		if got := loadOf(&tc.given).Growth(); got != tc.want {
			t.Errorf("%s: %g times, want %g", name, got, tc.want)
		}
	}
}
