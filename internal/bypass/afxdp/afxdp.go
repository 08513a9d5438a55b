// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package afxdp gives containers AF_XDP sockets on queues of NICs that keep their kernel driver.
//
// A small XDP program is attached to each NIC in the driver's own mode. It looks up the map of sockets (XSKMAP) of the
// frame's queue in a map of maps, and redirects the frame to the socket that is in there; a frame of a queue without
// a socket goes to the kernel as before. Every allocation has a map of its own, so that a container which may write
// its map reaches no queue but its own, and a map that was handed out earlier has no effect any more once the
// queue belongs to somebody else.
//
// A container gets the folder of a Unix socket that belongs to its allocation alone. There it asks for its map, as
// DPDK's af_xdp driver does, or for a socket that is ready for use; see protocol.go. Program, maps and allocations
// outlive this process: they are pinned in the BPF file system and kept below /run, and both vanish with the reboot
// that ends the containers, too.
package afxdp

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
)

const (
	// DefaultPins is the folder of the BPF file system in which NICs are kept.
	DefaultPins = "/sys/fs/bpf/lowlatency/afxdp"
	// DefaultFolder is where the sockets of allocations are. The container runtime must see it under the same path.
	DefaultFolder = bypass.SocketsFolder

	// ContainerFolder is the folder below which a container finds the socket, in a folder with the name of each interface.
	ContainerFolder = bypass.SocketContainerFolder
	// SocketName is the name of the socket there.
	SocketName = "afxdp.sock"

	// attachedInterface is the name that Multus gives the first interface which it adds to a pod.
	attachedInterface = "net1"
)

// Manager attaches NICs and serves allocations. Its methods may be called at the same time.
type Manager struct {
	// Pins is a folder below a BPF file system.
	Pins string
	// Folder is the one of the sockets.
	Folder string
	// Log tells what is attached and handed over; the zero value tells nothing.
	Log logr.Logger

	mutex sync.Mutex
	// mapRings stands for mapBoundRings in tests; nil otherwise.
	mapRings func(socket int) error
	// ringsKnown means that the kernel has answered, rings is its no, and ringsTold that it could not be asked.
	ringsKnown, ringsTold bool
	rings                 error

	pool        bypass.Pool
	recovered   bool
	nics        map[string]*nic
	allocations map[string]*allocation
}

// Prepare attaches the NICs that can be handed out and takes up the allocations of the process before this one. The
// result has a sentence for each NIC, by its PCI address, that cannot be handed out. Pools of other stacks have none.
func (m *Manager) Prepare(pool bypass.Pool, devices []bypass.Device) map[string]string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.pool = pool
	if pool.Spec.Stack.AFXDP == nil {
		m.detachOthers(nil)
		m.report(nil)
		return nil
	}
	if m.nics == nil {
		m.nics, m.allocations = map[string]*nic{}, map[string]*allocation{}
	}
	m.tryKernel()
	problems := map[string]string{}
	// Before anything is in it.
	folder := makeFolder(m.Folder)
	for _, device := range devices {
		if device.Health != v1alpha1.NICHealthy || !device.NIC.Name.Known {
			m.adopt(device.NIC.PCIAddress)
			continue
		}
		if err := errors.Join(folder, m.attach(device)); err != nil {
			problems[device.NIC.PCIAddress] = fmt.Sprintf("NIC %s (%s) cannot be given to AF_XDP sockets: %v.",
				device.NIC.Name.Value, device.NIC.PCIAddress, err)
		}
	}
	m.recover()
	m.detachOthers(devices)
	m.report(problems)
	return problems
}

// report tells the agent of the node, which makes reasons of the NICs of it. What cannot be told is logged.
func (m *Manager) report(problems map[string]string) {
	said := maps.Clone(host.SocketReport(problems))
	if m.rings != nil && said != nil {
		said[""] = "Containers get no bound socket: " + m.rings.Error() + "."
	}
	file := filepath.Join(m.reports(), m.pool.Name)
	if err := writeReport(file, said.String()); err != nil {
		m.Log.Error(err, "The agent does not learn what is wrong with the NICs")
	}
}

