// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

package traffic

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet/latencytest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/qualification"
)

// standIn is a stand-in for a stack such as Onload, and none of it: a library that is preloaded and carries datagrams of IPv4 over paths of AF_UNIX, below the
// folder of EF_STANDIN. It has in common with one that unchanged programs run on it, and that the counters of UDP stay flat. What it takes says nothing
// about any stack.
const standIn = `#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym((void *)-1l, #name))

static struct sockaddr_in ours[1024]; /* those that are carried, by their descriptor */

static int is_ours(int fd) { return fd >= 0 && fd < 1024 && ours[fd].sin_family; }

static struct sockaddr_un path_of(const struct sockaddr_in *a)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	snprintf(path.sun_path, sizeof path.sun_path, "%s/%08x.%d", getenv("EF_STANDIN"), ntohl(a->sin_addr.s_addr), ntohs(a->sin_port));
	return path;
}

int socket(int family, int kind, int protocol)
{
	int carried = family == AF_INET && (kind & 0xf) == SOCK_DGRAM && getenv("EF_STANDIN");
	int fd = NEXT(socket)(carried ? AF_UNIX : family, kind, carried ? 0 : protocol);
	if (fd >= 0 && fd < 1024)
		ours[fd].sin_family = carried ? AF_INET : 0;
	return fd;
}

int bind(int fd, const struct sockaddr *address, socklen_t length)
{
	if (!is_ours(fd))
		return NEXT(bind)(fd, address, length);
	ours[fd] = *(const struct sockaddr_in *)address;
	for (int port = 1024 + getpid() % 60000; port < 65536; port++) {
		ours[fd].sin_port = htons((unsigned short)port);
		struct sockaddr_un path = path_of(&ours[fd]);
		if (NEXT(bind)(fd, (struct sockaddr *)&path, sizeof path) == 0)
			return 0;
		if (errno != EADDRINUSE)
			return -1;
	}
	return -1;
}

int getsockname(int fd, struct sockaddr *restrict address, socklen_t *restrict length)
{
	if (!is_ours(fd))
		return NEXT(getsockname)(fd, address, length);
	memcpy(address, &ours[fd], sizeof ours[fd]);
	*length = sizeof ours[fd];
	return 0;
}

ssize_t sendto(int fd, const void *message, size_t bytes, int flags, const struct sockaddr *address, socklen_t length)
{
	if (!is_ours(fd))
		return NEXT(sendto)(fd, message, bytes, flags, address, length);
	struct sockaddr_un path = path_of((const struct sockaddr_in *)address);
	return NEXT(sendto)(fd, message, bytes, flags, (struct sockaddr *)&path, sizeof path);
}

ssize_t recvfrom(int fd, void *restrict message, size_t bytes, int flags, struct sockaddr *restrict address, socklen_t *restrict length)
{
	if (!is_ours(fd))
		return NEXT(recvfrom)(fd, message, bytes, flags, address, length);
	struct sockaddr_un path = {0};
	socklen_t room = sizeof path;
	ssize_t n = NEXT(recvfrom)(fd, message, bytes, flags, (struct sockaddr *)&path, &room);
	struct sockaddr_in *from = (struct sockaddr_in *)address;
	unsigned host;
	int port;
	if (n >= 0 && strrchr(path.sun_path, '/') && sscanf(strrchr(path.sun_path, '/'), "/%x.%d", &host, &port) == 2) {
		*from = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr = {htonl(host)}, .sin_port = htons((unsigned short)port)};
		*length = sizeof *from;
	}
	return n;
}

ssize_t __recvfrom_chk(int fd, void *message, size_t bytes, size_t room, int flags, struct sockaddr *address, socklen_t *length)
{
	return recvfrom(fd, message, bytes < room ? bytes : room, flags, address, length);
}

int close(int fd)
{
	if (is_ours(fd)) {
		struct sockaddr_un path = path_of(&ours[fd]);
		unlink(path.sun_path);
		ours[fd].sin_family = 0;
	}
	return NEXT(close)(fd);
}
`

// preloads are the variables that a container of the stand-in's pool gets, as a device plugin gives them.
func preloads(t *testing.T) []string {
	t.Helper()
	folder := t.TempDir()
	source, library := filepath.Join(folder, "standin.c"), filepath.Join(folder, "standin.so")
	if err := os.WriteFile(source, []byte(standIn), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "gcc", "-O2", "-shared", "-fPIC", "-o", library, source)
	return []string{"LD_PRELOAD=" + library, "EF_STANDIN=" + folder}
}

