// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/dradriver"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
)

// draDriverFlags are those of the device plugin, and what only the DRA driver needs.
type draDriverFlags struct {
	devicePluginFlags

	pool  string
	drain bool
}

func newDRADriverCommand() *cobra.Command {
	flags := &draDriverFlags{}
	command := &cobra.Command{
		Use:   "dra-driver",
		Short: "Hand the NICs of a BypassNICPool to pods of this node by Dynamic Resource Allocation",
		Long: "Hand the NICs of a BypassNICPool to pods of this node by Dynamic Resource Allocation, in place of the device\n" +
			"plugin. It publishes ResourceSlices of its node, and prepares ResourceClaims for the kubelet. It reads the pool\n" +
			"from a file and the host below a folder, and needs no capability.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runDRADriver(command.Context(), flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *draDriverFlags) register(flags *pflag.FlagSet) {
	f.devicePluginFlags.register(flags)
	flags.StringVar(&f.pool, "pool", "", "The name of the BypassNICPool.")
	flags.BoolVar(&f.drain, "drain", false,
		"Publish no NIC any more; prepare and give back the claims that the scheduler has allocated.")
}

// driver returns the driver that the flags describe, without its client.
func (f *draDriverFlags) driver() (*dradriver.Driver, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	if f.pool == "" {
		return nil, errors.New("no pool is given: set --pool to the name of the BypassNICPool")
	}
	addresses, err := f.Addresses()
	if err != nil {
		return nil, err
	}
	source := &deviceplugin.Source{PoolFile: f.poolFile, Root: f.Root, NodeName: f.NodeName, HostAddresses: addresses}
	return &dradriver.Driver{
		Pool: f.pool, NodeName: f.NodeName, Evaluate: source.Evaluate,
		Containers:    containersOf(f.Root),
		PoolFile:      f.poolFile,
		KubeletFolder: f.kubeletFolder, CDIFolder: f.cdiFolder, Interval: f.interval, Draining: f.drain,
		Log: ctrl.Log.WithName("dra-driver").WithValues("node", f.NodeName),
	}, nil
}

// runDRADriver runs until the context ends.
func runDRADriver(ctx context.Context, flags *draDriverFlags) error {
	driver, err := flags.driver()
	if err != nil {
		return err
	}
	if err := process.RefuseWritableHost(flags.Root); err != nil {
		return err
	}
	process.SetLogger(flags.verbose)
	// The libraries of Kubernetes log to klog where they have no other logger.
	klog.SetLogger(ctrl.Log.WithName("kubernetes"))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	if driver.Client, err = kubernetes.NewForConfig(config); err != nil {
		return fmt.Errorf("connecting to the API server: %w", err)
	}
	return driver.Run(ctx)
}
