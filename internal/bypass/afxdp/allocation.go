// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package afxdp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/go-logr/logr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/atomicfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
)

// allocation is what one container was given. The exported fields are stored.
type allocation struct {
	// ID follows from the units: a container that is made again in its pod has the folder of the first one.
	ID       string
	Resource string
	Units    []string
	NICs     []allocatedNIC
	// ZeroCopy means that sockets which would copy are refused.
	ZeroCopy v1alpha1.AFXDPZeroCopy

	listener *net.UnixListener
	sessions sync.WaitGroup
	end      context.CancelFunc
}

// allocatedNIC are the queues of one NIC.
type allocatedNIC struct {
	Address string
	// Name is that of the interface on the host; Attached is the one by which a pod that got the interface knows it, ""
	// when it has none of its own.
	Name, Attached string
	Queues         []int

	sockets *ebpf.Map
}

func newAllocation(pool bypass.Pool, shares []bypass.Share) *allocation {
	made := &allocation{Resource: pool.Spec.ResourceName, ZeroCopy: pool.Spec.Stack.AFXDP.ZeroCopy}
	for _, share := range shares {
		made.Units = append(made.Units, share.ID)
		address := share.Device.NIC.PCIAddress
		index := slices.IndexFunc(made.NICs, func(n allocatedNIC) bool { return n.Address == address })
		if index < 0 {
			index = len(made.NICs)
			made.NICs = append(made.NICs, allocatedNIC{Address: address, Name: share.Device.NIC.Name.Value})
		}
		made.NICs[index].Queues = append(made.NICs[index].Queues, share.Queues...)
	}
	slices.Sort(made.Units)
	if len(made.NICs) == 1 && pool.Spec.NetworkAttachment != nil {
		made.NICs[0].Attached = attachedInterface
	}
	made.ID = made.identifier()
	return made
}

// identifier is the ID that follows from resource and units. It is the name of files and folders.
func (a *allocation) identifier() string {
	sum := sha256.Sum256([]byte(a.Resource + "\n" + strings.Join(a.Units, "\n")))
	return hex.EncodeToString(sum[:8])
}

// overlaps reports whether two allocations have a queue in common.
func (a *allocation) overlaps(other *allocation) bool {
	return slices.ContainsFunc(a.NICs, func(mine allocatedNIC) bool {
		return slices.ContainsFunc(mine.Queues, func(queue int) bool { return other.holds(mine.Address, queue) })
	})
}

// leave gives the queues up that another allocation has.
func (a *allocation) leave(taker *allocation) {
	for i := range a.NICs {
		nic := &a.NICs[i]
		nic.Queues = slices.DeleteFunc(nic.Queues, func(queue int) bool { return taker.holds(nic.Address, queue) })
	}
	a.NICs = slices.DeleteFunc(a.NICs, func(n allocatedNIC) bool { return len(n.Queues) == 0 })
}

func (a *allocation) holds(address string, queue int) bool {
	return slices.ContainsFunc(a.NICs, func(n allocatedNIC) bool {
		return n.Address == address && slices.Contains(n.Queues, queue)
	})
}

// edits are what the container gets: the folder of its socket under the name of each interface, and the names of interfaces, queues and
// addresses.
func (a *allocation) edits(folder, pool string, addresses []bypass.SocketAddress) bypass.Edits {
	var given bypass.Edits
	names := make([]string, 0, len(a.NICs))
	var queues []string
	for _, nic := range a.NICs {
		for _, name := range nic.names() {
			given.Mounts = append(given.Mounts, bypass.Mount{
				HostPath: filepath.Join(folder, a.ID), ContainerPath: filepath.Join(ContainerFolder, name),
			})
		}
		names = append(names, nic.Name)
		for _, queue := range nic.Queues {
			queues = append(queues, bypass.SocketQueue{Interface: nic.Name, Queue: queue}.String())
		}
	}
	variables := bypass.SocketVariablesOf(pool)
	given.Environment = []bypass.Variable{
		{Name: variables.Devices, Value: strings.Join(names, " ")},
		{Name: variables.Queues, Value: strings.Join(queues, " ")},
	}
	if len(addresses) == 0 {
		return given
	}
	known := make([]string, 0, len(addresses))
	for _, address := range addresses {
		known = append(known, address.String())
	}
	given.Environment = append(given.Environment, bypass.Variable{Name: variables.Addresses, Value: strings.Join(known, " ")})
	return given
}

