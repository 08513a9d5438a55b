// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// unpack reads an archive.
func unpack(t *testing.T, content []byte) map[string]string {
	t.Helper()
	files := map[string]string{}
	reader := tar.NewReader(bytes.NewReader(content))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

func writeImage(t *testing.T, program string) []byte {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "workload")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	image := ContainerImage{Name: "lab.local/workload:1", Program: source}
	if err := image.Write(filepath.Join(dir, "image.tar")); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "image.tar"))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// TestContainerImage follows the names from the manifest to the program, as a runtime does.
func TestContainerImage(t *testing.T) {
	content := writeImage(t, "program")
	files := unpack(t, content)
	var manifests []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal([]byte(files["manifest.json"]), &manifests); err != nil || len(manifests) != 1 {
		t.Fatalf("manifest %q: %v", files["manifest.json"], err)
	}
	if diff := cmp.Diff([]string{"lab.local/workload:1"}, manifests[0].RepoTags); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	var config struct {
		Config struct{ Entrypoint []string }
		Rootfs struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	if err := json.Unmarshal([]byte(files[manifests[0].Config]), &config); err != nil {
		t.Fatal(err)
	}
	layer := []byte(files[manifests[0].Layers[0]])
	if diff := cmp.Diff([]string{"sha256:" + digest(layer)}, config.Rootfs.DiffIDs); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{strings.TrimPrefix(config.Config.Entrypoint[0], "/"): "program"}, unpack(t, layer)); diff != "" {
		t.Errorf("files of the layer (-want +got):\n%s", diff)
	}
	if !bytes.Equal(content, writeImage(t, "program")) {
		t.Error("the same program makes two images")
	}
}

// TestNodeFiles fills the templates in and reads what programs are strict about.
func TestNodeFiles(t *testing.T) {
	templates, err := nodeFiles()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{
		"Files": FilesPath, "Gateway": gateway, "Port": "16443", "Service": ServiceAddress, "Pause": PauseImage,
		"Kubeconfig": "kind: Config",
	}
	got := map[string]string{}
	for path, content := range templates {
		var text strings.Builder
		if err := content.Execute(&text, values); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		got[path] = text.String()
	}
	wants := map[string]string{
		"/etc/containerd/config.toml":                               `sandbox = "lab.local/pause:1"`,
		"/etc/systemd/system/kubelet.service":                       "/opt/lab/bin/kubelet",
		"/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf": "/opt/lab/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS",
		"/etc/nftables.d/lab.conf":                                  "ip daddr 10.0.0.1 tcp dport 443 dnat to 10.0.2.2:16443",
		"/etc/kubernetes/kubelet.kubeconfig":                        "kind: Config",
	}
	for path, want := range wants {
		if !strings.Contains(got[path], want) {
			t.Errorf("%s lacks %q:\n%s", path, want, got[path])
		}
	}
	merged, err := withPlanned(got[kubeletConfiguration], []byte(`{"kind": "KubeletConfiguration", "cgroupDriver": "cgroupfs", "maxPods": 7}`))
	if err != nil {
		t.Fatal(err)
	}
	var configuration struct {
		Kind, CgroupDriver, ClusterDomain string
		MaxPods                           int
	}
	if err := yaml.Unmarshal([]byte(merged), &configuration); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"KubeletConfiguration", "cgroupfs", "cluster.local", 7},
		[]any{configuration.Kind, configuration.CgroupDriver, configuration.ClusterDomain, configuration.MaxPods}); diff != "" {
		t.Errorf("the kubelet's configuration (-want +got):\n%s", diff)
	}
	if !json.Valid([]byte(got["/etc/cni/net.d/10-lab.conflist"])) {
		t.Error("the network's configuration is no JSON")
	}
}

// TestFilesDisk: the second disk comes after the first, which is the root file system by its place.
func TestFilesDisk(t *testing.T) {
	spec := machineSpec()
	args := strings.Join(emulator{threads: "multi"}.machine(spec, spec.Boot, files{disk: "/run/disk.qcow2", second: "/run/files.raw"}), " ")
	first, second := strings.Index(args, "drive=disk"), strings.Index(args, "drive=files")
	if first < 0 || second < first || !strings.Contains(args, "file=/run/files.raw,if=none,id=files,format=raw,readonly=on") {
		t.Errorf("the disks are not in order: %s", args)
	}
}

func TestReadVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "versions.env")
	if err := os.WriteFile(path, []byte("# A=1\nB=2\nC=v3=4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readVersions(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"B": "2", "C": "v3=4"}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}
