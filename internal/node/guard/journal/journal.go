// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package journal holds how the guard writes down what it is about to change on a host, before it does: one line for each
// record, each with a checksum. A last line that a power cut has left unfinished is none.
package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"

	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// Stage is how far a change of the host is. A change begins without any.
type Stage string

const (
	// Written tells that the host runs as it is to run, without another kernel, and that this is to be verified.
	Written Stage = "Written"
	// Armed tells that the boot loader is told, now, to start the trial once.
	Armed Stage = "Armed"
	// Verified tells that the kernel and the host were found as planned.
	Verified Stage = "Verified"
	// InForce tells that the change is complete, and the next boot is as this one.
	InForce Stage = "InForce"
	// Reverting tells that what was changed is being put back.
	Reverting Stage = "Reverting"
	// Reverted tells that everything is as before, except for what others have changed since.
	Reverted Stage = "Reverted"
)

// Record is one line. Exactly one of its fields is set.
type Record struct {
	Begin  *Begin   `json:"begin,omitempty"`
	Change *Change  `json:"change,omitempty"`
	Stage  *Reached `json:"stage,omitempty"`
}

// Format is that of journals and of everything else that the guard writes down for itself. It grows whenever a guard before would
// take for something else what this one writes, and stands then as "format" in the first record of a journal, and in the other files;
// those without have format 1. A guard reads what has its own format or a lower one.
const Format = 1

// Begin says what the host is to become.
type Begin struct {
	// Number grows with each change of a host.
	Number int `json:"number"`
	// Hash of the operations; that of none when the host is to be as it was before all plans.
	Hash string `json:"hash"`
	// Operations, in the order in which they are carried out.
	Operations []operation.Operation `json:"operations,omitempty"`
	// Plan is the plan that the operations spell, for the verification; empty when there is none.
	Plan json.RawMessage `json:"plan,omitempty"`
	// BootID of the running kernel, as /proc/sys/kernel/random/boot_id says it.
	BootID string `json:"bootID"`
	// DeadlineSeconds is how long after its start a trial that was not verified is taken back.
	DeadlineSeconds int `json:"deadlineSeconds"`
	// Instruction that the operations come from; nil when somebody has applied them by hand.
	Instruction *Instruction `json:"instruction,omitempty"`
	// Kubelet is how the kubelet was before; nil where there is none, and where the change is none of its business.
	Kubelet *Kubelet `json:"kubelet,omitempty"`
	// Differences are what others had changed of what was in force, where the host is to be as it was before all plans: it stays as they
	// have made it.
	Differences []string `json:"differences,omitempty"`
}

// Kubelet is how the kubelet of a host was before a change.
type Kubelet struct {
	// Unit is the service that runs it.
	Unit string `json:"unit"`
	// Problem is what was wrong with it already; empty for one that was healthy, and has to be afterwards.
	Problem string `json:"problem,omitempty"`
	// Restarts tells that the change starts it again, without a reboot.
	Restarts bool `json:"restarts,omitempty"`
	// Again are units that it needs and that run once more for the change, without a reboot, while it is stopped.
	Again []string `json:"again,omitempty"`
}

// Instruction is what a report says of the instruction that a change comes from.
type Instruction struct {
	Number   int64  `json:"number"`
	PlanHash string `json:"planHash,omitempty"`
}

// Change says what was at a path and what comes there, before it comes.
type Change struct {
	Path string `json:"path"`
	// Role says who else may change the file.
	Role Role `json:"role,omitempty"`
	// BootID of the kernel that had the value before; for live values only.
	BootID string         `json:"bootID,omitempty"`
	Before hostfile.State `json:"before"`
	After  hostfile.State `json:"after"`
}

// Role says who else changes a file, and so what a content means that is neither the one before nor the one after.
type Role string

const (
	// Ours are files that nobody else changes: who did is to be told, and what he wrote stays. It is the zero value.
	Ours Role = ""
	// Environment is the boot loader's own memory, which it changes at each boot.
	Environment Role = "Environment"
	// Derived files are made by a tool from others, and made again whenever a kernel is installed.
	Derived Role = "Derived"
	// Trial are files of the boot loader that go when the trial ends, whichever way.
	Trial Role = "Trial"
	// Live are files of the running kernel: their values end with it.
	Live Role = "Live"
)