// names by which the container may know the interface.
func (n allocatedNIC) names() []string {
	if n.Attached == "" || n.Attached == n.Name {
		return []string{n.Name}
	}
	return []string{n.Name, n.Attached}
}

// nic returns the NIC with a name; nil for none.
func (a *allocation) nic(name string) *allocatedNIC {
	for i := range a.NICs {
		if slices.Contains(a.NICs[i].names(), name) {
			return &a.NICs[i]
		}
	}
	return nil
}

// listen serves the socket of the allocation. Everybody in the container may connect to it, and nobody else can: the
// folder above it is closed before the socket is made, and the container has its own folder mounted, read-only. A container whose process was restarted finds the new socket in the same folder.
func (a *allocation) listen(folder string, mapRings func(int) error, log logr.Logger) error {
	own := filepath.Join(folder, a.ID)
	if err := errors.Join(makeFolder(folder), ownFolder(own, containerMode)); err != nil {
		return err
	}
	path := filepath.Join(own, SocketName)
	if err := remove(path); err != nil {
		return err
	}
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return fmt.Errorf("making the socket of an allocation: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return errors.Join(fmt.Errorf("opening the socket of an allocation to its container: %w", err), listener.Close())
	}
	ctx, end := context.WithCancel(context.Background())
	a.listener, a.end = listener, end
	server := &server{allocation: a.view(), mapRings: mapRings, log: log.WithValues("allocation", a.ID)}
	a.sessions.Go(func() { server.run(ctx, listener) })
	return nil
}

// view is a copy for the sessions, which lasts as long as they do.
func (a *allocation) view() allocation {
	return allocation{ID: a.ID, Units: a.Units, NICs: slices.Clone(a.NICs), ZeroCopy: a.ZeroCopy}
}

// close ends the sessions and closes the maps.
func (a *allocation) close() {
	if a.listener != nil {
		a.end()
		_ = a.listener.Close()
		a.sessions.Wait()
		a.listener = nil
	}
	for i := range a.NICs {
		if sockets := a.NICs[i].sockets; sockets != nil {
			_ = sockets.Close()
			a.NICs[i].sockets = nil
		}
	}
}

func (a *allocation) file(folder string) string { return filepath.Join(folder, a.ID+".json") }

// store keeps the allocation for the next process, beside the folder that the container sees.
func (a *allocation) store(folder string) error {
	text, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("storing an allocation: %w", err)
	}
	if err := makeFolder(folder); err != nil {
		return err
	}
	if err := atomicfile.Replace(a.file(folder), text, 0o600); err != nil {
		return fmt.Errorf("storing an allocation: %w", err)
	}
	return nil
}

// forget removes what was stored of an allocation that has lost all its queues. Its folder stays; see Manager.revoke.
func (a *allocation) forget(folder, pins string) error {
	stale, err := filepath.Glob(filepath.Join(pins, "*", a.ID))
	for _, file := range append(stale, a.file(folder)) {
		err = errors.Join(err, remove(file))
	}
	return err
}

// readAllocations reads what was stored for a resource. A file that cannot be read is skipped and told.
func readAllocations(folder, resource string) ([]*allocation, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	problems := []error{err}
	var stored []*allocation
	for _, file := range files {
		found, err := readAllocation(file)
		if err != nil {
			problems = append(problems, fmt.Errorf("reading the allocation in %s: %w", file, err))
		} else if found.Resource == resource {
			stored = append(stored, found)
		}
	}
	return stored, errors.Join(problems...)
}

// readAllocation reads one file. Its ID becomes a path again, so it is believed only where it follows from the units and
// names the file that it is in.
func readAllocation(file string) (*allocation, error) {
	text, err := readOwn(file)
	if err != nil {
		return nil, err
	}
	found := &allocation{}
	if err := json.Unmarshal(text, found); err != nil {
		return nil, fmt.Errorf("parsing it: %w", err)
	}
	if found.ID != found.identifier() || filepath.Base(file) != found.ID+".json" {
		return nil, fmt.Errorf("%q is not the identifier of its units", found.ID)
	}
	return found, nil
}
