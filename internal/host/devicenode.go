// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io/fs"
)

const vfioRoot = "/dev/vfio"

// The text of a file that stands for a device in a copy of a host, which can hold no devices of its own unless it
// was made by root.
const (
	deviceText    = "character device %d:%d mode %o"
	simulatedText = "simulated device mode %o"
)

// stackDevices are the device files of Onload (src/driver/linux_onload and linux_char) and the container of VFIO.
func stackDevices() []string {
	return []string{"/dev/onload", "/dev/onload_epoll", "/dev/sfc_char"}
}

// deviceNodes looks at the device files of bypass stacks. It opens none: that would make a stack.
func (r *reader) deviceNodes() Fact[map[string]DeviceNode] {
	if err := r.folder("/dev"); err != nil {
		return Absent[map[string]DeviceNode]("/dev", reasonOf(err))
	}
	groups, err := r.peekList(vfioRoot, isVFIODevice)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.taken.file(vfioRoot, "", err)
		return Absent[map[string]DeviceNode](vfioRoot, reasonOf(err))
	}
	files := stackDevices()
	for _, name := range groups {
		files = append(files, vfioRoot+"/"+name)
	}
	nodes := map[string]DeviceNode{}
	for _, file := range files {
		if node, ok := r.deviceNode(file); ok {
			nodes[file] = node
		}
	}
	return Known(nodes, "/dev")
}

// isVFIODevice recognises the container vfio, the groups by number, and those without an IOMMU, which
// drivers/vfio/group.c names noiommu-N.
func isVFIODevice(e entry) bool {
	_, isGroup := numberIn(e.name, "", "")
	_, isUnsafe := numberIn(e.name, "noiommu-", "")
	return e.kind != kindDirectory && (isGroup || isUnsafe || e.name == "vfio")
}

// deviceNode describes a device file. On a running host, a file that is no device is none.
func (r *reader) deviceNode(file string) (DeviceNode, bool) {
	if _, unreadable := r.unreadable[file]; unreadable || r.broken() != nil {
		return DeviceNode{}, false
	}
	found, err := r.walk.resolve(relative(file))
	if err != nil {
		r.taken.file(file, "", err)
		return DeviceNode{}, false
	}
	device := DeviceNode{Mode: found.node.permissions, Major: found.node.major, Minor: found.node.minor}
	switch {
	case found.node.kind == kindFile && !r.live:
		content, err := r.peek(file, smallFile)
		device = describedDevice(content, found.node.permissions)
		if err != nil {
			r.taken.file(file, "", err)
			return DeviceNode{}, false
		}
	case found.node.kind != kindDevice:
		return DeviceNode{}, false
	}
	r.taken.file(file, device.text(), nil)
	return device, true
}

// describedDevice is the device that a file of a copy stands for.
func describedDevice(content string, permissions uint32) DeviceNode {
	var device DeviceNode
	if _, err := fmt.Sscanf(content, deviceText, &device.Major, &device.Minor, &device.Mode); err == nil {
		return device
	}
	device = DeviceNode{Mode: permissions, Simulated: true}
	var stated uint32
	if _, err := fmt.Sscanf(content, simulatedText, &stated); err == nil {
		device.Mode = stated
	}
	return device
}

func (d DeviceNode) text() string {
	if d.Simulated {
		return fmt.Sprintf(simulatedText, d.Mode)
	}
	return fmt.Sprintf(deviceText, d.Major, d.Minor, d.Mode)
}
