// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

type (
	latencyTest     = v1alpha1.LatencyTest
	latencyTestRule = rule[v1alpha1.LatencyTest]
)

func newLatencyTest() *latencyTest {
	return &latencyTest{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "quiet"},
		Spec:       v1alpha1.LatencyTestSpec{Nodes: v1alpha1.LatencyTestNodes{Profile: "trading"}, Kind: v1alpha1.LatencyTestJitter},
	}
}

// latencyTestRules returns a case for each CEL rule of LatencyTest.
func latencyTestRules() []latencyTestRule {
	names := []latencyTestRule{
		{
			message:  "metadata.name must be at most 63 characters long, because Jobs carry it as a label.",
			accepted: func(t *latencyTest) { t.Name = strings.Repeat("a", 63) },
			rejected: func(t *latencyTest) { t.Name = strings.Repeat("a", 64) },
		},
		{
			field:    "spec.nodes",
			message:  "spec.nodes needs exactly one of profile, bypassNICPool, nodeSelector and names.",
			accepted: func(t *latencyTest) { t.Spec.Nodes = v1alpha1.LatencyTestNodes{Names: []string{"node-1"}} },
			rejected: func(t *latencyTest) { t.Spec.Nodes.Names = []string{"node-1"} },
		},
	}
	selectors := nodeSelectorRules(func(t *latencyTest, selector v1alpha1.NodeSelector) {
		t.Spec.Nodes = v1alpha1.LatencyTestNodes{NodeSelector: &selector}
	})
	labels := []latencyTestRule{
		{
			field:    "spec.nodeSelector.matchLabels",
			message:  "a label key is a name of at most 63 letters, digits and _.-, which a DNS name and a slash may precede.",
			accepted: labelled(v1alpha1.Labels{"zone_A": "x"}), rejected: labelled(v1alpha1.Labels{"trading nodes": ""}),
		},
		{
			field:    "spec.nodeSelector.matchLabels[]",
			message:  "a label value is empty or begins and ends with a letter or digit, with letters, digits and _.- between.",
			accepted: labelled(v1alpha1.Labels{"zone": "rack-1"}), rejected: labelled(v1alpha1.Labels{"zone": "rack 1"}),
		},
	}
	inNodes := slices.Concat(selectors, labels)
	for i := range inNodes {
		inNodes[i].field = strings.Replace(inNodes[i].field, "spec.nodeSelector", "spec.nodes.nodeSelector", 1)
	}
	return slices.Concat(names, thresholdRules(), trafficRules(), scheduleRules(), loadRules(), loadTimeRules(), comparisonRules(), stackRules(), groupRules(), inNodes)
}

// thresholdRules returns cases of the CEL rule about what kind Jitter does not count.
func thresholdRules() []latencyTestRule {
	of := func(threshold int32, budget v1alpha1.LatencyBudget) func(*latencyTest) {
		return func(t *latencyTest) {
			t.Spec.Budget = &budget
			if threshold > 0 {
				t.Spec.Jitter = &v1alpha1.JitterTest{ThresholdNanoseconds: threshold}
			}
		}
	}
	percentile := func(nanoseconds int64) v1alpha1.LatencyBudget {
		return v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P50, Nanoseconds: nanoseconds}}}
	}
	longest, stolen := v1alpha1.LatencyBudget{MaximumNanoseconds: 500}, v1alpha1.LatencyBudget{StolenPartsPerMillion: 1}
	rules := make([]latencyTestRule, 0, 5)
	for _, one := range []struct{ accepted, rejected func(*latencyTest) }{
		{of(0, longest), of(0, v1alpha1.LatencyBudget{MaximumNanoseconds: 499})},
		{of(500, longest), of(501, longest)},
		{of(500, stolen), of(501, stolen)},
		{of(500, percentile(0)), of(501, percentile(0))},
		{of(600, percentile(600)), of(600, percentile(599))},
	} {
		rules = append(rules, latencyTestRule{
			field: "spec", message: "spec.budget of kind Jitter cannot bound what spec.jitter.thresholdNanoseconds (500 when omitted) leaves out: maximumNanoseconds is at least as long, " +
				"and above 500 so are percentiles, and stolenPartsPerMillion is not judged.",
			accepted: one.accepted, rejected: one.rejected,
		})
	}
	return rules
}

// repeatsAt gives a test a schedule.
func repeatsAt(at v1alpha1.TestSchedule) func(*latencyTest) {
	return func(t *latencyTest) { t.Spec.RepeatAt = &at }
}

