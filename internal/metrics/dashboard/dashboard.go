// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package dashboard reads the dashboard of config/dashboard, for the tests that hold its queries against the metrics and against
// Prometheus.
package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Panel is a panel as Grafana and the console of OpenShift read it.
type Panel struct {
	ID      int      `json:"id"`
	Type    string   `json:"type"`
	Title   string   `json:"title"`
	Targets []Target `json:"targets"`
}

// Target is a query of a panel, and the legend of what it returns.
type Target struct {
	Expr         string `json:"expr"`
	LegendFormat string `json:"legendFormat"`
}

// Read returns the panels of the dashboard, from left to right and from the top, of the repository at a path.
func Read(repository string) ([]Panel, error) {
	file := filepath.Join(repository, "config", "dashboard", "lowlatency.json")
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the dashboard: %w", err)
	}
	var board struct {
		Rows []struct {
			Panels []Panel `json:"panels"`
		} `json:"rows"`
	}
	if err := json.Unmarshal(text, &board); err != nil {
		return nil, fmt.Errorf("reading the dashboard %s: %w", file, err)
	}
	var panels []Panel
	for _, row := range board.Rows {
		panels = append(panels, row.Panels...)
	}
	if len(panels) == 0 {
		return nil, errors.New("the dashboard " + file + " has no panel")
	}
	return panels, nil
}
