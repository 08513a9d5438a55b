// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// pluginsFolder and kubeletSocket are deviceplugin.KubeletSocket below the kubelet's folder.
	pluginsFolder = "device-plugins"
	kubeletSocket = "kubelet.sock"

	// registerTimeout is longer than the ten seconds that the kubelet tries to reach a plugin that registers.
	registerTimeout = 15 * time.Second
	// firstRetry and lastRetry bound the wait between two attempts to register. A kubelet that starts makes its
	// socket a moment before it answers.
	firstRetry = 10 * time.Millisecond
	lastRetry  = time.Second
	// settled is how long a registration must have lasted before the next one is not taken for a repeated attempt.
	settled = 10 * time.Second
	// unheard is after how long a kubelet that took a registration and has not asked for the units is told again: it asks at once,
	// and when that fails forgets the plugin, which no stream tells of then.
	unheard = 10 * time.Second
	// stopTimeout is how long calls of the kubelet may take to end.
	stopTimeout = 2 * time.Second
)

// registrar keeps the plugin registered with the kubelet.
//
// Every registration has a socket with a name of its own, and the old one is closed after the new one is taken. With
// one name for all, a kubelet (pkg/kubelet/cm/devicemanager/plugin/v1beta1/handler.go, connectClient) that has not yet
// noticed the end of the old connection refuses the name, forgets the old connection without taking it apart, and
// refuses the name until it is restarted; and a kubelet that starts deletes a socket that was made again too early.
// Names of their own also let the process of an upgrade take over before the old one ends, without a moment in which
// the node has no unit to give.
type registrar struct {
	// folder is the one of the sockets.
	folder string
	log    logr.Logger
	board  *board
	specs  *specFolder
	// handover is nil for none.
	handover Handover

	current *registration
	// attempts counts those since the last registration that settled; attempted is the time of the last, and tried
	// the kubelet's socket then.
	attempts  int
	attempted time.Time
	tried     fs.FileInfo
	// cleaned means that the sockets of dead processes were removed.
	cleaned bool
	// failure is the last failure that was logged.
	failure string
}

// registration is one registration with the kubelet.
type registration struct {
	*service

	path    string
	socket  fs.FileInfo
	kubelet fs.FileInfo
	// since is when the kubelet took it.
	since   time.Time
	server  *grpc.Server
	serving sync.WaitGroup
}

// run keeps the plugin registered until the context ends, and then ends all streams.
func (r *registrar) run(ctx context.Context, watched *watch) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		_, changed := r.board.Watch()
		timer.Reset(r.once(ctx))
		select {
		case <-ctx.Done():
		case <-changed:
		case <-watched.socketsChanged:
		case <-r.current.gone():
		case <-timer.C:
		}
	}
	r.current.stop()
}

// gone returns a channel that is closed when the kubelet has left.
func (g *registration) gone() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.lost
}

// once registers if that is needed and possible, and returns when to look again at the latest.
func (r *registrar) once(ctx context.Context) time.Duration {
	shown := r.board.Get()
	if shown == nil {
		return lookAgain
	}
	if shown.owner != "" {
		r.leave(shown)
		return lookAgain
	}
	kubelet, err := os.Stat(filepath.Join(r.folder, kubeletSocket))
	if err != nil {
		// No kubelet runs. Its socket is announced by the watch.
		return lookAgain
	}
	if r.current.holds(shown.resource, kubelet) {
		if time.Since(r.attempted) > settled {
			r.attempts = 0
		}
		return lookAgain
	}
	if r.current.left() {
		r.replace(nil)
	}
	if wait := r.backoff(kubelet); wait > 0 {
		return wait
	}
	r.attempts, r.attempted, r.tried = r.attempts+1, time.Now(), kubelet
	next, err := r.register(ctx, shown, kubelet)
	if err != nil {
		r.fail(ctx, err)
		return firstRetry
	}
	r.failure = ""
	r.log.Info("Registered with the kubelet", "resource", next.resource, "socket", next.path, "units", len(shown.units))
	r.replace(next)
	return lookAgain
}

// leave gives the registration up. The kubelet has one list of devices for a resource, that of whichever plugin has sent one last:
// a pool to which the name does not belong would take away what the other one hands out. Its plugin lives for a while when a pool
// is deleted and made again with another name for its resource.
func (r *registrar) leave(shown *inventory) {
	if r.current != nil {
		r.log.Info("Leaving the kubelet: the resource belongs to another pool", "resource", shown.resource, "pool", shown.owner)
	}
	r.replace(nil)
}

func (r *registrar) replace(next *registration) {
	old := r.current
	r.current = next
	old.stop()
}

