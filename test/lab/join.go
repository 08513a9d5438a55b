// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"
)

// NodeFiles writes what a machine needs to be a node of a cluster into a folder, for Spec.Files: the programs, and
// the container images, by name of their archive. A pod's sandbox runs the image PauseImage, which must be one of them.
func (p Programs) NodeFiles(dir string, images map[string]ContainerImage) error {
	for _, folder := range []string{"bin", "images"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			return fmt.Errorf("making a folder for a node's files: %w", err)
		}
	}
	for _, name := range []string{"kubelet", "containerd", "containerd-shim-runc-v2", "ctr"} {
		if err := copyContent(p.File(name), filepath.Join(dir, "bin", name), 0o755); err != nil {
			return err
		}
	}
	for name, image := range images {
		if err := image.Write(filepath.Join(dir, "images", name+".tar")); err != nil {
			return err
		}
	}
	return nil
}

// PauseImage is what holds the namespaces of a pod.
const PauseImage = "lab.local/pause:1"

func copyContent(from, to string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, mode)
	}
	if err != nil {
		return fmt.Errorf("copying what a node needs: %w", err)
	}
	return nil
}

// Join makes a machine a node of the cluster, with systemd, containerd and the kubelet; the machine's files must be
// those of NodeFiles. The configuration is for the kubelet, in JSON with its kind: its fields replace the lab's own, which
// are about certificates and the runtime, in the one file where kubeadm keeps it, and agents look for it. Join returns when everything has been started; that the
// node becomes ready is the cluster's to tell.
func (c *Cluster) Join(ctx context.Context, m *Machine, configuration []byte, progress io.Writer) error {
	kubeconfig, err := c.kubeconfig("https://"+gateway+":"+c.port(), "system:node:"+m.spec.Name, []string{"system:nodes"})
	if err != nil {
		return err
	}
	values := map[string]string{
		"Files": FilesPath, "Gateway": gateway, "Port": c.port(), "Service": ServiceAddress, "Pause": PauseImage,
		"Kubeconfig": string(kubeconfig),
	}
	files, err := nodeFiles()
	if err != nil {
		return err
	}
	for path, parsed := range files {
		var text strings.Builder
		if err := parsed.Execute(&text, values); err != nil {
			return fmt.Errorf("making %s of machine %s: %w", path, m.spec.Name, err)
		}
		content := text.String()
		if path == kubeletConfiguration {
			if content, err = withPlanned(content, configuration); err != nil {
				return fmt.Errorf("machine %s: %w", m.spec.Name, err)
			}
		}
		if err := m.WriteFile(ctx, path, content, 0o600); err != nil {
			return err
		}
	}
	report(progress, "%s: importing container images", m.spec.Name)
	// The network comes before containerd, which reports nodes without one as not ready.
	_, err = m.Run(ctx, "set -e; systemctl daemon-reload; systemctl enable lab-network containerd kubelet; "+
		"systemctl restart lab-network containerd; for image in "+FilesPath+"/images/*.tar; do "+
		FilesPath+"/bin/ctr -n k8s.io images import $image; done; systemctl restart kubelet")
	return err
}

// kubeletConfiguration is where kubeadm keeps it.
const kubeletConfiguration = "/var/lib/kubelet/config.yaml"

// withPlanned puts the fields that a plan decides in the place of the lab's.
func withPlanned(own string, planned []byte) (string, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(own), &all); err != nil {
		return "", fmt.Errorf("reading the lab's configuration of the kubelet: %w", err)
	}
	fields := map[string]any{}
	if err := json.Unmarshal(planned, &fields); err != nil {
		return "", fmt.Errorf("the planned configuration of the kubelet is no JSON: %w", err)
	}
	maps.Copy(all, fields)
	text, err := yaml.Marshal(all)
	return string(text), err
}

// nodeTemplates are the files of a node, below their paths on it.
//
//go:embed node
var nodeTemplates embed.FS

// nodeFiles are the templates of a node's files by their path.
func nodeFiles() (map[string]*template.Template, error) {
	const root = "node"
	files := map[string]*template.Template{}
	err := fs.WalkDir(nodeTemplates, root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := nodeTemplates.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := template.New(path).Option("missingkey=error").Parse(string(text))
		files[strings.TrimPrefix(path, root)] = parsed
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading the templates of a node: %w", err)
	}
	return files, nil
}
