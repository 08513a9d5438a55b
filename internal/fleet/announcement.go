// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import "github.com/lowlatency-dev/lowlatency-operator/internal/shorten"

// MaximumNote is the limit of the events API for a note.
const MaximumNote = 1024

// Announcement is an event about something that has become another.
type Announcement struct {
	// Kind is corev1.EventTypeNormal or corev1.EventTypeWarning.
	Kind   string
	Reason string
	// Message is at most MaximumNote bytes long.
	Message string
}

// Announce makes an announcement of a message of any length.
func Announce(kind, reason, message string) Announcement {
	return Announcement{Kind: kind, Reason: reason, Message: shorten.Sentence(message, MaximumNote)}
}
