// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fakekubelet

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// dialTimeout is how long a kubelet tries to reach a plugin that registers (plugin/v1beta1, dial).
const dialTimeout = 10 * time.Second

// endpoint is a plugin that the kubelet is connected to.
type endpoint struct {
	resource, socket string
	connection       *grpc.ClientConn
	client           deviceplugin.DevicePluginClient
	options          *deviceplugin.DevicePluginOptions
}

func (e *endpoint) close() { _ = e.connection.Close() }

type registrationServer struct {
	deviceplugin.UnsafeRegistrationServer

	kubelet *Kubelet
}

// Register connects to the plugin before it answers, as the kubelet does.
func (s *registrationServer) Register(ctx context.Context, request *deviceplugin.RegisterRequest) (*deviceplugin.Empty, error) {
	if version := request.GetVersion(); !slices.Contains(deviceplugin.SupportedVersions[:], version) {
		return nil, fmt.Errorf("requested API version %q is not supported by kubelet. Supported version is %q",
			version, deviceplugin.SupportedVersions)
	}
	k := s.kubelet
	connected, err := connect(ctx, request.GetResourceName(), filepath.Join(k.PluginsFolder(), request.GetEndpoint()))
	if err != nil {
		return nil, err
	}
	if err := k.admit(connected); err != nil {
		connected.close()
		return nil, err
	}
	k.update(func() {
		k.registrations = append(k.registrations, Registration{
			Resource: connected.resource, Endpoint: request.GetEndpoint(), Options: connected.options, At: time.Now(),
		})
	})
	k.running.Go(func() { k.follow(connected) })
	return &deviceplugin.Empty{}, nil
}

func connect(ctx context.Context, resource, socket string) (*endpoint, error) {
	connection, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("failed to dial device plugin: %w", err)
	}
	e := &endpoint{resource: resource, socket: socket, connection: connection, client: deviceplugin.NewDevicePluginClient(connection)}
	limited, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if e.options, err = e.client.GetDevicePluginOptions(limited, &deviceplugin.Empty{}); err != nil {
		e.close()
		return nil, fmt.Errorf("failed to get device plugin options: %w", err)
	}
	return e, nil
}

// admit adds an endpoint. As in the kubelet, a second one with the socket of a first that is still connected is
// refused, and then the first is forgotten without being disconnected, so that the socket is refused until the
// kubelet restarts (connectClient, deregisterClient and runClient of plugin/v1beta1/handler.go).
func (k *Kubelet) admit(e *endpoint) error {
	var err error
	k.update(func() {
		key := e.resource + " " + e.socket
		for _, other := range k.endpoints[e.resource] {
			if other.socket == e.socket {
				k.wedged[key] = true
			}
		}
		if k.wedged[key] {
			err = fmt.Errorf("device plugin already connected: %s", e.socket)
			return
		}
		k.endpoints[e.resource] = append(k.endpoints[e.resource], e)
	})
	return err
}

// follow takes the lists of a plugin until its stream ends.
func (k *Kubelet) follow(e *endpoint) {
	defer k.disconnect(e)
	if k.failing.CompareAndSwap(true, false) {
		return
	}
	stream, err := e.client.ListAndWatch(context.Background(), &deviceplugin.Empty{})
	if err != nil {
		return
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return
		}
		k.update(func() {
			k.devices[e.resource] = sortDevices(list.GetDevices())
			k.lists[e.resource]++
		})
	}
}

// disconnect is PluginDisconnected: without another plugin of the resource, its devices become unhealthy.
func (k *Kubelet) disconnect(e *endpoint) {
	e.close()
	k.update(func() {
		before := k.endpoints[e.resource]
		after := slices.DeleteFunc(slices.Clone(before), func(other *endpoint) bool { return other == e })
		if len(before) == len(after) {
			return
		}
		k.endpoints[e.resource] = after
		if len(after) > 0 {
			return
		}
		var unhealthy []*deviceplugin.Device
		for _, device := range k.devices[e.resource] {
			unhealthy = append(unhealthy, &deviceplugin.Device{
				ID: device.GetID(), Health: deviceplugin.Unhealthy, Topology: device.GetTopology(),
			})
		}
		k.devices[e.resource] = unhealthy
	})
}
