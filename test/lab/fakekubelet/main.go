// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command fakekubelet stands for the kubelet on a machine of the lab: it lets device plugins register, waits until
// a resource has a number of units of a health, gives a container some of them, and prints what it saw as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/testing/fakekubelet"
)

// wish is what to wait for and what to give away.
type wish struct {
	folder, resource string
	healthy, admit   int
	limit            time.Duration
}

// seen is what is printed.
type seen struct {
	Devices []*deviceplugin.Device
	// Admitted are the units that the container got, with what the plugin answered.
	Admitted []string
	Answer   *deviceplugin.ContainerAllocateResponse
}

func main() {
	var w wish
	flag.StringVar(&w.folder, "folder", "/var/lib/kubelet", "the kubelet's folder")
	flag.StringVar(&w.resource, "resource", "", "the resource to wait for")
	flag.IntVar(&w.healthy, "healthy", 0, "the number of healthy units to wait for")
	flag.IntVar(&w.admit, "admit", 0, "the number of units for the container")
	flag.DurationVar(&w.limit, "limit", 2*time.Minute, "how long to wait")
	flag.Parse()
	if err := run(w); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "fakekubelet:", err)
		os.Exit(1)
	}
}

func run(w wish) error {
	ctx, cancel := context.WithTimeout(context.Background(), w.limit)
	defer cancel()
	kubelet := fakekubelet.New(w.folder)
	if err := kubelet.Start(); err != nil {
		return err
	}
	defer kubelet.Stop()
	err := kubelet.Wait(ctx, func() bool {
		return kubelet.Lists(w.resource) > 0 && len(kubelet.Allocatable(w.resource)) == w.healthy
	})
	result := seen{Devices: kubelet.Devices(w.resource)}
	if err == nil && w.admit > 0 {
		holder := fakekubelet.Container{Namespace: "default", Pod: "trader", Name: "main"}
		result.Admitted, result.Answer, err = kubelet.Admit(ctx, holder, w.resource, w.admit)
	}
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(result))
}
