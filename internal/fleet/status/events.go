// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package status

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
)

// Announcements are the events about the conditions of a profile or pool that have changed.
func Announcements(before, after []metav1.Condition) []fleet.Announcement {
	var all []fleet.Announcement
	for i := range after {
		if about, worth := announcement(meta.FindStatusCondition(before, after[i].Type), &after[i]); worth {
			all = append(all, about)
		}
	}
	return all
}

// announcement decides which transitions of a profile or pool are worth an event: that all nodes became
// verified, that something broke, broke in another way or was mended, that a rollout began. Progressing stays
// True from the wait for an inventory to the rollout, so a new reason counts as a transition.
func announcement(before, after *metav1.Condition) (fleet.Announcement, bool) {
	if isKeeping(after) {
		return fleet.Announce(corev1.EventTypeWarning, after.Reason, after.Message), before == nil || !isKeeping(before)
	}
	if after.Status != metav1.ConditionTrue {
		mended := after.Type == v1alpha1.ConditionDegraded && before != nil && before.Status == metav1.ConditionTrue
		return fleet.Announce(corev1.EventTypeNormal, "Recovered", after.Message), mended
	}
	if before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return fleet.Announcement{}, false
	}
	kind, worth := map[string]string{
		v1alpha1.ConditionReady:       corev1.EventTypeNormal,
		v1alpha1.ConditionProgressing: corev1.EventTypeNormal,
		v1alpha1.ConditionDegraded:    corev1.EventTypeWarning,
	}[after.Type]
	return fleet.Announce(kind, after.Reason, after.Message), worth
}

// isKeeping reports whether a pool that has what others claim tells of them, or a profile of such pools.
func isKeeping(c *metav1.Condition) bool {
	return c.Type == v1alpha1.ConditionDegraded && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonNICClaimConflict
}

// HostDiffers is the reason of the event about a host that others have changed.
const HostDiffers = "HostDiffers"

// DifferenceAnnouncements tell of the differences in a report of a guard that the one before does not have: what others have changed of
// what the guard has written, and on a host that is given back all that is not as it was before.
func DifferenceAnnouncements(before, after *v1alpha1.NodeEnactment) []fleet.Announcement {
	if after == nil {
		return nil
	}
	isNew := func(difference string) bool { return before == nil || !slices.Contains(before.Differences, difference) }
	var found []string
	for _, difference := range after.Differences {
		if isNew(difference) {
			found = append(found, difference)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []fleet.Announcement{fleet.Announce(corev1.EventTypeWarning, HostDiffers, strings.Join(found, "; "))}
}

// DriftAnnouncements compares what two reports of a node count: checks that failed after they had passed, files that
// were put back, and files that are newly given up.
func DriftAnnouncements(before, after []v1alpha1.CheckDrift) []fleet.Announcement {
	known := make(map[v1alpha1.CheckID]v1alpha1.CheckDrift, len(before))
	for _, drift := range before {
		known[drift.Check] = drift
	}
	var all []fleet.Announcement
	for _, drift := range after {
		earlier := known[drift.Check]
		if drift.Drifted > earlier.Drifted {
			all = append(all, fleet.Announce(corev1.EventTypeWarning, "Drifted", string(drift.Check)+": "+drift.Message))
		}
		if files := drift.Repaired - earlier.Repaired; files > 0 {
			all = append(all, fleet.Announce(corev1.EventTypeNormal, "Repaired",
				fmt.Sprintf("%s: the agent put back %d of its files, after: %s", drift.Check, files, drift.Message)))
		}
		if len(drift.Unrepaired) > 0 && len(earlier.Unrepaired) == 0 {
			all = append(all, fleet.Announce(corev1.EventTypeWarning, "Unrepaired",
				string(drift.Check)+": "+strings.Join(drift.Unrepaired, "; ")))
		}
	}
	return all
}
