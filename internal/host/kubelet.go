// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/mergepatch"
)

func readKubelet(r *reader, f *Facts) {
	f.Kubelet = Kubelet{
		Flags:              r.kubeletFlags(),
		CPUManagerState:    r.textFact(cpuStateFile),
		MemoryManagerState: r.textFact(memoryStateFile),
	}
	f.Kubelet.DropInFolder = r.dropInFolder(f.Kubelet.Flags)
	f.Kubelet.File = r.kubeletConfig(f.Kubelet.Flags)
	f.Kubelet.DropIns = r.dropIns(f.Kubelet.DropInFolder)
	f.Kubelet.Config = f.Kubelet.merged()
}

// kubeletConfig returns the first file that holds a KubeletConfiguration. Under the name that OpenShift
// gives to it, kubeadm keeps a kubeconfig with the credentials of the node: that is neither kept nor put
// into a snapshot.
func (r *reader) kubeletConfig(flags Fact[[]string]) Fact[string] {
	var fact Fact[string]
	files := kubeletConfigFiles()
	if named := flagValue(flags.Value, "config"); path.IsAbs(named) && path.Clean(named) == named {
		files = slices.Insert(slices.DeleteFunc(files, func(file string) bool { return file == named }), 0, named)
	}
	for i, file := range files {
		found := r.configuration(file)
		if found.Known {
			return found
		}
		if i == 0 || fact.Reason == reasonMissing && found.Reason != reasonMissing {
			fact = found
		}
	}
	return fact
}

// configuration reads a file if it holds a KubeletConfiguration.
func (r *reader) configuration(file string) Fact[string] {
	const foreign = "not a KubeletConfiguration"
	isConfiguration := regexp.MustCompile(`(?m)^\s*[{,]?\s*["']?kind["']?\s*:\s*["']?KubeletConfiguration\b|[{,]\s*"kind"\s*:\s*"KubeletConfiguration"`)
	content, err := r.peek(file, smallFile)
	if err == nil {
		content, err = plainText(content)
	}
	switch {
	case err == nil && isConfiguration.MatchString(content):
		r.recordConfiguration(file, content)
		return Known(content, file)
	case err == nil:
		err = unreadableError{foreign}
	}
	r.taken.file(file, "", err)
	return Absent[string](file, reasonOf(err))
}

// recordConfiguration puts what is essential of the kubelet's configuration into a snapshot.
func (r *reader) recordConfiguration(file, content string) {
	if r.taken == nil {
		return
	}
	kept, err := essentialConfiguration(content)
	if err != nil {
		r.taken.skip(file, "neither YAML nor JSON")
		return
	}
	r.taken.file(file, kept, nil)
}

// kubeletConfigFiles are the places of the configuration: of OpenShift, of kubeadm, and of the images of
// EKS.
func kubeletConfigFiles() []string {
	return []string{
		"/etc/kubernetes/kubelet.conf",
		"/var/lib/kubelet/config.yaml",
		"/etc/kubernetes/kubelet/config.yaml",
		"/etc/kubernetes/kubelet/config.json",
	}
}

// rancherFolders are where K3s and RKE2 keep drop-ins of their kubelets since 1.32, by their units.
func rancherFolders() map[string]string {
	const k3s, rke2 = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d", "/var/lib/rancher/rke2/agent/etc/kubelet.conf.d"
	return map[string]string{"k3s.service": k3s, "k3s-agent.service": k3s, "rke2-server.service": rke2, "rke2-agent.service": rke2}
}

// dropInFolder is --config-dir of the running kubelet, or what its distribution gives it; "" where it has none.
func (r *reader) dropInFolder(flags Fact[[]string]) Fact[string] {
	if given, known := flags.Get(); known {
		return Known(flagValue(given, "config-dir"), flags.Source)
	}
	for _, unit := range KubeletUnits() {
		folder, isRancher := rancherFolders()[unit]
		if !isRancher {
			continue
		}
		if running, _ := r.exists(systemSlice + unit).Get(); !running {
			continue
		}
		if has, known := r.exists(folder).Get(); has || !known {
			// One that cannot be seen from here may be there.
			return Known(folder, folder)
		}
	}
	return Absent[string](flags.Source, flags.Reason)
}

