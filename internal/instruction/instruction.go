// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package instruction holds what the operator tells the guard of a host, signed, and what the guard reports. An instruction is
// for one node, has a number that grows, and carries its operations whole: the guard needs no API server to act on it. It is pure.
package instruction

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// Action says what the guard is to do.
type Action string

const (
	// Enact has the host become what the operations say.
	Enact Action = "Enact"
	// Remove has the host become what it was before all plans. The guard goes last.
	Remove Action = "Remove"
)

// Reboot says whether the guard may reboot the host for an instruction.
type Reboot string

const (
	// RebootAllowed has the guard reboot the host where the operations need it, and again where a trial is taken back.
	RebootAllowed Reboot = "Allowed"
	// RebootForbidden has the guard refuse operations that need a reboot, before it writes anything.
	RebootForbidden Reboot = "Forbidden"
)

// Attempt says whether operations that were taken back on this host may be tried again.
type Attempt string

const (
	// FirstAttempt refuses operations that were taken back before.
	FirstAttempt Attempt = "First"
	// FurtherAttempt has them tried again.
	FurtherAttempt Attempt = "Further"
)

// ExitNotHandedOver is the exit code of the program that hands an instruction over where it has not got to the guard: nobody acts on it once it is
// withdrawn.
const ExitNotHandedOver = 3

// Instruction is what the guard of one node is to do.
type Instruction struct {
	// Node is the name of the node, for people, and NodeUID the UID of its object: another node of the same name is another.
	Node    string `json:"node"`
	NodeUID string `json:"nodeUID"`
	// PlanHash is the hash of the plan that the operations spell; empty for Remove.
	PlanHash string `json:"planHash,omitempty"`
	// Number grows with each instruction for a node, and is positive.
	Number  int64   `json:"number"`
	Action  Action  `json:"action"`
	Reboot  Reboot  `json:"reboot"`
	Attempt Attempt `json:"attempt"`
	// DeadlineSeconds is how long after the start of the host a trial that was not verified is taken back: 60 to 3600.
	DeadlineSeconds int `json:"deadlineSeconds"`
	// Operations of the plan; none for Remove.
	Operations []operation.Operation `json:"operations,omitempty"`
	// Plan is the plan as JSON, against which the host verifies itself; without one, the operations alone are verified.
	Plan json.RawMessage `json:"plan,omitempty"`
}

const (
	// minimumDeadline: no host starts and verifies itself in less.
	minimumDeadline = 60
	maximumDeadline = 3600
	// maximumName is that of an object of Kubernetes, maximumUID more than any API server gives.
	maximumName = 253
	maximumUID  = 64
)

// The spellings of what becomes a line of a report.
var (
	nodeName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	nodeUID  = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	planHash = regexp.MustCompile(`^[0-9a-f]{8,64}$`)
)

// validate refuses what no guard can carry out, whoever has signed it.
func (i *Instruction) validate() error {
	checks := []struct {
		bad bool
		say string
	}{
		{len(i.Node) > maximumName || !nodeName.MatchString(i.Node), fmt.Sprintf("%q is not the name of a node", i.Node)},
		{len(i.NodeUID) > maximumUID || !nodeUID.MatchString(i.NodeUID), fmt.Sprintf("%q is not the UID of a node", i.NodeUID)},
		{i.Number < 1, fmt.Sprintf("the number is %d and must be positive", i.Number)},
		{!slices.Contains([]Action{Enact, Remove}, i.Action), fmt.Sprintf("there is no action %q: Enact or Remove", i.Action)},
		{
			!slices.Contains([]Reboot{RebootAllowed, RebootForbidden}, i.Reboot),
			fmt.Sprintf("reboot is %q and must be Allowed or Forbidden", i.Reboot),
		},
		{
			!slices.Contains([]Attempt{FirstAttempt, FurtherAttempt}, i.Attempt),
			fmt.Sprintf("attempt is %q and must be First or Further", i.Attempt),
		},
		{
			i.DeadlineSeconds < minimumDeadline || i.DeadlineSeconds > maximumDeadline,
			fmt.Sprintf("the deadline is %d seconds and must be %d to %d", i.DeadlineSeconds, minimumDeadline, maximumDeadline),
		},
	}
	for _, check := range checks {
		if check.bad {
			return errors.New(check.say)
		}
	}
	return i.validateOperations()
}

func (i *Instruction) validateOperations() error {
	if i.Action == Remove {
		if len(i.Operations) > 0 || len(i.Plan) > 0 || i.PlanHash != "" {
			return errors.New("an instruction to remove has operations or a plan, and must have none")
		}
		return nil
	}
	if len(i.Operations) == 0 {
		return errors.New("an instruction to enact has no operations: the action Remove brings a host back")
	}
	if !planHash.MatchString(i.PlanHash) {
		return fmt.Errorf("%q is not the hash of a plan", i.PlanHash)
	}
	return operation.Validate(i.Operations)
}
