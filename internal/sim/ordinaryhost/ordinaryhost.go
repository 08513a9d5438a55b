// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package ordinaryhost lets a host tree live as a host of an ordinary distribution with Kubernetes on it: with kubeadm or K3s,
// CRI-O or containerd, with TuneD or without. It boots with the operations that a plan is spelled as for such a host.
package ordinaryhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/ignition/v2/config/v3_5/types"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/release"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/coreos"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
)

// Distribution is what a host has besides its hardware.
type Distribution struct {
	// Files of the distribution by path; those of Debian or RHEL and of what runs Kubernetes.
	Files map[string]string
	// Services run: they have a control group.
	Services []string
	// Kubelet is the command line of the kubelet's process; nil where it is a part of another program.
	Kubelet []string
}

const (
	kubeletFile = "/var/lib/kubelet/config.yaml"
	kubeadmFile = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
)

func kubeadmConfiguration() string {
	return "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncgroupDriver: systemd\nclusterDNS:\n- 10.96.0.10\n" +
		"clusterDomain: cluster.local\nmemorySwap: {}\nrotateCertificates: true\nstaticPodPath: /etc/kubernetes/manifests\n"
}

func kubeadmDropIn() string {
	return "[Service]\nEnvironment=\"KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf\"\n" +
		"Environment=\"KUBELET_CONFIG_ARGS=--config=" + kubeletFile + "\"\nEnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\nExecStart=\n" +
		"ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS\n"
}

// Debian is a node of kubeadm with containerd and without TuneD.
func Debian() Distribution {
	return Distribution{
		Files: map[string]string{
			"/etc/os-release": "ID=debian\nVERSION_ID=\"12\"\n", "/boot/grub/grub.cfg": "menuentry 'Debian' {}\n",
			kubeletFile: kubeadmConfiguration(), kubeadmFile: kubeadmDropIn(),
			"/usr/lib/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet\n",
		},
		Services: []string{"kubelet.service", "containerd.service"},
		Kubelet:  []string{"/usr/bin/kubelet", "--config=" + kubeletFile},
	}
}

// Rocky is a node of kubeadm with CRI-O and TuneD, and with a boot entry for each kernel.
func Rocky() Distribution {
	return Distribution{
		Files: map[string]string{
			"/etc/os-release": "ID=\"rocky\"\nVERSION_ID=\"9.6\"\n", "/boot/grub2/grub.cfg": "blscfg\n",
			"/boot/loader/entries/0123-5.14.conf": "title Rocky\noptions root=UUID=1\n", "/usr/sbin/tuned": "#!/usr/bin/python3\n",
			"/etc/systemd/system/multi-user.target.wants/tuned.service": "[Service]\nExecStart=/usr/sbin/tuned -l -P\n",
			kubeletFile: kubeadmConfiguration(), kubeadmFile: kubeadmDropIn(),
			"/usr/lib/systemd/system/kubelet.service": "[Service]\nExecStart=/usr/bin/kubelet\n",
		},
		Services: []string{"kubelet.service", "crio.service", "tuned.service"},
		Kubelet:  []string{"/usr/bin/kubelet", "--config=" + kubeletFile},
	}
}

// K3s is an agent of K3s on Debian, whose kubelet and containerd are its own.
func K3s() Distribution {
	return Distribution{
		Files: map[string]string{
			"/etc/os-release": "ID=debian\nVERSION_ID=\"12\"\n", "/boot/grub/grub.cfg": "menuentry 'Debian' {}\n",
			"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00-k3s-defaults.conf": "apiVersion: kubelet.config.k8s.io/v1beta1\n" +
				"kind: KubeletConfiguration\ncgroupDriver: systemd\nevictionHard:\n  imagefs.available: 5%\n  nodefs.available: 5%\n",
			"/etc/systemd/system/k3s-agent.service": "[Service]\nExecStart=/usr/local/bin/k3s agent\n",
		},
		Services: []string{"k3s-agent.service"},
	}
}

// Host is a host of such a distribution.
type Host struct {
	coreos.Host

	distribution Distribution
	kernel       v1alpha1.KernelType
	pageSize     v1alpha1.PageSize
	// confined are the CPUs of programs outside of pods by a unit that has run since the boot; empty where none has.
	confined cpus.Set
}

// Install puts a distribution on a machine in an empty folder and boots it with a kernel of the distribution.
func Install(dir string, machine hosttree.Machine, distribution Distribution, kernel v1alpha1.KernelType, pageSize v1alpha1.PageSize) (*Host, error) {
	if err := machine.Write(dir); err != nil {
		return nil, err
	}
	h := &Host{
		Host:         coreos.Host{Name: machine.Hostname, Dir: dir, BaseCommandLine: machine.BaseCommandLine()},
		distribution: distribution, kernel: kernel, pageSize: pageSize,
	}
	// What the trees have of an operating system of OpenShift.
	if err := os.Remove(filepath.Join(dir, "etc/kubernetes/kubelet.conf")); err != nil {
		return nil, fmt.Errorf("installing %s: %w", machine.Hostname, err)
	}
	for name, content := range distribution.Files {
		if err := h.write(name, content); err != nil {
			return nil, err
		}
	}
	err := hosttree.Boot(dir, hosttree.BootOptions{CommandLine: h.BaseCommandLine, KernelType: kernel, PageSize: pageSize})
	if err != nil {
		return nil, err
	}
	return h, h.startServices("")
}

