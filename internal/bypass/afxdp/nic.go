// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

const (
	pinnedLink   = "link"
	pinnedQueues = "queues"

	// queueLimit is the number of queues that maps have room for. It does not follow the NIC, because the number of
	// its queues may be changed while containers hold some of them.
	queueLimit = 1024
)

// nic is a NIC with the XDP program.
type nic struct {
	// pins is the folder of the BPF file system.
	pins string
	// attachment is the program in the driver of the interface; queues holds the map of sockets of each queue.
	attachment link.Link
	queues     *ebpf.Map
	// index is the number of the interface, ports are the UDP ports that the program redirects.
	index int
	ports []int32
}

// socketsSpec describes the map of the sockets of one allocation.
func socketsSpec() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "ll_sockets", Type: ebpf.XSKMap, KeySize: 4, ValueSize: 4, MaxEntries: queueLimit}
}

// ensure attaches the program to an interface unless that is done, by this process or the one before. changed tells
// that something had to be done.
func (n *nic) ensure(name string, steering v1alpha1.AFXDPSteeringSpec) (changed bool, err error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return false, fmt.Errorf("interface %s is not there: %w", name, err)
	}
	ports := slices.Sorted(slices.Values(steering.UDPPorts))
	if n.isOn(found.Index) && slices.Equal(ports, n.ports) {
		return false, nil
	}
	if err := n.open(); err != nil {
		return false, err
	}
	program, err := loadProgram(n.queues, ports)
	if err != nil {
		return false, refusal("the kernel refuses the XDP program", err)
	}
	defer func() { err = errors.Join(err, program.Close()) }()
	if err := n.run(program, found.Index); err != nil {
		return false, err
	}
	n.index, n.ports = found.Index, ports
	return true, nil
}

// isOn reports whether the program is attached to the interface with a number. A link whose interface vanished says 0.
func (n *nic) isOn(index int) bool {
	if n.attachment == nil {
		return false
	}
	info, err := n.attachment.Info()
	return err == nil && info.XDP() != nil && int(info.XDP().Ifindex) == index
}

// open opens what the process before this one has pinned, or makes it.
func (n *nic) open() error {
	if n.queues != nil {
		return nil
	}
	if err := makeFolder(n.pins); err != nil {
		return err
	}
	queues, err := ebpf.NewMapWithOptions(&ebpf.MapSpec{
		Name: pinnedQueues, Type: ebpf.ArrayOfMaps, KeySize: 4, ValueSize: 4, MaxEntries: queueLimit,
		InnerMap: socketsSpec(), Pinning: ebpf.PinByName,
	}, ebpf.MapOptions{PinPath: n.pins})
	if err != nil {
		return refusal("the kernel refuses the map of queues", err)
	}
	n.queues = queues
	pinned, err := link.LoadPinnedLink(filepath.Join(n.pins, pinnedLink), nil)
	if err == nil {
		n.attachment = pinned
	} else if !errors.Is(err, fs.ErrNotExist) {
		return refusal("the XDP program of an earlier process cannot be taken over", err)
	}
	return nil
}

// run replaces the program of an attachment, or attaches it in the driver's own mode: in the generic one, frames
// are copied and the NIC gains nothing.
func (n *nic) run(program *ebpf.Program, index int) error {
	if n.isOn(index) {
		if err := n.attachment.Update(program); err != nil {
			return refusal("the XDP program cannot be replaced", err)
		}
		return nil
	}
	if err := n.release(); err != nil {
		return err
	}
	attached, err := link.AttachXDP(link.XDPOptions{Program: program, Interface: index, Flags: link.XDPDriverMode})
	switch {
	case errors.Is(err, syscall.EBUSY):
		return errors.New("another XDP program is on its interface; take it off with ip link set dev NAME xdp off, or stop " +
			"the program that attached it (bpftool net shows it)")
	case errors.Is(err, syscall.EOPNOTSUPP):
		return errors.New("its driver has no native XDP, or not with the present settings (see dmesg: queues, MTU, LRO)")
	case err != nil:
		return refusal("the kernel refuses to attach the XDP program", err)
	}
	if err := attached.Pin(filepath.Join(n.pins, pinnedLink)); err != nil {
		return errors.Join(refusal("the XDP program cannot be pinned", err), attached.Close())
	}
	n.attachment = attached
	return nil
}

// release forgets an attachment, which takes the program off the interface if it still exists.
func (n *nic) release() error {
	if n.attachment == nil {
		return nil
	}
	err := errors.Join(remove(filepath.Join(n.pins, pinnedLink)), n.attachment.Close())
	n.attachment = nil
	return err
}

// give puts the map of an allocation in the place of each of its queues. A fresh one replaces the map that an earlier
// holder of the same units may still have.
func (n *nic) give(allocation string, queues []int, fresh bool) (*ebpf.Map, error) {
	pin := filepath.Join(n.pins, allocation)
	if fresh {
		if err := remove(pin); err != nil {
			return nil, err
		}
	}
	sockets, err := ebpf.LoadPinnedMap(pin, nil)
	if errors.Is(err, fs.ErrNotExist) {
		sockets, err = newSockets(pin)
	}
	if err != nil {
		return nil, refusal("the map of sockets cannot be had", err)
	}
	for _, queue := range queues {
		if err := n.queues.Put(uint32(queue), sockets); err != nil {
			return nil, errors.Join(refusal(fmt.Sprintf("queue %d cannot be given away", queue), err), sockets.Close())
		}
	}
	return sockets, nil
}

func newSockets(pin string) (*ebpf.Map, error) {
	sockets, err := ebpf.NewMap(socketsSpec())
	if err != nil {
		return nil, err
	}
	if err := sockets.Pin(pin); err != nil {
		return nil, errors.Join(err, sockets.Close())
	}
	return sockets, nil
}

// detach takes the program off the interface and removes everything that was pinned.
func (n *nic) detach() error {
	err := n.release()
	n.close()
	if removeErr := os.RemoveAll(n.pins); removeErr != nil {
		err = errors.Join(err, fmt.Errorf("removing what was pinned: %w", removeErr))
	}
	return err
}

// close closes the files of this process; what is pinned stays.
func (n *nic) close() {
	if n.attachment != nil {
		_ = n.attachment.Close()
	}
	if n.queues != nil {
		_ = n.queues.Close()
	}
	n.attachment, n.queues = nil, nil
}

// remove removes a file that may be gone.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing a file of AF_XDP: %w", err)
	}
	return nil
}

// refusal adds what to do where the kernel only says that something is not permitted.
func refusal(what string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%s; the device plugin needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW, a seccomp profile with bpf, and Linux 5.8 "+
			"or later: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}
