// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/metrics"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
)

// scrape writes the operator's metrics at the end of an act, as Prometheus would read them, into a folder; none when that is empty.
func (s *stage) scrape(folder string, act int) error {
	if folder == "" {
		return nil
	}
	elected := make(chan struct{})
	close(elected)
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics.New(s.client, cluster.Namespace, controllers.DefaultAgentNamespace, clock.RealClock{}, elected)); err != nil {
		return fmt.Errorf("collecting the metrics: %w", err)
	}
	if err := prometheus.WriteToTextfile(filepath.Join(folder, fmt.Sprintf("act-%d.prom", act)), registry); err != nil {
		return fmt.Errorf("writing the metrics: %w", err)
	}
	return nil
}
