// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package qualification

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Hash tells measurements with different parameters apart. Results of earlier versions of the operator carry it, so fields are printed one by one, and
// one that came later only where it is set: a hash that becomes another measures every node again.
func (p Parameters) Hash() string {
	text := fmt.Sprintf("%s %s %d %d %s", p.Kind, p.Duration, p.Repetitions, p.CPUs, p.Threshold)
	if p.Traffic != nil {
		text += fmt.Sprintf(" %v %s", p.Sizes, p.Traffic.hashed())
	}
	if p.HasOtherMessages() {
		text += fmt.Sprintf(" Messages:%d", p.Messages)
	}
	if len(p.Rates) > 0 {
		text += fmt.Sprintf(" %v %d", p.Rates, p.Answers)
	}
	if p.Load != nil {
		text += " " + p.Load.hashed()
	}
	if p.Kind == v1alpha1.LatencyTestStackComparison && p.Comparison != nil {
		text += " " + p.Comparison.hashed()
	}
	return hashOf(text)
}

// hashed is what a hash is made of.
func (t *Traffic) hashed() string {
	text := fmt.Sprintf("{Transport:%s Waiting:%s Server:{Placement:%s NodeNames:%v TestEnd:%s} Client:%s",
		t.Transport, t.Waiting, t.Server.Placement, t.Server.NodeNames, hashedEnd(&t.Server.TestEnd), hashedEnd(&t.Client))
	if t.Group != "" {
		text += " Group:" + t.Group
	}
	return text + "}"
}

func hashedEnd(e *v1alpha1.TestEnd) string {
	text := fmt.Sprintf("{BypassNICPool:%s Address:%s", e.BypassNICPool, e.Address)
	if e.Sockets != "" {
		text += fmt.Sprintf(" Sockets:%s", e.Sockets)
	}
	return text + "}"
}

// hashed is what a hash is made of. The sides of a pod and its host follow from the traffic, which is hashed before.
func (c *Comparison) hashed() string {
	sides := make([]string, 0, len(c.Sides))
	for i := range c.Sides {
		side := &c.Sides[i]
		text := fmt.Sprintf("{Name:%s Path:%s IsOnHost:%t Client:%s Server:%s", side.Name, side.Path, side.IsOnHost, hashedEnd(&side.Client), hashedEnd(&side.Server))
		if side.IsServerOnHost {
			text += " IsServerOnHost:true"
		}
		sides = append(sides, text+"}")
	}
	return fmt.Sprintf("{Base:%s Sides:%s}", c.Base, strings.Join(sides, " "))
}

// hashed is what a hash is made of.
func (l *Load) hashed() string {
	bounds := make([]string, 0, len(l.Percentiles))
	for _, p := range l.Percentiles {
		bounds = append(bounds, fmt.Sprintf("{Percentile:%s Nanoseconds:%d}", p.Percentile, p.Nanoseconds))
	}
	return fmt.Sprintf("{Lowest:%d First:%d Highest:%d GranularityPartsPerThousand:%d LossPartsPerMillion:%d Percentiles:[%s] GrowthPercentile:%s GrowthPercent:%d "+
		"ProbesPerSecond:%d Sniff:%s Trial:%s Confirm:%s Retries:%d}", l.Lowest, l.First, l.Highest, l.GranularityPartsPerThousand, l.LossPartsPerMillion,
		strings.Join(bounds, " "), l.GrowthPercentile, l.GrowthPercent, l.ProbesPerSecond, l.Sniff, l.Trial, l.Confirm, l.Retries)
}

// hashOf is short, and the same on every machine.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}