// write puts a file into the tree, whatever links are there.
func (h *Host) write(name, content string) error {
	root, err := os.OpenRoot(h.Dir)
	if err != nil {
		return fmt.Errorf("opening the host tree: %w", err)
	}
	relative := strings.TrimPrefix(name, "/")
	err = root.MkdirAll(filepath.Dir(relative), 0o755)
	if err == nil {
		err = root.WriteFile(relative, []byte(content), 0o644)
	}
	return errors.Join(err, root.Close())
}

// startServices lets the services of the distribution run, the kubelet with a folder of configuration if there is one.
func (h *Host) startServices(configFolder string) error {
	for _, service := range h.distribution.Services {
		if err := h.write("/sys/fs/cgroup/system.slice/"+service+"/cgroup.procs", ""); err != nil {
			return err
		}
	}
	if h.distribution.Kubelet == nil {
		return hosttree.StopProcess(h.Dir, "kubelet")
	}
	words := slices.Clone(h.distribution.Kubelet)
	if configFolder != "" {
		words = append(words, "--config-dir="+configFolder)
	}
	folder, err := h.kubeletProcess()
	if err != nil {
		return err
	}
	return h.write(folder+"/cmdline", strings.Join(words, "\x00")+"\x00")
}

// kubeletProcess is the folder of the kubelet that runs on every tree.
func (h *Host) kubeletProcess() (string, error) {
	names, err := filepath.Glob(filepath.Join(h.Dir, "proc/[0-9]*/comm"))
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.TrimSpace(string(text)) == "kubelet" {
			return strings.TrimPrefix(filepath.Dir(name), h.Dir), nil
		}
	}
	return "", fmt.Errorf("no kubelet runs on host %s", h.Name)
}

// BootWith carries operations out and reboots, as a guard on the host does.
func (h *Host) BootWith(ctx context.Context, operations []operation.Operation) error {
	config, err := h.configuration(operations)
	if err != nil {
		return err
	}
	if err := h.Boot(ctx, config); err != nil {
		return err
	}
	h.confined = cpus.Set{}
	for i := range operations {
		if err := h.afterBoot(&operations[i]); err != nil {
			return fmt.Errorf("host %s: %w", h.Name, err)
		}
	}
	if err := h.startServices(givenFolder(operations)); err != nil {
		return err
	}
	return h.StartKubelet(ctx)
}

// givenFolder is the folder of configuration that a drop-in of the kubelet's service gives to it.
func givenFolder(operations []operation.Operation) string {
	for i := range operations {
		o := &operations[i]
		if o.Kind != operation.DropIn || o.Name != "kubelet.service" {
			continue
		}
		if _, rest, found := strings.Cut(o.Content, "--config-dir="); found {
			folder, _, _ := strings.Cut(rest, "\"")
			return folder
		}
	}
	return ""
}

// affinityUnit keeps programs on the CPUs of the command line.
const affinityUnit = "lowlatency-cpu-affinity.service"

// interpreted are the units whose programs would change the machine that the tree is on, and not the tree.
func interpreted(name string) bool {
	return slices.Contains([]string{affinityUnit, "lowlatency-thread-priorities.service", "lowlatency-latency-limit.service"}, name)
}