// reports is the folder of what is told to the agent.
func (m *Manager) reports() string { return filepath.Join(m.Folder, filepath.Base(host.SocketReports)) }

// writeReport writes a file unless it has that content, and removes it when there is nothing to say.
func writeReport(file, text string) error {
	if text == "" {
		return remove(file)
	}
	if is, err := os.ReadFile(file); err == nil && string(is) == text {
		return nil
	}
	if err := makeFolder(filepath.Dir(file)); err != nil {
		return err
	}
	if err := atomicfile.Replace(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("reporting to the agent: %w", err)
	}
	return nil
}

// tryKernel finds out whether the kernel is new enough for requestSocket, until it is known. Each request finds out by
// itself, with its own socket: here people learn of it before the first container does.
func (m *Manager) tryKernel() {
	if m.ringsKnown {
		return
	}
	err := tryBoundRings(m.boundRings())
	switch {
	case err == nil:
		m.ringsKnown = true
	case errors.Is(err, errBoundRings):
		m.ringsKnown, m.rings = true, err
		m.Log.Info("No container gets a bound socket", "request", requestSocket, "reason", err.Error())
	case !m.ringsTold:
		m.ringsTold = true
		m.Log.Info("Whether containers can use bound sockets is not known yet", "request", requestSocket, "reason", err.Error())
	}
}

func (m *Manager) boundRings() func(socket int) error {
	if m.mapRings == nil {
		return mapBoundRings
	}
	return m.mapRings
}

// attach attaches a NIC, or makes sure that it still is.
func (m *Manager) attach(device bypass.Device) error {
	address := device.NIC.PCIAddress
	held := m.nics[address]
	if held == nil {
		held = &nic{pins: filepath.Join(m.Pins, pinName(address))}
	}
	changed, err := held.ensure(device.NIC.Name.Value, m.pool.Spec.Stack.AFXDP.Steering)
	if err != nil {
		return err
	}
	m.nics[address] = held
	if changed {
		m.Log.Info("XDP program attached", "nic", address, "interface", device.NIC.Name.Value)
	}
	return nil
}

// adopt takes over a NIC that an earlier process attached and that is not fit at present, or whose interface is in a
// pod: the container that holds it may ask for its map again.
func (m *Manager) adopt(address string) {
	pins := filepath.Join(m.Pins, pinName(address))
	if _, err := os.Stat(pins); err != nil || m.nics[address] != nil {
		return
	}
	held := &nic{pins: pins}
	if err := held.open(); err != nil {
		m.Log.Error(err, "A NIC of an earlier process cannot be taken over", "nic", address)
		return
	}
	m.nics[address] = held
}

// detachOthers takes the program off the NICs that no longer belong to the pool, unless a container may hold them.
func (m *Manager) detachOthers(devices []bypass.Device) {
	for address, held := range m.nics {
		isOurs := slices.ContainsFunc(devices, func(d bypass.Device) bool {
			return d.NIC.PCIAddress == address && d.Health != v1alpha1.NICIneligible
		})
		if isOurs || m.isAllocated(address) {
			continue
		}
		if err := held.detach(); err != nil {
			m.Log.Error(err, "The XDP program stays on a NIC that no longer belongs to the pool", "nic", address)
			continue
		}
		delete(m.nics, address)
		m.Log.Info("XDP program detached", "nic", address)
	}
}

func (m *Manager) isAllocated(address string) bool {
	for _, allocation := range m.allocations {
		if slices.ContainsFunc(allocation.NICs, func(share allocatedNIC) bool { return share.Address == address }) {
			return true
		}
	}
	return false
}

// removeLeftovers removes what a process that was killed has left of files that it was writing.
func (m *Manager) removeLeftovers() {
	err := errors.Join(
		atomicfile.RemoveLeftovers(m.Folder, "*.json"),
		atomicfile.RemoveLeftovers(m.reports(), m.pool.Name),
	)
	if err != nil {
		m.Log.Error(err, "Files of a process that was killed stay")
	}
}

