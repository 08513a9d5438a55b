// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/verify"
)

// openedRoot is a host that stays open between passes: on older kernels, the first reading of a host that was just
// opened interrupts every CPU (see host.Open).
type openedRoot struct {
	host *host.Host
	// found is the root as it was when it was opened.
	found os.FileInfo
}

// open returns the host at the path. It is opened anew when something else has taken its place.
func (r *openedRoot) open(path string) (*host.Host, error) {
	found, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("opening host: %w", err)
	}
	if r.host != nil && os.SameFile(r.found, found) && r.found.ModTime().Equal(found.ModTime()) {
		return r.host, nil
	}
	if err := r.close(); err != nil {
		return nil, err
	}
	opened, err := host.Open(path)
	if err != nil {
		return nil, err
	}
	r.host, r.found = opened, found
	return opened, nil
}

// close closes the host if it is open.
func (r *openedRoot) close() error {
	if r.host == nil {
		return nil
	}
	opened := r.host
	r.host = nil
	return opened.Close()
}

// read reads what every pass looks at, and what the plan and the pools ask for. After an error the host is opened
// anew.
func (a *Agent) read(ctx context.Context) (*host.Facts, error) {
	opened, err := a.root.open(a.Root)
	if err != nil {
		return nil, err
	}
	request := host.Request{Settings: []string{bootIDPath}, UserSpaces: a.userSpaces(), Software: true}
	if a.plan.plan != nil {
		planned := verify.Requests(a.plan.plan)
		request.Settings = append(request.Settings, planned.Settings...)
		request.Tasks, request.Units = planned.Tasks, planned.Units
	}
	facts, err := opened.ReadWith(ctx, request)
	if err != nil {
		return nil, errors.Join(err, a.root.close())
	}
	return facts, nil
}
