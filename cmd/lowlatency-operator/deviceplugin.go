// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/lowlatency-dev/lowlatency-operator/internal/allocation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/afxdp"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/deviceplugin"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/podresources"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/process"
)

// devicePluginFlags say which pool the device plugin serves, and where it finds the host, the kubelet and the
// container runtime.
type devicePluginFlags struct {
	process.NodeFlags

	poolFile      string
	kubeletFolder string
	cdiFolder     string
	socketsFolder string
	pinsFolder    string
	interval      time.Duration
	verbose       bool
}

func newDevicePluginCommand() *cobra.Command {
	flags := &devicePluginFlags{}
	command := &cobra.Command{
		Use:   "device-plugin",
		Short: "Hand the NICs of a BypassNICPool to the kubelet of this node",
		Long: "Hand the NICs of a BypassNICPool to the kubelet of this node, as a device plugin. It needs no access to the\n" +
			"API server: it reads the pool from a file and the host below a folder, and writes its socket in the\n" +
			"kubelet's folder and a specification in the folder of CDI. It needs no capability, but for stack AFXDP:\n" +
			"to attach XDP programs and make sockets, CAP_BPF, CAP_NET_ADMIN, CAP_NET_RAW and CAP_IPC_LOCK.",
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return runDevicePlugin(command.Context(), flags)
		},
	}
	flags.register(command.Flags())
	return command
}

func (f *devicePluginFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.poolFile, "pool-file", "", "The file that holds the pool as JSON, from the pool's ConfigMap.")
	f.Register(flags)
	f.RegisterAddresses(flags)
	flags.StringVar(&f.kubeletFolder, "kubelet-dir", deviceplugin.DefaultKubeletFolder, "The folder of the kubelet.")
	flags.StringVar(&f.cdiFolder, "cdi-dir", deviceplugin.DefaultCDIFolder,
		"The folder in which the container runtime looks for CDI specifications.")
	flags.StringVar(&f.socketsFolder, "afxdp-dir", afxdp.DefaultFolder,
		"The folder of the sockets by which containers get AF_XDP sockets. It must be the same path on the node.")
	flags.StringVar(&f.pinsFolder, "afxdp-bpf-dir", afxdp.DefaultPins,
		"The folder of the BPF file system in which XDP programs and maps are kept.")
	flags.DurationVar(&f.interval, "interval", deviceplugin.DefaultInterval, "The time between two looks at the host.")
	flags.BoolVar(&f.verbose, "verbose", false, "Log details, too.")
}

func (f *devicePluginFlags) check() error {
	switch {
	case f.poolFile == "":
		return errors.New("no pool is given: set --pool-file to the file with the pool")
	case f.interval <= 0:
		return fmt.Errorf("--interval %s is not positive", f.interval)
	default:
		return f.Check()
	}
}

// plugin returns the plugin that the flags describe.
func (f *devicePluginFlags) plugin() (*deviceplugin.Plugin, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	addresses, err := f.Addresses()
	if err != nil {
		return nil, err
	}
	source := &deviceplugin.Source{
		PoolFile: f.poolFile, Root: f.Root, NodeName: f.NodeName, HostAddresses: addresses,
		Containers: containersOf(f.Root),
	}
	log := ctrl.Log.WithName("device-plugin").WithValues("node", f.NodeName)
	return &deviceplugin.Plugin{
		Evaluate: source.Evaluate, Handover: &afxdp.Manager{Pins: f.pinsFolder, Folder: f.socketsFolder, Log: log}, PoolFile: f.poolFile, KubeletFolder: f.kubeletFolder, CDIFolder: f.cdiFolder,
		Interval: f.interval, Log: log,
	}, nil
}

// containersOf asks the kubelet of the host below a root who holds what.
func containersOf(root string) func(context.Context) host.Fact[[]allocation.Container] {
	socket := filepath.Join(root, podresources.Socket)
	return func(ctx context.Context) host.Fact[[]allocation.Container] { return podresources.List(ctx, socket) }
}

// runDevicePlugin runs until the context ends.
func runDevicePlugin(ctx context.Context, flags *devicePluginFlags) error {
	plugin, err := flags.plugin()
	if err != nil {
		return err
	}
	if err := process.RefuseWritableHost(flags.Root); err != nil {
		return err
	}
	process.SetLogger(flags.verbose)
	return plugin.Run(ctx)
}
