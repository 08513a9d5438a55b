// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package confinement

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/lowlatency-dev/lowlatency-operator/test/confinement/attempts"
)

// podOf is the pod of the DaemonSet of agents in a folder of config.
func podOf(t *testing.T, folder string) corev1.PodSpec {
	t.Helper()
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified
	resources, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range resources.Resources() {
		if resource.GetKind() != "DaemonSet" {
			continue
		}
		content, err := resource.Map()
		if err != nil {
			t.Fatal(err)
		}
		var daemonSet appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &daemonSet); err != nil {
			t.Fatal(err)
		}
		return daemonSet.Spec.Template.Spec
	}
	t.Fatal("there is no DaemonSet")
	return corev1.PodSpec{}
}

// wholeHost is a pod as agents were before: all of the host, read-only.
func wholeHost() corev1.PodSpec {
	return corev1.PodSpec{
		Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{
			Name: "host", MountPath: "/host", ReadOnly: true, RecursiveReadOnly: new(corev1.RecursiveReadOnlyIfPossible),
		}}}},
		Volumes: []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: new(corev1.HostPathDirectory)},
		}}},
	}
}

// pullSecret is one that only nodes of OpenShift have.
const pullSecret = "/var/lib/kubelet/config.json"

const podResources = "/var/lib/kubelet/pod-resources/kubelet.sock"

// furnish gives a host what every node has besides the files of its kernel.
func furnish(t *testing.T, root string) {
	t.Helper()
	for _, folder := range []string{"etc/systemd/system", "run/systemd/system", "usr/lib/systemd/system", "etc/default", "etc/sysconfig", "etc/crio/crio.conf.d", "opt/onload"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range append(attempts.Secrets(), pullSecret) {
		put(t, filepath.Join(root, file), "secret")
	}
	for file, content := range map[string]string{
		"/var/lib/kubelet/cpu_manager_state":    `{"policyName":"static","defaultCpuSet":"0","entries":{}}`,
		"/var/lib/kubelet/memory_manager_state": `{"policyName":"None"}`,
		"/etc/kubernetes/kubelet.conf":          "kind: KubeletConfiguration\n",
		"/var/lib/kubelet/config.yaml":          "kind: KubeletConfiguration\n",
	} {
		if _, err := os.Stat(filepath.Join(root, file)); err != nil {
			put(t, filepath.Join(root, file), content)
		}
	}
	for _, socket := range append(attempts.Sockets(), podResources) {
		path := filepath.Join(root, socket)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		serve(t, path)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// serve accepts connections on a socket that only root may use. Its name is too long for the kernel where it is.
func serve(t *testing.T, path string) {
	t.Helper()
	here, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = here.Close() }()
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join("/proc/self/fd", itoa(int(here.Fd())), filepath.Base(path))
	if err := errors.Join(unix.Bind(socket, &unix.SockaddrUnix{Name: name}), unix.Listen(socket, 8), os.Chmod(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(socket), path)
	listener, err := net.FileListener(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, "at your command")
			_ = connection.Close()
		}
	}()
}

// realHost is a host with the kernel and the programs of this machine.
func realHost(t *testing.T) string {
	t.Helper()
	root := folderFor(t, "host")
	for _, folder := range []string{"proc", "sys", "dev", "usr"} {
		if err := errors.Join(os.Mkdir(filepath.Join(root, folder), 0o755),
			unix.Mount("/"+folder, filepath.Join(root, folder), "", unix.MS_BIND|unix.MS_REC, "")); err != nil {
			t.Fatal(err)
		}
	}
	furnish(t, root)
	return root
}

// contain mounts what a pod has of a host, as the kubelet and a container runtime do, and returns the folder that stands
// for the root of the container. The runtime makes a folder to mount on where it may write.
func contain(t *testing.T, root string, pod corev1.PodSpec) string {
	t.Helper()
	container := folderFor(t, "container")
	volumes := map[string]corev1.Volume{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = volume
	}
	mounts := slices.Clone(pod.Containers[0].VolumeMounts)
	slices.SortStableFunc(mounts, func(a, b corev1.VolumeMount) int {
		return strings.Count(a.MountPath, "/") - strings.Count(b.MountPath, "/")
	})
	sources := make([]string, len(mounts))
	for i, mount := range mounts {
		sources[i] = sourceOf(t, root, volumes[mount.Name])
		if err := makeTarget(sources[i], filepath.Join(container, mount.MountPath)); err != nil {
			t.Fatal(err)
		}
	}
	if context := pod.Containers[0].SecurityContext; context != nil && context.ReadOnlyRootFilesystem != nil && *context.ReadOnlyRootFilesystem {
		seal(t, container)
	}
	for i, mount := range mounts {
		target := filepath.Join(container, mount.MountPath)
		if err := errors.Join(makeTarget(sources[i], target), bind(sources[i], target, mount)); err != nil {
			t.Fatalf("mounting %s at %s: %v", mount.Name, mount.MountPath, err)
		}
	}
	return container
}

// seal makes the container's own root read-only, before volumes are mounted into it.
func seal(t *testing.T, container string) {
	t.Helper()
	err := errors.Join(unix.Mount(container, container, "", unix.MS_BIND, ""),
		unix.MountSetattr(unix.AT_FDCWD, container, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}))
	if err != nil {
		t.Fatalf("making %s read-only: %v", container, err)
	}
}

// sourceOf is where a volume is on the host, checked as pkg/volume/hostpath of Kubernetes does.
func sourceOf(t *testing.T, root string, volume corev1.Volume) string {
	t.Helper()
	if volume.HostPath == nil {
		return folderFor(t, "volume-"+volume.Name)
	}
	path := filepath.Join(root, volume.HostPath.Path)
	info, err := os.Stat(path)
	switch kind := *volume.HostPath.Type; {
	case kind == corev1.HostPathDirectoryOrCreate && os.IsNotExist(err):
		err = os.MkdirAll(path, 0o755)
	case err != nil:
	case kind == corev1.HostPathFile && !info.Mode().IsRegular(),
		kind == corev1.HostPathCharDev && info.Mode()&os.ModeCharDevice == 0,
		(kind == corev1.HostPathDirectory || kind == corev1.HostPathDirectoryOrCreate) && !info.IsDir():
		err = errors.New("it is not of type " + string(kind))
	}
	if err != nil {
		t.Fatalf("volume %s: %v", volume.Name, err)
	}
	return path
}

func makeTarget(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if info.IsDir() {
		return os.MkdirAll(target, 0o755)
	}
	return errors.Join(os.MkdirAll(filepath.Dir(target), 0o755), os.WriteFile(target, nil, 0o600))
}

func bind(source, target string, mount corev1.VolumeMount) error {
	err := unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
	if err != nil || !mount.ReadOnly {
		return err
	}
	flags := uint(0)
	if mount.RecursiveReadOnly != nil {
		flags = unix.AT_RECURSIVE
	}
	return unix.MountSetattr(unix.AT_FDCWD, target, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