// scheduleRules returns a case for each CEL rule about times of day.
func scheduleRules() []latencyTestRule {
	const schedule = "spec.repeatAt.schedule has the five fields of cron with one space between two, minute, hour, day of the month, month and day of the week, such as 30 2 * * 6."
	saturdays := v1alpha1.TestSchedule{Schedule: "30 2 * * 6"}
	return []latencyTestRule{
		{
			field:    "spec",
			message:  "spec has repeatAt or repeatAfterHours, not both: nodes are measured once more at times of day, or so many hours after the last time.",
			accepted: repeatsAt(saturdays), rejected: func(t *latencyTest) { t.Spec.RepeatAt, t.Spec.RepeatAfterHours = &saturdays, 24 },
		},
		{
			field: "spec.repeatAt.schedule", message: schedule,
			accepted: repeatsAt(v1alpha1.TestSchedule{Schedule: "*/5 9-17 1,15 jan-dec mon-fri"}), rejected: repeatsAt(v1alpha1.TestSchedule{Schedule: "TZ=Europe/London 0 2 * * *"}),
		},
		{
			field: "spec.repeatAt.timeZone", message: "spec.repeatAt.timeZone is the name of a time zone, such as Europe/London or UTC.",
			accepted: repeatsAt(v1alpha1.TestSchedule{Schedule: saturdays.Schedule, TimeZone: "America/Argentina/Buenos_Aires"}),
			rejected: repeatsAt(v1alpha1.TestSchedule{Schedule: saturdays.Schedule, TimeZone: "Local"}),
		},
	}
}

// compares makes a test a comparison with a budget.
func compares(repetitions int32, budget v1alpha1.LatencyBudget) func(*latencyTest) {
	return pingPong(func(t *latencyTest) {
		t.Spec.Kind, t.Spec.Repetitions, t.Spec.Budget = v1alpha1.LatencyTestContainerVersusHost, repetitions, &budget
	})
}

// comparisonRules returns a case for each CEL rule about comparisons.
func comparisonRules() []latencyTestRule {
	ratios := v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 1050}}}
	return []latencyTestRule{
		{
			field: "spec", message: "spec.budget.ratios stands with spec.kind ContainerVersusHost and StackComparison only, which compare.",
			accepted: compares(0, ratios), rejected: pingPong(func(t *latencyTest) { t.Spec.Budget = &ratios }),
		},
		{
			field: "spec", message: "spec.budget of kind ContainerVersusHost has ratios and path only: what single latencies may be is judged by kind PingPong.",
			accepted: compares(0, v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel}),
			rejected: compares(0, v1alpha1.LatencyBudget{MaximumNanoseconds: 1}),
		},
		{
			field: "spec", message: "spec.repetitions of kind ContainerVersusHost and StackComparison is at least 5: fewer pairs of measurements carry no interval of confidence.",
			accepted: compares(5, ratios), rejected: compares(4, ratios),
		},
	}
}

// stacks makes a test a comparison of the kernel's sockets with those of a pool; change spoils it.
func stacks(change func(*latencyTest)) func(*latencyTest) {
	return pingPong(func(t *latencyTest) {
		t.Spec.Kind = v1alpha1.LatencyTestStackComparison
		kernel := v1alpha1.TestEnd{BypassNICPool: "x2", Sockets: v1alpha1.TestSocketsKernel}
		t.Spec.StackComparison = &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
			{Name: "kernel", Path: v1alpha1.LatencyPathKernel, Client: v1alpha1.StackClient{TestEnd: kernel}, Server: v1alpha1.StackServer{TestEnd: kernel}},
			{
				Name: "onload", Path: v1alpha1.LatencyPathAccelerated,
				Client: v1alpha1.StackClient{TestEnd: v1alpha1.TestEnd{BypassNICPool: "x2"}}, Server: v1alpha1.StackServer{TestEnd: v1alpha1.TestEnd{BypassNICPool: "x2"}},
			},
		}}
		if change != nil {
			change(t)
		}
	})
}

// ofOnload is stacks with another second side.
func ofOnload(change func(*v1alpha1.StackSide)) func(*latencyTest) {
	return stacks(func(t *latencyTest) { change(&t.Spec.StackComparison.Sides[1]) })
}

