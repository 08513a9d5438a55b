// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package traffic

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass"
	"github.com/lowlatency-dev/lowlatency-operator/internal/latency"
)

// Frames say by which socket of AF_XDP an end sends and receives messages, and what its frames carry. The socket is handed over by the device plugin of
// a BypassNICPool.
type Frames struct {
	Queue bypass.SocketQueue
	// Address is that of the interface of the queue, with an address of IPv4.
	Address bypass.SocketAddress
	// Port is a port of UDP whose datagrams reach the queue, and the program on it.
	Port int
}

// String is how people and the program name them: INTERFACE:QUEUE:MAC:IPv4:PORT.
func (f *Frames) String() string {
	return fmt.Sprintf("%s:%s:%s:%d", f.Queue, f.Address.MAC, f.Address.IPv4, f.Port)
}

// framesText has the parts of String.
var framesText = regexp.MustCompile(`^([^:]+:[0-9]+):([0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){5}):([0-9.]+):([0-9]+)$`)

// ParseFrames reads what String has written.
func ParseFrames(text string) (*Frames, error) {
	parts := framesText.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%q is not INTERFACE:QUEUE:MAC:IPv4:PORT, as ens2f0:4:02:00:00:00:00:01:192.0.2.1:30001 is", text)
	}
	queue, queueErr := bypass.ParseSocketQueue(parts[1])
	address, addressErr := bypass.ParseSocketAddress(queue.Interface + "=" + parts[2] + "/" + parts[3])
	port, portErr := strconv.Atoi(parts[4])
	if err := errors.Join(queueErr, addressErr, portErr); err != nil {
		return nil, err
	}
	f := &Frames{Queue: queue, Address: address, Port: port}
	return f, f.check()
}

// check says what is wrong with where frames go.
func (f *Frames) check() error {
	ip := f.Address.IPv4
	if !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() {
		return fmt.Errorf("interface %s has no address of IPv4, and frames carry one", f.Queue.Interface)
	}
	if f.Port < 1 || f.Port > 65535 {
		return fmt.Errorf("port %d: ports are from 1 to 65535", f.Port)
	}
	return nil
}

// arguments of the program; none for nil.
func (f *Frames) arguments() []string {
	if f == nil {
		return nil
	}
	return []string{"frames=" + f.String(), "sockets=" + bypass.SocketContainerFolder}
}

// checkFrames says why a request cannot go as frames.
func (r *Request) checkFrames() error {
	if r.Frames == nil {
		return nil
	}
	if r.Transport != latency.UDP {
		return fmt.Errorf("transport %s: frames of AF_XDP carry UDP alone", r.Transport)
	}
	if largest := slices.Max(r.Sizes); largest > latency.LargestInFrame {
		return fmt.Errorf("size %d: a frame has room for a message of up to %d bytes", largest, latency.LargestInFrame)
	}
	return r.Frames.check()
}

// FramesOfPool is what a LatencyTest says of the BypassNICPool with stack AFXDP whose unit a container has.
type FramesOfPool struct {
	// Pool is its name.
	Pool string
	// FirstQueue is the number of the first queue that the pool hands out, and Ports are those of its steering.
	FirstQueue int
	Ports      []int
	// Address of IPv4 is for an interface that has none, as text; "" for none.
	Address string
}

// Frames are what the device plugin has said in the variables of the container.
func (p *FramesOfPool) Frames(variable func(name string) string) (*Frames, error) {
	names := bypass.SocketVariablesOf(p.Pool)
	queues, addresses := strings.Fields(variable(names.Queues)), strings.Fields(variable(names.Addresses))
	if len(queues) == 0 {
		return nil, fmt.Errorf("the container has no variable %s: it has no unit of BypassNICPool %s with stack AFXDP", names.Queues, p.Pool)
	}
	queue, err := bypass.ParseSocketQueue(queues[0])
	if err != nil {
		return nil, fmt.Errorf("variable %s: %w", names.Queues, err)
	}
	port, err := PortOfQueue(queue.Queue-p.FirstQueue, p.Ports)
	if err != nil {
		return nil, err
	}
	f := &Frames{Queue: queue, Port: port}
	for _, text := range addresses {
		address, err := bypass.ParseSocketAddress(text)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", names.Addresses, err)
		}
		if address.Interface == queue.Interface {
			f.Address = address
		}
	}
	if len(f.Address.MAC) == 0 {
		return nil, fmt.Errorf("variable %s does not have the MAC address of %s: is the device plugin of an older release?", names.Addresses, queue.Interface)
	}
	return f, p.complete(f)
}

// InterfacesOfPool are those of the queues of a BypassNICPool with stack AFXDP of which a container has a unit, as the device plugin has said.
func InterfacesOfPool(pool string, variable func(name string) string) ([]string, error) {
	name := bypass.SocketVariablesOf(pool).Queues
	var found []string
	for text := range strings.FieldsSeq(variable(name)) {
		queue, err := bypass.ParseSocketQueue(text)
		if err != nil {
			return nil, fmt.Errorf("variable %s: %w", name, err)
		}
		found = append(found, queue.Interface)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("the container has no variable %s: it has no unit of BypassNICPool %s with stack AFXDP", name, pool)
	}
	return found, nil
}

// complete adds the address of the test where the interface has none.
func (p *FramesOfPool) complete(f *Frames) error {
	if f.Address.IPv4.IsValid() {
		return nil
	}
	if p.Address == "" {
		return fmt.Errorf("interface %s has no address of IPv4: give it one, or name one in the field address of the end", f.Queue.Interface)
	}
	given, err := netip.ParseAddr(p.Address)
	if err != nil {
		return fmt.Errorf("the address of the end: %w", err)
	}
	f.Address.IPv4 = given
	return f.check()
}

// PortOfQueue is the port of a pool that belongs to its queue at an index: the lowest to the first queue, the next to the second, and the highest to all
// that are left.
func PortOfQueue(index int, ports []int) (int, error) {
	if index < 0 || len(ports) == 0 {
		return 0, fmt.Errorf("there is no port for queue number %d of the pool among %v", index, ports)
	}
	sorted := slices.Sorted(slices.Values(ports))
	return sorted[min(index, len(sorted)-1)], nil
}