// maxDropIns bounds the drop-ins of a kubelet.
const maxDropIns = 256

// dropIns reads the files that the kubelet merges over its configuration, in its order: by path, those of folders below
// included, and only those that end in .conf (cmd/kubelet/app/server.go, mergeKubeletConfigurations).
func (r *reader) dropIns(in Fact[string]) Fact[[]KubeletDropIn] {
	folder, known := in.Get()
	switch {
	case !known:
		return Absent[[]KubeletDropIn](in.Source, in.Reason)
	case folder == "":
		return Known[[]KubeletDropIn](nil, in.Source)
	case !path.IsAbs(folder) || path.Clean(folder) != folder:
		return Absent[[]KubeletDropIn](in.Source, "--config-dir is no clean absolute path")
	}
	files, err := r.filesBelow(folder, 0)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Absent[[]KubeletDropIn](folder, reasonOf(err))
	}
	found := Known[[]KubeletDropIn](nil, folder)
	for _, file := range files {
		if path.Ext(file) != ".conf" {
			continue
		}
		if len(found.Value) == maxDropIns {
			return Absent[[]KubeletDropIn](folder, "more files than any kubelet has")
		}
		found.Value = append(found.Value, KubeletDropIn{Path: file, Content: r.configuration(file)})
	}
	return found
}