// stackRules returns a case for each CEL rule about comparisons of stacks.
func stackRules() []latencyTestRule {
	const (
		ends        = "spec.traffic of kind StackComparison has no client, and its server no bypassNICPool, address and sockets: each of spec.stackComparison.sides has its own ends."
		ratiosOnly  = "spec.budget of kind StackComparison has ratios only: each side says its own path, and what single latencies may be is judged by kind PingPong."
		accelerated = "a side with path Accelerated needs bypassNICPool at both ends, and sockets Kernel at none: the kernel's own sockets are not accelerated."
	)
	inSides := func(field string) string { return "spec.stackComparison.sides[]" + field }
	rules := []latencyTestRule{
		{
			field: "spec", message: "spec.stackComparison has the sides of spec.kind StackComparison, which needs it, and stands with no other kind.",
			accepted: stacks(nil), rejected: stacks(func(t *latencyTest) { t.Spec.StackComparison = nil }),
		},
		{
			field: "spec", message: ends,
			accepted: stacks(func(t *latencyTest) { t.Spec.Traffic.Waiting = v1alpha1.WaitingBlock }),
			rejected: stacks(func(t *latencyTest) { t.Spec.Traffic.Server.BypassNICPool = "x2" }),
		},
		{
			field: "spec", message: ratiosOnly,
			accepted: stacks(func(t *latencyTest) {
				t.Spec.Budget = &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 700}}}
			}),
			rejected: stacks(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel} }),
		},
		{
			field: "spec.stackComparison", message: "spec.stackComparison.base is the name of one of spec.stackComparison.sides.",
			accepted: stacks(func(t *latencyTest) { t.Spec.StackComparison.Base = "onload" }),
			rejected: stacks(func(t *latencyTest) { t.Spec.StackComparison.Base = "tcpdirect" }),
		},
		{
			field: inSides(".name"), message: "the name of a side has lower-case letters, digits and - between them, such as onload.",
			accepted: ofOnload(func(s *v1alpha1.StackSide) { s.Name = "onload-9" }), rejected: ofOnload(func(s *v1alpha1.StackSide) { s.Name = "Onload" }),
		},
		{
			field: inSides(""), message: accelerated,
			accepted: ofOnload(func(s *v1alpha1.StackSide) { s.Client.Network = v1alpha1.TestNetworkHost }),
			rejected: ofOnload(func(s *v1alpha1.StackSide) { s.Server.Sockets = v1alpha1.TestSocketsKernel }),
		},
		{
			field: inSides(".client"), message: "an address does not stand with network Host: the namespace of the node has the addresses of the node.",
			accepted: ofOnload(func(s *v1alpha1.StackSide) { s.Client.Address = "192.0.2.31/24" }),
			rejected: ofOnload(func(s *v1alpha1.StackSide) {
				s.Client.Address, s.Client.Network = "192.0.2.31/24", v1alpha1.TestNetworkHost
			}),
		},
		{
			field: inSides(".server"), message: "a server with network Host needs an address: that of the NIC of its pool in the namespace of the node, at which it is reached.",
			accepted: ofOnload(func(s *v1alpha1.StackSide) {
				s.Server.Address, s.Server.Network = "192.0.2.31/24", v1alpha1.TestNetworkHost
			}),
			rejected: ofOnload(func(s *v1alpha1.StackSide) { s.Server.Network = v1alpha1.TestNetworkHost }),
		},
	}
	onKernel := func(t *latencyTest) *v1alpha1.StackSide { return &t.Spec.StackComparison.Sides[0] }
	return slices.Concat(rules,
		endRules(inSides(".client"), stacks, func(t *latencyTest) *v1alpha1.TestEnd { return &onKernel(t).Client.TestEnd }),
		endRules(inSides(".server"), stacks, func(t *latencyTest) *v1alpha1.TestEnd { return &onKernel(t).Server.TestEnd }))
}