// recover serves the allocations of the process before this one again. One whose NIC is not attached yet waits.
func (m *Manager) recover() {
	if m.recovered {
		return
	}
	m.removeLeftovers()
	stored, err := readAllocations(m.Folder, m.pool.Spec.ResourceName)
	if err != nil {
		m.Log.Error(err, "Allocations of an earlier process cannot be read")
	}
	m.recovered = true
	for _, found := range stored {
		if _, served := m.allocations[found.ID]; served {
			continue
		}
		if err := m.serve(found, false); err != nil {
			m.Log.Error(err, "An allocation of an earlier process cannot be served yet", "units", found.Units)
			m.recovered = false
		}
	}
}

// Allocate makes an allocation of shares of NICs to one container and returns what the container gets besides. Whoever
// held one of the queues before has it no longer.
func (m *Manager) Allocate(shares []bypass.Share) (bypass.Edits, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.pool.Spec.Stack.AFXDP == nil || len(shares) == 0 {
		return bypass.Edits{}, nil
	}
	made := newAllocation(m.pool, shares)
	m.revoke(made)
	if err := m.serve(made, true); err != nil {
		return bypass.Edits{}, fmt.Errorf("making the AF_XDP socket of %s: %w", strings.Join(made.Units, ", "), err)
	}
	return made.edits(m.Folder, m.pool.Name, m.addresses(made)), nil
}

// addresses are what the kernel says of the NICs of an allocation. A program can ask for them itself only where it is in the network namespace of
// the NIC. An interface of which nothing can be read is not among them.
func (m *Manager) addresses(a *allocation) []bypass.SocketAddress {
	var found []bypass.SocketAddress
	for _, held := range a.NICs {
		device, err := net.InterfaceByName(held.Name)
		if err != nil {
			m.Log.Info("A container does not learn the address of a NIC", "interface", held.Name, "reason", err.Error())
			continue
		}
		numbers, err := device.Addrs()
		if err != nil {
			m.Log.Info("A container does not learn the IPv4 address of a NIC", "interface", held.Name, "reason", err.Error())
		}
		var ips []netip.Addr
		for _, number := range numbers {
			if prefix, err := netip.ParsePrefix(number.String()); err == nil {
				ips = append(ips, prefix.Addr())
			}
		}
		if address, known := bypass.SocketAddressOf(held.Name, device.HardwareAddr, ips); known {
			found = append(found, address)
		}
	}
	return found
}

// serve makes the maps of an allocation and its socket.
func (m *Manager) serve(a *allocation, fresh bool) error {
	for i := range a.NICs {
		held, ok := m.nics[a.NICs[i].Address]
		if !ok {
			return fmt.Errorf("NIC %s is not attached", a.NICs[i].Address)
		}
		sockets, err := held.give(a.ID, a.NICs[i].Queues, fresh)
		if err != nil {
			return err
		}
		a.NICs[i].sockets = sockets
	}
	if err := a.store(m.Folder); err != nil {
		return err
	}
	if err := a.listen(m.Folder, m.boundRings(), m.Log); err != nil {
		return err
	}
	m.allocations[a.ID] = a
	return nil
}

// revoke takes the queues of a new allocation from the earlier ones. Their folders stay: the containers of a pod are
// allocated one after the other before the first is made, and the same unit may go to several of them.
func (m *Manager) revoke(taker *allocation) {
	for id, earlier := range m.allocations {
		if !earlier.overlaps(taker) {
			continue
		}
		// Sessions know the queues that the allocation had.
		earlier.close()
		delete(m.allocations, id)
		if id == taker.ID {
			continue
		}
		earlier.leave(taker)
		err := error(nil)
		if len(earlier.NICs) > 0 {
			err = m.serve(earlier, false)
		} else {
			err = earlier.forget(m.Folder, m.Pins)
		}
		if err != nil {
			m.Log.Error(err, "An allocation whose queues went to another container is in disorder", "units", earlier.Units)
		}
	}
}

// Close ends the sessions of all containers. What is attached stays attached.
func (m *Manager) Close() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, allocation := range m.allocations {
		allocation.close()
	}
	for _, held := range m.nics {
		held.close()
	}
	m.nics, m.allocations, m.recovered = nil, nil, false
}

// pinName is the name of a folder in a BPF file system, where names have no dots (bpf_lookup of kernel/bpf/inode.c).
func pinName(address string) string { return strings.ReplaceAll(address, ".", "_") }
