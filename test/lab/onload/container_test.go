// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package onload_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
	"testing"

	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	cdi "tags.cncf.io/container-device-interface/specs-go"

	"github.com/lowlatency-dev/lowlatency-operator/internal/bypass/stackdump"
)

// answer is what a container gets: the device plugin's answer, and the CDI specification that it wrote.
type answer struct {
	edits       []cdi.ContainerEdits
	environment []string
}

// heard is what the stand-in of the kubelet writes.
type heard struct {
	Health  map[string]string
	Answers map[string]*deviceplugin.ContainerAllocateResponse
}

// hear reads what the device plugin last said.
func (s *scene) hear(t *testing.T) heard {
	t.Helper()
	var now heard
	if text, code := s.said(t, "cat "+kubeletFile); code == 0 {
		must(t, json.Unmarshal([]byte(text), &now))
	}
	return now
}

// waitHealth waits until the plugin lists one device with a health.
func (s *scene) waitHealth(t *testing.T, want string) string {
	t.Helper()
	id := ""
	s.wait(t, "the device plugin to list a device as "+want, func() (bool, string) {
		now := s.hear(t)
		for device, health := range now.Health {
			id = device
			if health == want && (want != deviceplugin.Healthy || now.Answers[device] != nil) {
				return true, ""
			}
		}
		log, _ := s.said(t, "journalctl -u plugin --no-pager -n 5 | cut -c1-600")
		return false, fmt.Sprintf("%v; %s", now.Health, log)
	})
	return id
}

// allocated is the plugin's answer for the only device.
func (s *scene) allocated(t *testing.T) answer {
	t.Helper()
	id := s.waitHealth(t, deviceplugin.Healthy)
	given := s.hear(t).Answers[id]
	var a answer
	for name, value := range given.GetEnvs() {
		a.environment = append(a.environment, name+"="+value)
	}
	if len(given.GetMounts())+len(given.GetDevices()) > 0 || len(given.GetCdiDevices()) != 1 {
		t.Fatalf("the answer is not one of CDI alone: %v", given)
	}
	var spec cdi.Spec
	must(t, json.Unmarshal([]byte(s.run(t, "cat /var/run/cdi/*.json")), &spec))
	a.edits = append(a.edits, spec.ContainerEdits)
	for _, device := range spec.Devices {
		if spec.Kind+"="+device.Name == given.GetCdiDevices()[0].GetName() {
			a.edits = append(a.edits, device.ContainerEdits)
		}
	}
	if len(a.edits) != 2 {
		t.Fatalf("CDI does not describe %s", given.GetCdiDevices()[0].GetName())
	}
	return a
}

// container is one that runs by runc, as user 1001 without capabilities, in the pods' network namespace.
type container struct {
	name string
	// environment is what the pod itself asks for.
	environment []string
	tasks       []string
	// command runs in the place of the program with tasks.
	command []string
}

// arguments are what it runs.
func (c container) arguments() []string {
	if c.command != nil {
		return c.command
	}
	return append([]string{"python3", programPath}, c.tasks...)
}

type object = map[string]any

// configuration is that of the runtime (config.json of the OCI): what any container has, and what the answer adds.
func (c container) configuration(t *testing.T, s *scene, a answer) string {
	t.Helper()
	environment := append([]string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}, a.environment...)
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}},
	}
	devices, rules := []object{}, []object{{"allow": false, "access": "rwm"}}
	for _, edits := range a.edits {
		environment = append(environment, edits.Env...)
		for _, mount := range edits.Mounts {
			mounts = append(mounts, object{"destination": mount.ContainerPath, "source": mount.HostPath, "type": "bind", "options": append([]string{"bind"}, mount.Options...)})
		}
		for _, node := range edits.DeviceNodes {
			major, minor := s.numbers(t, node.Path)
			devices = append(devices, object{"path": node.Path, "type": "c", "major": major, "minor": minor, "fileMode": 0o666})
			rules = append(rules, object{"allow": true, "type": "c", "major": major, "minor": minor, "access": node.Permissions})
		}
	}
	none := object{"bounding": []string{}, "effective": []string{}, "permitted": []string{}}
	config, err := json.Marshal(object{
		"ociVersion": "1.0.2", "root": object{"path": "rootfs"}, "hostname": c.name, "mounts": mounts,
		"process": object{
			"user": object{"uid": 1001, "gid": 1001}, "cwd": "/", "noNewPrivileges": true, "capabilities": none,
			"env": append(environment, c.environment...), "args": c.arguments(),
			"rlimits": []object{{"type": "RLIMIT_NOFILE", "hard": 65536, "soft": 65536}},
		},
		"linux": object{
			"namespaces": []object{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}, {"type": "cgroup"}, {"type": "network", "path": "/run/netns/" + pods}},
			"devices":    devices, "resources": object{"devices": rules}, "cgroupsPath": "/lab/" + c.name,
		},
	})
	must(t, err)
	return string(config)
}

