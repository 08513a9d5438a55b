// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Kubelet stands in for the kubelet of a machine of the lab: a device plugin registers with it, and what the plugin lists and
// what it answers for each healthy device is in a file that is replaced with every change.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/fakekubelet"
)

// said is what is in the file: the devices with their health, and the answer for each healthy one.
type said struct {
	Health  map[string]string
	Answers map[string]*deviceplugin.ContainerAllocateResponse
}

func main() {
	folder := flag.String("folder", "/var/lib/kubelet", "the kubelet's folder")
	resource := flag.String("resource", "", "the resource of the plugin")
	file := flag.String("file", "", "where to write what the plugin says")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, fakekubelet.New(*folder), *resource, *file)
	isStopped := ctx.Err() != nil
	cancel()
	if err != nil && !isStopped {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubelet *fakekubelet.Kubelet, resource, file string) error {
	if err := kubelet.Start(); err != nil {
		return err
	}
	defer kubelet.Stop()
	for lists := 0; ; {
		if err := kubelet.Wait(ctx, func() bool { return kubelet.Lists(resource) != lists }); err != nil {
			return err
		}
		lists = kubelet.Lists(resource)
		if err := write(ask(ctx, kubelet, resource), file); err != nil {
			return err
		}
	}
}

// ask asks for each healthy device alone. A plugin that does not answer has changed its mind, and lists its devices again.
func ask(ctx context.Context, kubelet *fakekubelet.Kubelet, resource string) said {
	heard := said{Health: map[string]string{}, Answers: map[string]*deviceplugin.ContainerAllocateResponse{}}
	client, err := kubelet.Call(resource)
	for _, device := range kubelet.Devices(resource) {
		heard.Health[device.GetID()] = device.GetHealth()
		if err != nil || device.GetHealth() != deviceplugin.Healthy {
			continue
		}
		answer, err := client.Allocate(ctx, &deviceplugin.AllocateRequest{
			ContainerRequests: []*deviceplugin.ContainerAllocateRequest{{DevicesIds: []string{device.GetID()}}},
		})
		if err == nil && len(answer.GetContainerResponses()) == 1 {
			heard.Answers[device.GetID()] = answer.GetContainerResponses()[0]
		}
	}
	return heard
}

// write replaces the file, so that who reads it sees the whole.
func write(heard said, file string) error {
	content, err := json.Marshal(heard)
	if err == nil {
		err = os.WriteFile(file+".part", content, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".part", file)
	}
	if err != nil {
		return fmt.Errorf("writing what the plugin says: %w", err)
	}
	return nil
}