// holds reports whether the registration is good: with this kubelet, for this resource, and connected.
func (g *registration) holds(resource string, kubelet fs.FileInfo) bool {
	if g == nil || g.left() || g.resource != resource || !sameSocket(g.kubelet, kubelet) {
		return false
	}
	if !g.isAsked() && time.Since(g.since) > unheard {
		return false
	}
	socket, err := os.Lstat(g.path)
	return err == nil && os.SameFile(g.socket, socket)
}

// left reports whether the kubelet has left.
func (g *registration) left() bool { return isClosed(g.gone()) }

// sameSocket reports whether two looks saw the same socket. File systems use the number of a deleted file again.
func sameSocket(a, b fs.FileInfo) bool { return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) }

// backoff is how long to wait before the next attempt: longer and longer while attempts fail or registrations do not
// last, and not at all for a kubelet that was not tried yet.
func (r *registrar) backoff(kubelet fs.FileInfo) time.Duration {
	if r.tried == nil || !sameSocket(r.tried, kubelet) {
		r.attempts = 0
	}
	if r.attempts == 0 {
		return 0
	}
	wait := min(firstRetry<<min(r.attempts-1, 10), lastRetry)
	return wait - time.Since(r.attempted)
}

// fail logs a failure once, not every second while the kubelet is away.
func (r *registrar) fail(ctx context.Context, err error) {
	if ctx.Err() == nil && r.failure != err.Error() {
		r.log.Error(err, "The kubelet does not take the registration yet; trying again")
		r.failure = err.Error()
	}
}

// register makes a new socket, serves it and tells the kubelet.
func (r *registrar) register(ctx context.Context, shown *inventory, kubelet fs.FileInfo) (*registration, error) {
	address := filepath.Join(r.folder, kubeletSocket)
	// A socket that a dead kubelet has left behind refuses; there is nobody to make a socket for then.
	connection, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return nil, fmt.Errorf("connecting to the kubelet: %w", err)
	}
	if err := connection.Close(); err != nil {
		return nil, fmt.Errorf("connecting to the kubelet: %w", err)
	}
	if !r.cleaned {
		if err := removeDeadSockets(ctx, r.folder, shown.pool); err != nil {
			r.log.Error(err, "Sockets of processes that are gone stay behind")
		}
		r.cleaned = true
	}
	next, err := r.serve(ctx, shown)
	if err != nil {
		return nil, err
	}
	next.kubelet = kubelet
	if err := announce(ctx, address, filepath.Base(next.path), next.resource); err != nil {
		next.stop()
		return nil, err
	}
	next.since = time.Now()
	return next, nil
}

func (r *registrar) serve(ctx context.Context, shown *inventory) (*registration, error) {
	path := filepath.Join(r.folder, socketPrefix(shown.pool)+strconv.FormatInt(time.Now().UnixNano(), 36)+socketSuffix)
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("making the socket of the device plugin: %w", err)
	}
	socket, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making the socket of the device plugin: %w", err), listener.Close())
	}
	next := &registration{
		service: newService(shown.resource, r.board, r.specs, r.handover), path: path, socket: socket, server: grpc.NewServer(),
	}
	deviceplugin.RegisterDevicePluginServer(next.server, next.service)
	next.serving.Go(func() {
		if err := next.server.Serve(listener); err != nil {
			r.log.Error(err, "Serving the kubelet failed", "socket", path)
			next.lose()
		}
	})
	return next, nil
}

// announce tells the kubelet of a socket.
func announce(ctx context.Context, address, endpoint, resource string) (err error) {
	connection, err := grpc.NewClient("unix:"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connecting to the kubelet: %w", err)
	}
	defer func() { err = errors.Join(err, connection.Close()) }()
	limited, cancel := context.WithTimeout(ctx, registerTimeout)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(limited, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: endpoint, ResourceName: resource, Options: options(),
	})
	if err != nil {
		return fmt.Errorf("registering %s with the kubelet: %w", resource, err)
	}
	return nil
}

// stop ends the streams, waits for other calls to end, and removes the socket.
func (g *registration) stop() {
	if g == nil {
		return
	}
	close(g.stopped)
	hurry := time.AfterFunc(stopTimeout, g.server.Stop)
	g.server.GracefulStop()
	hurry.Stop()
	g.serving.Wait()
}

// The underscore ends the name of the pool, in which it cannot occur.
const socketSuffix = ".sock"

func socketPrefix(pool string) string { return "lowlatency-" + pool + "_" }

// removeDeadSockets removes the sockets of processes that were killed. One that answers belongs to a process that this
// one takes over from, and which removes it itself.
func removeDeadSockets(ctx context.Context, folder, pool string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("listing the sockets of device plugins: %w", err)
	}
	var problems []error
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, socketPrefix(pool)) || !strings.HasSuffix(name, socketSuffix) {
			continue
		}
		path := filepath.Join(folder, name)
		connection, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			problems = append(problems, connection.Close())
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("removing the socket of a process that is gone: %w", err))
		}
	}
	return errors.Join(problems...)
}
