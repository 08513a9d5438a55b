// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"
)

// auditLog is what the API server has recorded of the manager's requests.
type auditLog struct {
	path   string
	offset int64
	all    []request
}

// request is one of the manager's that the API server has answered.
type request struct {
	at time.Time
	// verb is that of Kubernetes, such as patch; resource has the subresource after a slash.
	verb, resource, name string
	code                 int
}

// writes reports whether the request changes something. The manager's own election is no work.
func (r *request) writes() bool {
	return r.verb != "get" && r.verb != "list" && r.verb != "watch" && !r.isElection()
}

func (r *request) isElection() bool {
	return r.resource == "leases" && strings.HasSuffix(r.name, ".lowlatency.dev")
}

func (r *request) isEvent() bool { return r.resource == "events" }

// carriesPlan reports whether the request is for an object by which the platform brings a plan to nodes.
func (r *request) carriesPlan() bool {
	return r.resource == "machineconfigs" || r.resource == "kubeletconfigs"
}

// isAboutNode reports whether there may be such a request for each node.
func (r *request) isAboutNode() bool {
	switch r.resource {
	case "nodes", "nodes/status", "lowlatencynodes", "leases":
		return true
	default:
		return r.isEvent()
	}
}

// recorded is the part of an audit event that counts.
type recorded struct {
	Verb      string `json:"verb"`
	ObjectRef struct {
		Resource, Subresource, Name string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	StageTimestamp time.Time `json:"stageTimestamp"`
}

// requests are all so far.
func (l *auditLog) requests() (all []request, err error) {
	file, err := os.Open(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("reading the audit log: %w", err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return l.all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		l.offset += int64(len(line))
		if err := l.add(line); err != nil {
			return nil, err
		}
	}
}

func (l *auditLog) add(line []byte) error {
	var event recorded
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	one := request{
		at: event.StageTimestamp, verb: event.Verb, resource: event.ObjectRef.Resource, name: event.ObjectRef.Name, code: event.ResponseStatus.Code,
	}
	if event.ObjectRef.Subresource != "" {
		one.resource += "/" + event.ObjectRef.Subresource
	}
	if one.verb != "watch" {
		l.all = append(l.all, one)
	}
	return nil
}

// since are the requests from a time on.
func (l *auditLog) since(begin time.Time) ([]request, error) {
	all, err := l.requests()
	if err != nil {
		return nil, err
	}
	for i := range all {
		if !all[i].at.Before(begin) {
			return all[i:], nil
		}
	}
	return nil, nil
}

// count counts the requests for which the question is answered with yes.
func count(requests []request, is func(*request) bool) int {
	n := 0
	for i := range requests {
		if is(&requests[i]) {
			n++
		}
	}
	return n
}