// Reached says how far the change is.
type Reached struct {
	Stage Stage `json:"stage"`
	// BootID of the kernel that ran then.
	BootID string `json:"bootID"`
	// Cause and Reason say why a change is taken back: for programs, and for people.
	Cause  instruction.Reason `json:"cause,omitempty"`
	Reason string             `json:"reason,omitempty"`
	// Differences are what others have changed, and what was left as they did. Where a host is given back, they are all that is not as it
	// was before all plans.
	Differences []string `json:"differences,omitempty"`
	// Kubelet is what was found of one that was started again with what was there before; empty while nobody knows.
	Kubelet Restored `json:"kubelet,omitempty"`
	// KubeletProblem is what is wrong with it.
	KubeletProblem string `json:"kubeletProblem,omitempty"`
}

// Restored is what was found of a kubelet that was started again with what was there before.
type Restored string

const (
	// RestoredHealthy tells that it was proven healthy once more.
	RestoredHealthy Restored = "Healthy"
	// RestoredBroken tells that it is not healthy any more.
	RestoredBroken Restored = "Broken"
)

// checksumDigits are those of the checksum in front of each line, with the space behind them.
const checksumDigits = 9

// Encode writes a record as one line.
func Encode(record Record) ([]byte, error) {
	text, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("writing a record of the journal: %w", err)
	}
	return fmt.Appendf(nil, "%08x %s\n", checksum(text), text), nil
}

func checksum(text []byte) uint32 { return crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)) }

// errDamaged tells of a journal that no power cut can have left.
var errDamaged = errors.New("the journal is damaged")

// Decode reads a journal, and returns how many of its bytes are whole records. What follows them was being written when the
// power was cut. A line that is wrong in front of whole ones is no such thing, and an error.
func Decode(content []byte) (records []Record, whole int, err error) {
	for whole < len(content) {
		length := bytes.IndexByte(content[whole:], '\n')
		if length < 0 {
			return records, whole, nil
		}
		record, problem := decodeLine(content[whole : whole+length])
		isLast := bytes.IndexByte(content[whole+length+1:], '\n') < 0
		if problem != "" && !isLast {
			return nil, 0, fmt.Errorf("%w at byte %d: %s", errDamaged, whole, problem)
		}
		if problem != "" {
			break
		}
		records, whole = append(records, record), whole+length+1
	}
	return records, whole, nil
}

// decodeLine returns a record, or what is wrong with the line.
func decodeLine(line []byte) (record Record, problem string) {
	if len(line) < checksumDigits || line[checksumDigits-1] != ' ' {
		return record, "the line has no checksum"
	}
	sum, err := strconv.ParseUint(string(line[:checksumDigits-1]), 16, 32)
	if err != nil {
		return record, "its checksum is no number"
	}
	text := line[checksumDigits:]
	if uint32(sum) != checksum(text) {
		return record, "its checksum is wrong"
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return record, err.Error()
	}
	return record, ""
}

// FormatError tells of what another guard has written that this one would take for something else.
type FormatError struct {
	// Path of the file, and the Format that it has.
	Path   string
	Format int
}

// Error says who can read it.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s was written by a newer guard, in format %d, and this one reads up to format %d: nothing is changed on this host until the newer "+
		"guard, or one after it, is on it again, with the operator that has brought it", e.Path, e.Format, Format)
}

// CheckFormat refuses a file of a newer guard. Of a journal, the first line tells; of other files, the object that they hold.
func CheckFormat(path string, content []byte) error {
	var written struct {
		Format int `json:"format"`
		Begin  struct {
			Format int `json:"format"`
		} `json:"begin"`
	}
	line, _, _ := bytes.Cut(content, []byte("\n"))
	if len(line) >= checksumDigits && line[checksumDigits-1] == ' ' {
		line = line[checksumDigits:]
	}
	// What is not even JSON is judged by who reads it.
	if json.Unmarshal(line, &written) != nil {
		return nil //nolint:nilerr // It is no statement about a format.
	}
	if format := max(written.Format, written.Begin.Format); format > Format {
		return &FormatError{Path: path, Format: format}
	}
	return nil
}