// groupRules returns a case for each CEL rule about groups of multicast.
func groupRules() []latencyTestRule {
	group := func(transport v1alpha1.TestTransport, address string) func(*latencyTest) {
		return pingPong(func(t *latencyTest) { t.Spec.Traffic.Transport, t.Spec.Traffic.MulticastGroup = transport, address })
	}
	rules := append(make([]latencyTestRule, 0, 7), latencyTestRule{
		field: "spec.traffic", message: "spec.traffic.multicastGroup stands with transport Multicast only.",
		accepted: group(v1alpha1.TransportMulticast, "239.192.1.7"), rejected: group(v1alpha1.TransportUDP, "239.192.1.7"),
	})
	for _, one := range []struct{ accepted, rejected, message string }{
		{"239.255.255.255", "240.0.0.1", "a group of multicast is an address of IPv4 from 224.0.0.0 to 239.255.255.255, such as 239.192.1.7."},
		{"239.192.1.7", "239.192.01.7", "a group of multicast is an address of IPv4 from 224.0.0.0 to 239.255.255.255, such as 239.192.1.7."},
		{"224.0.2.0", "ff05::142", "a group of ff00::/8 cannot be measured: messages of LatencyTests go over IPv4, so name a group of IPv4, such as 239.192.1.7."},
		{
			"224.1.0.0", "224.0.0.251",
			"groups of 224.0.0.0/24 belong to the protocols of routers and switches on one link (RFC 5771), which a measurement would disturb: name another one, such as 239.192.1.7.",
		},
		{
			"224.1.2.48", "224.0.1.129",
			"groups of 224.0.1.0/24 belong to protocols of the network such as PTP and NTP (RFC 5771), which a measurement would disturb: name another one, such as 239.192.1.7.",
		},
		{"233.0.0.1", "232.1.1.1", "groups of 232.0.0.0/8 are joined with a source (RFC 4607), and both ends join without one: name another one, such as 239.192.1.7."},
	} {
		rules = append(rules, latencyTestRule{
			field: "spec.traffic.multicastGroup", message: one.message,
			accepted: group(v1alpha1.TransportMulticast, one.accepted), rejected: group(v1alpha1.TransportMulticast, one.rejected),
		})
	}
	return rules
}

// newPingPong makes a test one that sends messages.
func newPingPong(t *latencyTest) {
	t.Spec.Kind = v1alpha1.LatencyTestPingPong
	t.Spec.Traffic = &v1alpha1.TestTraffic{
		Transport: v1alpha1.TransportUDP, Server: v1alpha1.TestServer{Placement: v1alpha1.ServerOnNodes, NodeNames: []string{"node-2"}},
	}
}

// pingPong makes a test one that sends messages, and changes it.
func pingPong(change func(*latencyTest)) func(*latencyTest) {
	return func(t *latencyTest) {
		newPingPong(t)
		change(t)
	}
}

// rateSweep makes a test one that sends messages on a schedule, and changes it.
func rateSweep(change func(*latencyTest)) func(*latencyTest) {
	return pingPong(func(t *latencyTest) {
		t.Spec.Kind = v1alpha1.LatencyTestRateSweep
		change(t)
	})
}

// loadSearch makes a test a search with these parameters.
func loadSearch(search v1alpha1.LoadSearchTest) func(*latencyTest) {
	return pingPong(func(t *latencyTest) { t.Spec.Kind, t.Spec.LoadSearch = v1alpha1.LatencyTestLoadSearch, &search })
}

// loadSearchFor makes a test a search with a budget.
func loadSearchFor(budget v1alpha1.LatencyBudget, search v1alpha1.LoadSearchTest) func(*latencyTest) {
	return func(t *latencyTest) {
		loadSearch(search)(t)
		t.Spec.Budget = &budget
	}
}

