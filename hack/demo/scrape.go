// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"

	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/metrics"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
	"github.com/lowlatency-dev/lowlatency-operator/internal/version"
)

// scrape writes the operator's metrics at the end of an act, as Prometheus would read them, into a folder; none when that is empty.
func (s *stage) scrape(folder string, act int) error {
	if folder == "" {
		return nil
	}
	registry, err := s.registry()
	if err != nil {
		return err
	}
	if err := prometheus.WriteToTextfile(filepath.Join(folder, fmt.Sprintf("act-%d.prom", act)), registry); err != nil {
		return fmt.Errorf("writing the metrics: %w", err)
	}
	return nil
}

// registry has the metrics of an operator that leads.
func (s *stage) registry() (*prometheus.Registry, error) {
	elected := make(chan struct{})
	close(elected)
	registry := prometheus.NewRegistry()
	if err := registry.Register(metrics.New(s.client, version.Of("").Version, cluster.Namespace, controllers.DefaultAgentNamespace, clock.RealClock{}, elected)); err != nil {
		return nil, fmt.Errorf("collecting the metrics: %w", err)
	}
	return registry, nil
}

// serveMetrics lets Prometheus read the operator's metrics at an address until the context ends; at none when that is empty.
func (s *stage) serveMetrics(ctx context.Context, address string) error {
	if address == "" {
		return nil
	}
	registry, err := s.registry()
	if err != nil {
		return err
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serving the metrics: %w", err)
	}
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), ReadHeaderTimeout: time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return nil
}