// newStacks is a cluster with a pool of the stand-in, whose sockets are compared with those of the kernel. The messages are so large that the kernel has to cut
// them into many packets, which the stand-in does not.
func newStacks(t *testing.T, variables []string) *cluster {
	t.Helper()
	c := newCluster(t, func(spec *v1alpha1.LatencyTestSpec) {
		pool, kernel := v1alpha1.TestEnd{BypassNICPool: "standin"}, v1alpha1.TestEnd{BypassNICPool: "standin", Sockets: v1alpha1.TestSocketsKernel}
		spec.Kind, spec.Repetitions, spec.PingPong.Sizes = v1alpha1.LatencyTestStackComparison, 5, []int32{60_000}
		spec.Budget = &v1alpha1.LatencyBudget{Ratios: []v1alpha1.LatencyRatioBound{{Percentile: v1alpha1.P50, MaximumPartsPerThousand: 900}}}
		spec.StackComparison = &v1alpha1.StackComparison{Base: "kernel", Sides: []v1alpha1.StackSide{
			{Name: "kernel", Path: v1alpha1.LatencyPathKernel, Client: v1alpha1.StackClient{TestEnd: kernel}, Server: v1alpha1.StackServer{TestEnd: kernel}},
			{Name: "standin", Path: v1alpha1.LatencyPathAccelerated, Client: v1alpha1.StackClient{TestEnd: pool}, Server: v1alpha1.StackServer{TestEnd: pool}},
		}}
	})
	pool := &v1alpha1.BypassNICPool{ObjectMeta: metav1.ObjectMeta{Name: "standin"}}
	pool.Spec.ResourceName, pool.Spec.Stack.Type = resourceOfPool, v1alpha1.StackOnload
	c.world.Pools, c.variables = []*v1alpha1.BypassNICPool{pool}, variables
	return c
}

// inTurns plays the Job controller and the kubelet until the node has a result, or a Job is made that is not started: each Job that is made runs, and servers end when
// they are deleted.
func (c *cluster) inTurns(starts func(name string) bool) {
	c.t.Helper()
	servers := map[string]*process{}
	for {
		d := c.step()
		for _, job := range d.Stop {
			if server := servers[job.Name]; server != nil {
				server.kill()
				if err := <-server.ended; err != nil {
					c.t.Logf("server %s ended with %v", job.Name, err)
				}
			}
			c.world.Jobs = slices.DeleteFunc(c.world.Jobs, func(j batchv1.Job) bool { return j.Name == job.Name })
		}
		if c.result().Activity != v1alpha1.LatencyRunning {
			c.t.Log(c.result().Message)
			return
		}
		if len(d.Start) == 0 {
			continue
		}
		switch name := d.Start[0].Name; {
		case !starts(name):
			return
		case strings.HasSuffix(name, "-server"):
			servers[name] = c.pod()
		default:
			c.ends(c.pod())
		}
	}
}

func everyJob(string) bool { return true }

// TestStacksBesideEachOther: both sides are measured for real, each on the path that it says, and the stand-in is faster. All containers have the variables of the
// pool: the kernel's side goes without them.
func TestStacksBesideEachOther(t *testing.T) {
	c := newStacks(t, preloads(t))
	c.inTurns(everyJob)
	c.expect(v1alpha1.LatencyPassed, v1alpha1.TestWithinBudget)
	m := c.result().Measured
	if m == nil {
		t.Fatalf("%+v", c.result())
	}
	for _, side := range m.Network.Comparison.Sides {
		t.Logf("%s: %s: %s", side.Side, side.Path, side.PathMessage)
		if side.Path != side.WantedPath || side.Histogram == "" || len(side.RepetitionMediansNanoseconds) != 5 || side.Sizes[0].Samples < 1000 {
			t.Errorf("%+v", side)
		}
	}
	if ratio := qualification.RatioOf(&m.Network.Comparison.Sides[1], 60_000, v1alpha1.P50); ratio == nil || ratio.HighPartsPerThousand >= 1000 {
		t.Errorf("%+v", ratio)
	}
}

// TestStackThatIsNotPreloaded: a container whose variables are missing has the kernel's sockets, and the side says so instead of a ratio.
func TestStackThatIsNotPreloaded(t *testing.T) {
	c := newStacks(t, nil)
	c.inTurns(everyJob)
	c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestPathsDiffer)
	if got := c.result().Message; !strings.Contains(got, "standin was to go Accelerated and went Kernel") {
		t.Error(got)
	}
	for _, side := range c.result().Measured.Network.Comparison.Sides {
		if len(side.Ratios) != 0 {
			t.Errorf("%+v", side)
		}
	}
}

// TestServerOfASideThatDoesNotStart: the side is named.
func TestServerOfASideThatDoesNotStart(t *testing.T) {
	c := newStacks(t, preloads(t))
	c.inTurns(func(name string) bool { return !strings.HasSuffix(name, "-1-server") })
	result := c.result()
	if result.ComparedRuns != 1 || result.Activity != v1alpha1.LatencyRunning {
		t.Fatalf("%+v", result)
	}
	result.StartedTime = new(metav1.NewTime(time.Now().Add(-latencytest.StartTime)))
	c.step()
	c.expect(v1alpha1.LatencyInconclusive, v1alpha1.TestNotStarted)
	if got := c.result().Message; !strings.HasPrefix(got, "measurement 2 of 10 (standin): the server did not start on node far") {
		t.Error(got)
	}
}

// asksFor reports whether a container asks for the NIC of the pool.
func asksFor(container *corev1.Container) bool {
	_, found := container.Resources.Limits[resourceOfPool]
	return found
}