// loadRules returns a case for each CEL rule about searches for the highest rate.
func loadRules() []latencyTestRule {
	type search = v1alpha1.LoadSearchTest
	at99, at9999 := []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P99, Nanoseconds: 1}}, []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P9999, Nanoseconds: 1}}
	const (
		more    = "P999 100000, P9999 1000000, and P99999 is out of reach; raise spec.loadSearch.probesPerSecond or trialSeconds."
		probes  = "a trial has 5000000 probes at most: lower spec.loadSearch.probesPerSecond (1000 when omitted), or shorten spec.loadSearch.confirmSeconds, trialSeconds or sniffSeconds."
		carried = ": P99 takes 10000, " + more
		grown   = ": P50, which counts when omitted, takes 200, P99 10000, " + more
	)
	return []latencyTestRule{
		{
			field: "spec", message: "spec.loadSearch stands with spec.kind LoadSearch only.",
			accepted: loadSearch(search{Bytes: 24}), rejected: rateSweep(func(t *latencyTest) { t.Spec.LoadSearch = &search{Bytes: 24} }),
		},
		{
			field: "spec", message: "spec.budget.minimumMessagesPerSecond stands with spec.kind LoadSearch only.",
			accepted: loadSearchFor(v1alpha1.LatencyBudget{MinimumMessagesPerSecond: 1}, search{Bytes: 24}),
			rejected: rateSweep(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{MinimumMessagesPerSecond: 1} }),
		},
		{
			field: "spec", message: "spec.budget of kind LoadSearch has minimumMessagesPerSecond and path only: by what loss and latencies a rate passes is in spec.loadSearch.",
			accepted: loadSearchFor(v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel}, search{Percentiles: at99}),
			rejected: loadSearchFor(v1alpha1.LatencyBudget{Percentiles: at99}, search{Bytes: 24}),
		},
		{
			field: "spec", message: "spec.budget.minimumMessagesPerSecond must not be above spec.loadSearch.highestMessagesPerSecond, which no trial exceeds.",
			accepted: loadSearchFor(v1alpha1.LatencyBudget{MinimumMessagesPerSecond: 50}, search{HighestMessagesPerSecond: 50}),
			rejected: loadSearchFor(v1alpha1.LatencyBudget{MinimumMessagesPerSecond: 51}, search{HighestMessagesPerSecond: 50}),
		},
		{
			field: "spec.loadSearch", message: "spec.loadSearch.lowestMessagesPerSecond, firstMessagesPerSecond and highestMessagesPerSecond must not descend.",
			accepted: loadSearch(search{LowestMessagesPerSecond: 2, FirstMessagesPerSecond: 2, HighestMessagesPerSecond: 2}),
			rejected: loadSearch(search{LowestMessagesPerSecond: 3, HighestMessagesPerSecond: 2}),
		},
		{
			field: "spec.loadSearch", message: "spec.loadSearch.sniffSeconds, trialSeconds and confirmSeconds must not descend.",
			accepted: loadSearch(search{SniffSeconds: 5, TrialSeconds: 5, ConfirmSeconds: 5}), rejected: loadSearch(search{SniffSeconds: 6, ConfirmSeconds: 5}),
		},
		{
			field:    "spec.loadSearch",
			message:  probes,
			accepted: loadSearch(search{ConfirmSeconds: 5000}), rejected: loadSearch(search{ConfirmSeconds: 5001}),
		},
		{
			field: "spec.loadSearch", message: probes,
			accepted: loadSearch(search{ProbesPerSecond: 2500, SniffSeconds: 2000}), rejected: loadSearch(search{ProbesPerSecond: 2500, SniffSeconds: 2001}),
		},
		{
			field: "spec.loadSearch", message: "the probes of a trial, a tenth less, must carry spec.loadSearch.percentiles" + carried,
			accepted: loadSearch(search{Percentiles: at99, TrialSeconds: 12}), rejected: loadSearch(search{Percentiles: at99, TrialSeconds: 11}),
		},
		{
			field: "spec.loadSearch", message: "the probes of a trial, a tenth less, must carry spec.loadSearch.growth.percentile" + grown,
			accepted: loadSearch(search{ProbesPerSecond: 15, TrialSeconds: 15}), rejected: loadSearch(search{ProbesPerSecond: 14, TrialSeconds: 15}),
		},
		{
			field: "spec.loadSearch", message: "the probes of a trial, a tenth less, must carry spec.loadSearch.percentiles" + carried,
			accepted: loadSearch(search{Percentiles: at9999, ProbesPerSecond: 26}), rejected: loadSearch(search{Percentiles: at9999, ProbesPerSecond: 25}),
		},
	}
}

// loadTimeRules returns cases of the CEL rule about the time of a search.
func loadTimeRules() []latencyTestRule {
	type search = v1alpha1.LoadSearchTest
	lasts := func(seconds int32, given search) func(*latencyTest) {
		return func(t *latencyTest) {
			loadSearch(given)(t)
			t.Spec.DurationSeconds = seconds
		}
	}
	rules := make([]latencyTestRule, 0, 7)
	for _, one := range []struct {
		least int32
		given search
	}{
		{75, search{Bytes: 24}},
		{10, search{ConfirmSeconds: 5}},
		{160, search{TrialSeconds: 60, ConfirmSeconds: 100}},
		// Confirmations are as long as trials at least, and trials as long as sniffs and as percentiles need.
		{200, search{TrialSeconds: 100}},
		{90, search{SniffSeconds: 30}},
		{224, search{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: v1alpha1.P999, Nanoseconds: 1}}}},
		{2224, search{Growth: &v1alpha1.LatencyGrowth{Percentile: v1alpha1.P9999, MaximumPercent: 300}}},
	} {
		rules = append(rules, latencyTestRule{
			field: "spec", message: "spec.durationSeconds ends a search, so it must have time for spec.loadSearch.trialSeconds (when omitted 15, or what spec.loadSearch.sniffSeconds, " +
				"percentiles and growth need) and spec.loadSearch.confirmSeconds (when omitted 60, or as long as a trial).",
			accepted: lasts(one.least, one.given), rejected: lasts(one.least-1, one.given),
		})
	}
	return rules
}