// numbers are those of a device file.
func (s *scene) numbers(t *testing.T, file string) (major, minor int64) {
	t.Helper()
	first, second, _ := strings.Cut(s.run(t, "stat -c '%t %T' "+file), " ")
	major, err := strconv.ParseInt(first, 16, 32)
	must(t, err)
	minor, err = strconv.ParseInt(second, 16, 32)
	must(t, err)
	return major, minor
}

// start runs a container until the test ends. Its file system is that of the machine, with a layer of its own.
func (s *scene) start(t *testing.T, c container, a answer) {
	t.Helper()
	folder := path.Join("/run/lab", c.name)
	s.run(t, fmt.Sprintf("mkdir -p %[1]s/rootfs %[1]s/upper %[1]s/work && mount -t overlay -o lowerdir=/,upperdir=%[1]s/upper,workdir=%[1]s/work overlay %[1]s/rootfs", folder))
	must(t, s.machine.WriteFile(t.Context(), folder+"/config.json", c.configuration(t, s, a), 0o600))
	t.Cleanup(func() { s.end(c) })
	if text, code := s.said(t, fmt.Sprintf("runc run -d --bundle %s %s >%[1]s/log 2>&1 </dev/null; code=$?; [ $code = 0 ] || cat %[1]s/log; exit $code", folder, c.name)); code != 0 {
		t.Fatalf("runc: %s", text)
	}
}

// end removes a container, and waits until its stack is gone, so that the next one finds a virtual interface. A stack whose program has closed a
// connection of TCP first outlives it for as long as the connection waits (TIME_WAIT), and is an orphan then.
func (s *scene) end(c container) {
	_, _ = s.machine.Run(context.Background(), fmt.Sprintf("runc delete -f %s; umount /run/lab/%[1]s/rootfs; rm -rf /run/lab/%[1]s; "+
		"for i in $(seq 150); do [ -z \"$(/opt/onload/usr/bin/onload_stackdump -z)\" ] && break; sleep 1; done", c.name))
}

// waitReady waits until so many tasks of a container say a word.
func (s *scene) waitReady(t *testing.T, c container, word string, times int) {
	t.Helper()
	s.wait(t, fmt.Sprintf("container %s to say %q", c.name, word), func() (bool, string) {
		log, _ := s.said(t, "cat /run/lab/"+c.name+"/log")
		return strings.Count(log, word) >= times, log
	})
}

// inside runs programs in a container, as the kubelet does.
func (s *scene) inside(c container) stackdump.Run {
	return func(ctx context.Context, command []string) (stackdump.Ended, error) {
		words := append(make([]string, 0, 3+len(command)), "runc", "exec", c.name)
		for _, word := range command {
			words = append(words, "'"+word+"'")
		}
		result, err := s.machine.Execute(ctx, strings.Join(words, " "))
		return stackdump.Ended{ExitCode: result.ExitCode, Output: result.Stdout, Complaint: result.Stderr}, err
	}
}

// ask has the peer ask a container, and returns what it says.
func (s *scene) ask(t *testing.T, from string, tasks ...string) string {
	t.Helper()
	prefix := ""
	if from != "" {
		prefix = "ip netns exec " + from + " "
	}
	text, _ := s.said(t, prefix+"python3 "+programPath+" "+strings.Join(tasks, " "))
	return strings.ReplaceAll(text, "\n", ", ")
}

// kernelCounts are the datagrams and segments that the kernel received in the pods' network namespace.
func (s *scene) kernelCounts(t *testing.T) string {
	t.Helper()
	return s.run(t, "ip netns exec "+pods+` awk '/^Udp: [0-9]/ {u = $2} /^Tcp: [0-9]/ {s = $11} END {print u " datagrams, " s " segments"}' /proc/net/snmp`)
}