// filesBelow lists a folder and those in it as filepath.WalkDir does.
func (r *reader) filesBelow(folder string, depth int) ([]string, error) {
	const deepest = 4
	isFolder := map[string]bool{}
	names, err := r.peekList(folder, func(e entry) bool {
		isFolder[e.name] = e.kind == kindDirectory
		return e.kind != kindDevice
	})
	if err != nil || depth > deepest {
		return nil, err
	}
	r.taken.directory(folder)
	var files []string
	for _, name := range names {
		file := folder + "/" + name
		if !isFolder[name] {
			files = append(files, file)
			continue
		}
		below, err := r.filesBelow(file, depth+1)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

// merged is the configuration as the kubelet has it: the file with the drop-ins over it. It is the file's own text where
// there is no drop-in, and absent when a part cannot be read, or what a flag says instead is not known.
func (k *Kubelet) merged() Fact[string] {
	dropIns, known := k.DropIns.Get()
	switch {
	case k.DropInFolder.Value != "" && !known:
		return Absent[string](k.DropIns.Source, k.DropIns.Reason)
	case len(dropIns) == 0:
		return k.File
	}
	parts := make([]Fact[string], 0, len(dropIns)+1)
	if k.File.Known || flagValue(k.Flags.Value, "config") != "" {
		parts = append(parts, k.File)
	}
	for _, dropIn := range dropIns {
		parts = append(parts, dropIn.Content)
	}
	var texts []string
	for _, part := range parts {
		text, known := part.Get()
		if !known {
			return Absent[string](part.Source, part.Reason)
		}
		texts = append(texts, text)
	}
	source := parts[0].Source + " and its drop-ins"
	text, err := MergeKubeletConfigurations(texts...)
	if err != nil {
		return Absent[string](source, err.Error())
	}
	return Known(text, source)
}

// MergeKubeletConfigurations merges configurations, YAML or JSON, as the kubelet merges drop-ins over its file: each is a JSON
// merge patch of what came before. The result is JSON.
func MergeKubeletConfigurations(texts ...string) (string, error) {
	merged := map[string]any{}
	var left []any
	for _, text := range texts {
		fields := map[string]any{}
		if err := yaml.Unmarshal([]byte(text), &fields); err != nil {
			return "", fmt.Errorf("not a KubeletConfiguration: %w", err)
		}
		omitted, _ := fields[OmittedFields].([]any)
		left = append(left, omitted...)
		merged = mergepatch.Merge(merged, fields)
	}
	if len(left) > 0 {
		merged[OmittedFields] = left
	}
	text, err := json.Marshal(merged)
	return string(text), err
}

// kubeletProcess is the name of the kubelet's process. K3s has none: its kubelet is a part of itself.
const kubeletProcess = "kubelet"

// kubeletFlags are the flags of the running kubelet that bear on its configuration. A flag has more weight than any file.
func (r *reader) kubeletFlags() Fact[[]string] {
	pid := r.kubelet
	if pid == 0 {
		pid = r.findKubelet()
	}
	if pid == 0 {
		return Absent[[]string](procRoot, "no process of a kubelet is to be seen")
	}
	file := procRoot + "/" + strconv.Itoa(pid) + "/cmdline"
	line, err := r.peek(file, smallFile)
	kept := KubeletFlags(line)
	r.taken.file(file, strings.Join(append([]string{kubeletProcess}, kept...), "\x00")+"\x00", err)
	if err != nil {
		return Absent[[]string](file, reasonOf(err))
	}
	return Known(kept, file)
}

// findKubelet looks for the kubelet where readProcesses did not.
func (r *reader) findKubelet() int {
	if r.processesSeen {
		return 0
	}
	names, err := r.peekList(procRoot, func(e entry) bool {
		_, ok := numberIn(e.name, "", "")
		return ok
	})
	if err != nil {
		return 0
	}
	for _, pid := range numbersIn(names, "", "") {
		if content, err := r.peek(procRoot+"/"+strconv.Itoa(pid)+"/comm", smallFile); err == nil && strings.TrimSpace(content) == kubeletProcess {
			return pid
		}
	}
	return 0
}

// protectKernelDefaults is the one flag of those that are kept that is a switch: its value is never a word of its own.
const protectKernelDefaults = "protect-kernel-defaults"

// keptFlags are the names of the flags of a kubelet that are kept: where its configuration and its state are, those that stand for
// fields which plans set, and the one by which the kubelet wants to find parameters of the kernel as it expects them.
func keptFlags() []string {
	return []string{
		"config", "config-dir", "cpu-manager-policy", "cpu-manager-policy-options", "cpu-manager-reconcile-period", "eviction-hard",
		"kube-reserved", "memory-manager-policy", protectKernelDefaults, "reserved-cpus", "reserved-memory", "root-dir", "system-reserved", "topology-manager-policy",
		"topology-manager-policy-options", "topology-manager-scope",
	}
}

// essentialFlags keeps flags in the form --name=value; a value may be a word of its own.
func essentialFlags(words []string) []string {
	kept := []string{}
	for i, word := range words {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || !slices.Contains(keptFlags(), name) {
			continue
		}
		switch {
		case hasValue:
		case name == protectKernelDefaults:
			value = "true"
		case i+1 < len(words):
			value = words[i+1]
		}
		kept = append(kept, "--"+name+"="+strings.ToValidUTF8(value, ""))
	}
	return kept
}

// KubeletFlags are the flags of a kubelet's command line, as /proc shows it, by which its configuration is decided, as --name=value: where it
// is, where the kubelet keeps its state, and those that stand for fields which plans set.
func KubeletFlags(commandLine string) []string {
	return essentialFlags(strings.Split(strings.TrimRight(commandLine, "\x00"), "\x00"))
}

// essentialFlagText is essentialFlags of a text.
func essentialFlagText(text string) string {
	return strings.Join(essentialFlags(strings.Fields(text)), " ")
}

// flagValue is the last value of a flag, "" without it.
func flagValue(flags []string, name string) string {
	for _, flag := range slices.Backward(flags) {
		if value, found := strings.CutPrefix(flag, "--"+name+"="); found {
			return value
		}
	}
	return ""
}