// carriedRules returns a case for each CEL rule about percentiles that no measurement would carry.
func carriedRules() []latencyTestRule {
	const takes = ": P99 takes 10000, P999 100000, P9999 1000000 and P99999 10000000; raise it (1000000 when omitted), and spec.durationSeconds."
	within := func(change func(func(*latencyTest)) func(*latencyTest), name v1alpha1.PercentileName, given *v1alpha1.PingPongTest) func(*latencyTest) {
		return change(func(t *latencyTest) {
			t.Spec.PingPong, t.Spec.Budget = given, &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: name, Nanoseconds: 1}}}
		})
	}
	compared := func(name v1alpha1.PercentileName, given *v1alpha1.PingPongTest) func(*latencyTest) {
		return pingPong(func(t *latencyTest) {
			t.Spec.Kind, t.Spec.PingPong = v1alpha1.LatencyTestContainerVersusHost, given
			t.Spec.Budget = &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: name, MaximumPartsPerThousand: 1000}}}
		})
	}
	swept := func(name v1alpha1.PercentileName, answers, seconds int32, rates ...int32) func(*latencyTest) {
		return rateSweep(func(t *latencyTest) {
			t.Spec.DurationSeconds = seconds
			t.Spec.RateSweep = &v1alpha1.RateSweepTest{AnswersPerRate: answers, MessagesPerSecond: rates}
			t.Spec.Budget = &v1alpha1.LatencyBudget{Percentiles: []v1alpha1.LatencyPercentile{{Percentile: name, Nanoseconds: 1}}}
		})
	}
	many := func(messages int32, sizes ...int32) *v1alpha1.PingPongTest {
		return &v1alpha1.PingPongTest{MessagesPerSize: messages, Sizes: sizes}
	}
	const carried, compares = "the messages of a size, spec.pingPong.messagesPerSize, must carry spec.budget.percentiles" + takes,
		"the messages of a size, spec.pingPong.messagesPerSize, must carry spec.budget.ratios" + takes
	const shares = "spec.durationSeconds (60 when omitted) is shared out among the rates, so each of spec.rateSweep.messagesPerSecond (10000, 50000 and 100000 when omitted) must send what " +
		"carries spec.budget.percentiles in its share: 10000 messages for P99, 100000 for P999 and 1000000 for P9999; raise spec.durationSeconds, or leave out low rates."
	return []latencyTestRule{
		{
			field: "spec", message: carried,
			accepted: within(pingPong, v1alpha1.P99999, many(10_000_000, 64, 65, 66, 67)), rejected: within(pingPong, v1alpha1.P99999, many(9_999_999, 64)),
		},
		{field: "spec", message: compares, accepted: compared(v1alpha1.P99999, many(10_000_000, 64)), rejected: compared(v1alpha1.P99999, many(0, 64))},
		{
			field: "spec", message: "spec.budget.percentiles of kind RateSweep go up to P9999: P99999 takes the times of ten million messages, and spec.rateSweep.answersPerRate is 1000000 at most.",
			accepted: swept(v1alpha1.P9999, 1_000_000, 300), rejected: within(rateSweep, v1alpha1.P99999, nil),
		},
		{
			field: "spec", message: "the answers of a rate, spec.rateSweep.answersPerRate, must carry spec.budget.percentiles: P99 takes 10000, P999 100000 and P9999 1000000; raise it (120000 when omitted), and spec.durationSeconds.",
			accepted: within(rateSweep, v1alpha1.P999, nil), rejected: swept(v1alpha1.P9999, 999_999, 300),
		},
		{field: "spec", message: shares, accepted: swept(v1alpha1.P999, 0, 200, 1000, 10_000), rejected: swept(v1alpha1.P999, 0, 199, 1000, 10_000)},
		{field: "spec", message: shares, accepted: swept(v1alpha1.P9999, 1_000_000, 300), rejected: swept(v1alpha1.P9999, 1_000_000, 299)},
		{field: "spec", message: shares, accepted: swept(v1alpha1.P99, 0, 0, 500), rejected: swept(v1alpha1.P99, 0, 0, 166)},
		{
			field: "spec.pingPong", message: "a measurement has 40000000 messages at most: lower spec.pingPong.messagesPerSize, or name fewer spec.pingPong.sizes (8 when omitted).",
			accepted: pingPong(func(t *latencyTest) { t.Spec.PingPong = many(5_000_000) }), rejected: pingPong(func(t *latencyTest) { t.Spec.PingPong = many(5_000_001) }),
		},
	}
}