// configuration is what is written, in the words that the tree boots with.
func (h *Host) configuration(operations []operation.Operation) (*mcfgv1.MachineConfig, error) {
	ignition := types.Config{Ignition: types.Ignition{Version: types.MaxVersion.String()}}
	rendered := &mcfgv1.MachineConfig{}
	for i := range operations {
		o := &operations[i]
		switch {
		case o.Kind == operation.KernelArguments:
			rendered.Spec.KernelArguments = o.Arguments
		case o.Kind == operation.Unit:
			ignition.Systemd.Units = append(ignition.Systemd.Units, unitsOf(o)...)
		case o.Content != "":
			source := coreos.DataURL([]byte(o.Content))
			ignition.Storage.Files = append(ignition.Storage.Files, types.File{
				Node:          types.Node{Path: o.Path, Overwrite: new(true)},
				FileEmbedded1: types.FileEmbedded1{Contents: types.Resource{Source: &source}, Mode: new(o.Mode)},
			})
		case o.Kind == operation.StateFile:
			if err := os.Remove(filepath.Join(h.Dir, o.Path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, fmt.Errorf("removing %s: %w", o.Path, err)
			}
		}
	}
	rendered.Spec.KernelType = h.kernelType()
	raw, err := json.Marshal(ignition)
	rendered.Spec.Config = runtime.RawExtension{Raw: raw}
	return rendered, err
}

// unitsOf is the unit of an operation, none where what it does is interpreted.
func unitsOf(o *operation.Operation) []types.Unit {
	switch {
	case interpreted(o.Name):
		return nil
	case o.State == operation.Masked:
		return []types.Unit{{Name: o.Name, Mask: new(true)}}
	}
	return []types.Unit{{Name: o.Name, Contents: &o.Content, Enabled: new(o.State == operation.Enabled)}}
}

// kernelType is the distribution's kernel in the words that the tree boots with.
func (h *Host) kernelType() string {
	switch {
	case h.kernel == v1alpha1.KernelRealTime:
		return "realtime"
	case h.pageSize == v1alpha1.PageSize64Ki:
		return "64k-pages"
	}
	return ""
}

// afterBoot does what is done at each boot before the kubelet starts.
func (h *Host) afterBoot(o *operation.Operation) error {
	switch {
	case o.Kind == operation.Sysctl:
		return h.ApplyTuned("[sysctl]\n" + o.Name + "=" + o.Value + "\n")
	case o.Kind == operation.Sysfs:
		return h.ApplyTuned("[sysfs]\n" + o.Path + "=" + o.Value + "\n")
	case o.Kind == operation.TuneDProfile:
		return h.ApplyTuned(o.Content)
	case o.Kind == operation.File && o.Path == "/etc/lowlatency/cpu-frequency.conf":
		return h.applyTemporaryFiles(o.Content)
	case o.Kind == operation.Unit && interpreted(o.Name):
		return h.interpret(o)
	}
	return nil
}

// applyTemporaryFiles does what systemd-tmpfiles does with lines of the type w.
func (h *Host) applyTemporaryFiles(text string) error {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) != 7 || words[0] != "w" {
			return fmt.Errorf("%q is no line that writes a value", line)
		}
		profile := "[sysfs]\n" + words[1] + "=" + words[6] + "\n"
		if strings.HasSuffix(words[1], "/scaling_governor") {
			// The drivers prefer performance as soon as the governor does.
			profile = "[cpu]\ngovernor=" + words[6] + "\n"
		}
		if err := h.ApplyTuned(profile); err != nil {
			return err
		}
	}
	return nil
}

// interpret does to the tree what a unit does to a host.
func (h *Host) interpret(o *operation.Operation) error {
	if o.Name == affinityUnit {
		_, list, _ := strings.Cut(o.Content, "system.slice AllowedCPUs=")
		list, _, _ = strings.Cut(list, "\n")
		var err error
		h.confined, err = cpus.Parse(list)
		return err
	}
	_, command, _ := strings.Cut(o.Content, "ExecStart=")
	command, _, _ = strings.Cut(command, "\n")
	arguments := strings.Fields(command)[1:]
	if o.Name == "lowlatency-latency-limit.service" {
		return h.ApplyTuned("[cpu]\nforce_latency=cstate.id:" + arguments[0] + "|3\n")
	}
	var profile strings.Builder
	profile.WriteString("[scheduler]\n")
	for _, argument := range arguments {
		name, priority, _ := strings.Cut(argument, "=")
		fmt.Fprintf(&profile, "group.%s=0:f:%s:*:^\\[%s/\n", name, priority, name)
	}
	return h.ApplyTuned(profile.String())
}

// StartKubelet leaves the state of a kubelet that has come up with its files and assigned nothing yet.
func (h *Host) StartKubelet(ctx context.Context) error {
	opened, err := host.Open(h.Dir)
	if err != nil {
		return err
	}
	facts, err := opened.Read(ctx)
	if err = errors.Join(err, opened.Close()); err != nil {
		return err
	}
	text, known := facts.Kubelet.Config.Get()
	if !known {
		return fmt.Errorf("the kubelet of host %s does not start: %s", h.Name, facts.Kubelet.Config.Reason)
	}
	config, err := coreos.ReadKubeletConfiguration([]byte(text))
	if err != nil {
		return err
	}
	if err := h.WriteKubeletState(config); err != nil {
		return err
	}
	if config.CPUManagerPolicy != "static" {
		return nil
	}
	return h.divideCPUs(facts)
}

// divideCPUs is what comes of control groups with CPUs of their own, which containers have once the kubelet divides CPUs among them.
func (h *Host) divideCPUs(facts *host.Facts) error {
	if running, _ := release.Parse(facts.Kernel.Release.Value); running.AtLeast(6, 2) {
		return nil
	}
	to := h.confined
	if to.IsEmpty() {
		to = facts.CPUs.Online.Value
	}
	return hosttree.Confine(h.Dir, []string{"/init.scope", "/system.slice", "/user.slice"}, to)
}
