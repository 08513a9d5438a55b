// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package dradriver

import (
	"context"
	"strings"
	"time"

	"k8s.io/dynamic-resource-allocation/kubeletplugin"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// WatchHealthStatus tells the kubelet the health of the devices after every look at the host. The kubelet shows it in
// the status of the pods that hold them, and does nothing else about it.
func (d *Driver) WatchHealthStatus(ctx context.Context, reports chan<- kubeletplugin.DeviceHealthReport) error {
	for {
		shown, changed := d.board.Watch()
		if shown != nil {
			select {
			case <-ctx.Done():
				return nil
			case reports <- d.health(shown):
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (d *Driver) health(shown *state) kubeletplugin.DeviceHealthReport {
	words := map[v1alpha1.NICHealth]kubeletplugin.HealthStatus{
		v1alpha1.NICHealthy: kubeletplugin.HealthStatusHealthy, v1alpha1.NICUnhealthy: kubeletplugin.HealthStatusUnhealthy,
		v1alpha1.NICIneligible: kubeletplugin.HealthStatusUnhealthy, v1alpha1.NICUnknown: kubeletplugin.HealthStatusUnknown,
	}
	var report kubeletplugin.DeviceHealthReport
	now := time.Now()
	for _, device := range shown.devices {
		for _, id := range bypass.DeviceIDs(device) {
			report.Devices = append(report.Devices, kubeletplugin.DeviceHealth{
				PoolName: d.NodeName, DeviceName: bypass.ResourceDeviceName(id), Health: words[device.Health],
				LastUpdated: now, Message: strings.Join(device.Reasons, " "),
			})
		}
	}
	return report
}