// acceleratedBy is a ping-pong that has to go past the kernel, with a client of this kind and a server with a pool.
func acceleratedBy(end v1alpha1.TestEnd) func(*latencyTest) {
	return pingPong(func(t *latencyTest) {
		t.Spec.Traffic.Client, t.Spec.Traffic.Server.TestEnd = &end, v1alpha1.TestEnd{BypassNICPool: "x2"}
		t.Spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathAccelerated}
	})
}

// trafficRules returns a case for each CEL rule about messages.
func trafficRules() []latencyTestRule {
	rules := []latencyTestRule{
		{
			field: "spec", message: "spec.jitter stands with spec.kind Jitter only.",
			accepted: func(t *latencyTest) { t.Spec.Jitter = &v1alpha1.JitterTest{CPUs: 1} },
			rejected: pingPong(func(t *latencyTest) { t.Spec.Jitter = &v1alpha1.JitterTest{CPUs: 1} }),
		},
		{
			field: "spec", message: "spec.pingPong stands with spec.kind PingPong, ContainerVersusHost or StackComparison only.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64}} }),
			rejected: func(t *latencyTest) { t.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{64}} },
		},
		{
			field: "spec", message: "spec.rateSweep stands with spec.kind RateSweep only.",
			accepted: rateSweep(func(t *latencyTest) { t.Spec.RateSweep = &v1alpha1.RateSweepTest{Bytes: 24} }),
			rejected: pingPong(func(t *latencyTest) { t.Spec.RateSweep = &v1alpha1.RateSweepTest{Bytes: 24} }),
		},
		{
			field: "spec", message: "spec.traffic.transport TCP does not stand with spec.kind RateSweep and LoadSearch: messages that leave on a schedule are datagrams, so use UDP or Multicast.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.Traffic.Transport = v1alpha1.TransportTCP }),
			rejected: rateSweep(func(t *latencyTest) { t.Spec.Traffic.Transport = v1alpha1.TransportTCP }),
		},
		{
			field:   "spec",
			message: "spec.traffic.server.nodeNames needs for each of spec.nodes.names a node that is another one: a measured node runs its own server with placement SameNode only.",
			accepted: pingPong(func(t *latencyTest) {
				t.Spec.Nodes, t.Spec.Traffic.Server.NodeNames = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "node-2"}}, []string{"node-2", "node-1"}
			}),
			rejected: pingPong(func(t *latencyTest) {
				t.Spec.Nodes, t.Spec.Traffic.Server.NodeNames = v1alpha1.LatencyTestNodes{Names: []string{"node-1", "node-2"}}, []string{"node-2", "node-2"}
			}),
		},
		{
			field: "spec", message: "spec.budget.latePartsPerMillion stands with spec.kind RateSweep only, which judges single rates on a schedule.",
			accepted: rateSweep(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{LatePartsPerMillion: new(int32)} }),
			rejected: pingPong(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{LatePartsPerMillion: new(int32)} }),
		},
		{
			field: "spec", message: "spec.traffic says between which ends messages go: every spec.kind but Jitter needs it, and Jitter has none.",
			accepted: newPingPong, rejected: pingPong(func(t *latencyTest) { t.Spec.Traffic = nil }),
		},
		{
			field: "spec", message: "spec.pingPong.sizes are 1 to 65536 bytes over TCP, and 0 to 65507 bytes in datagrams.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.PingPong = &v1alpha1.PingPongTest{Sizes: []int32{0, 65507}} }),
			rejected: pingPong(func(t *latencyTest) {
				t.Spec.Traffic.Transport, t.Spec.PingPong = v1alpha1.TransportTCP, &v1alpha1.PingPongTest{Sizes: []int32{0, 65536}}
			}),
		},
		{
			field: "spec", message: "spec.budget.stolenPartsPerMillion stands with spec.kind Jitter only.",
			accepted: func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{StolenPartsPerMillion: 1} },
			rejected: pingPong(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{StolenPartsPerMillion: 1} }),
		},
		{
			field: "spec", message: "spec.budget.lossPartsPerMillion and spec.budget.path are about messages, which spec.kind Jitter does not send.",
			accepted: pingPong(func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{LossPartsPerMillion: new(int32)} }),
			rejected: func(t *latencyTest) { t.Spec.Budget = &v1alpha1.LatencyBudget{Path: v1alpha1.LatencyPathKernel} },
		},
		{
			field:    "spec",
			message:  "spec.budget.path Accelerated needs bypassNICPool in spec.traffic.client and spec.traffic.server, and sockets Kernel in none: the pods' own network and the kernel's own sockets are not accelerated.",
			accepted: acceleratedBy(v1alpha1.TestEnd{BypassNICPool: "x2"}), rejected: acceleratedBy(v1alpha1.TestEnd{BypassNICPool: "x2", Sockets: v1alpha1.TestSocketsKernel}),
		},
		{
			field: "spec.traffic.server", message: "spec.traffic.server.nodeNames stands with placement Nodes, which needs it, and with no other.",
			accepted: newPingPong, rejected: pingPong(func(t *latencyTest) { t.Spec.Traffic.Server.Placement = v1alpha1.ServerOnSameNode }),
		},
	}
	return slices.Concat(rules, carriedRules(),
		endRules("spec.traffic.server", pingPong, func(t *latencyTest) *v1alpha1.TestEnd { return &t.Spec.Traffic.Server.TestEnd }),
		endRules("spec.traffic.client", pingPong, func(t *latencyTest) *v1alpha1.TestEnd {
			t.Spec.Traffic.Client = &v1alpha1.TestEnd{}
			return t.Spec.Traffic.Client
		}))
}

// endRules returns a case for each CEL rule about one end of a test.
func endRules(field string, made func(func(*latencyTest)) func(*latencyTest), end func(*latencyTest) *v1alpha1.TestEnd) []latencyTestRule {
	with := func(value v1alpha1.TestEnd) func(*latencyTest) {
		return made(func(t *latencyTest) { *end(t) = value })
	}
	return []latencyTestRule{
		{
			field: field, message: "an address needs bypassNICPool, whose network attachment takes it.",
			accepted: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.1/24"}), rejected: with(v1alpha1.TestEnd{Address: "192.0.2.1/24"}),
		},
		{
			field: field + ".address", message: "an address is one of IPv4 with the length of its prefix, such as 192.0.2.31/24.",
			accepted: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "255.255.255.255/32"}),
			rejected: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.256/24"}),
		},
		{
			field: field + ".address", message: "an address is one of IPv4 with the length of its prefix, such as 192.0.2.31/24.",
			accepted: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "0.10.100.9/0"}), rejected: with(v1alpha1.TestEnd{BypassNICPool: "x2", Address: "192.0.2.02/24"}),
		},
		{
			field: field, message: "sockets needs bypassNICPool: without a pool there is no stack, and all sockets are the kernel's.",
			accepted: with(v1alpha1.TestEnd{BypassNICPool: "x2", Sockets: v1alpha1.TestSocketsKernel}),
			rejected: with(v1alpha1.TestEnd{Sockets: v1alpha1.TestSocketsKernel}),
		},
	}
}

func labelled(labels v1alpha1.Labels) func(*latencyTest) {
	return func(t *latencyTest) {
		t.Spec.Nodes = v1alpha1.LatencyTestNodes{NodeSelector: &v1alpha1.NodeSelector{MatchLabels: labels}}
	}
}

func describeLatencyTestRules(admin func() client.Client) {
	for _, r := range latencyTestRules() {
		It("accepts and rejects at "+r.field+": "+r.message, func(ctx SpecContext) {
			accepted := newLatencyTest()
			r.accepted(accepted)
			Expect(admin().Create(ctx, accepted, client.DryRunAll)).To(Succeed())
			Expect(has(accepted, r.field)).To(BeTrue(), "the accepted object has no value at "+r.field)

			rejected := newLatencyTest()
			r.rejected(rejected)
			expectObjection(admin().Create(ctx, rejected, client.DryRunAll), place{r.field, r.message})
		})
	}
}
