// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package guard

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/kubeletfiles"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/kubelet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// checkKubeletFiles refuses operations with whose file the kubelet would not start, or would not do what that says, given its flags, its file
// and its other drop-ins as they are now: whoever wrote the operations saw those that were there then. Nothing is written yet.
func (g *Guard) checkKubeletFiles(operations []operation.Operation, process int) error {
	at := slices.IndexFunc(operations, func(o operation.Operation) bool { return o.Kind == operation.KubeletDropIn })
	if at < 0 {
		return nil
	}
	ours := &operations[at]
	texts, err := g.mergedWith(ours, process)
	if err != nil {
		return err
	}
	merged, err := host.MergeKubeletConfigurations(texts...)
	if err != nil {
		return fmt.Errorf("a file of the kubelet is %w", err)
	}
	if err := kubeletfiles.CheckMemory(merged); err != nil {
		return fmt.Errorf("the kubelet's files and %s together are refused: %w", ours.Path, err)
	}
	names, err := kubeletfiles.Overridden(ours.Content, merged)
	if err != nil {
		return fmt.Errorf("%s: %w", ours.Path, err)
	}
	if len(names) > 0 {
		return fmt.Errorf("another file of the kubelet is read after %s, and sets otherwise: %s", ours.Path, strings.Join(names, ", "))
	}
	return nil
}

// mergedWith are the texts that the kubelet will merge, in its order, with one of ours. Of a kubelet inside K3s or RKE2 the flags are not seen.
func (g *Guard) mergedWith(ours *operation.Operation, process int) ([]string, error) {
	var files []string
	if kubeletfiles.NeedsFile(ours.Path) {
		file, err := g.kubeletFile(process)
		if err != nil {
			return nil, err
		}
		if file != "" {
			files = append(files, file)
		}
	}
	dropIns, err := g.dropIns(path.Dir(ours.Path), path.Base(ours.Path))
	if err != nil {
		return nil, fmt.Errorf("looking for the kubelet's files: %w", err)
	}
	files = append(files, dropIns...)
	texts := make([]string, 0, len(files))
	for _, name := range files {
		if name == ours.Path {
			texts = append(texts, ours.Content)
			continue
		}
		text, err := g.readConfiguration(name)
		if err != nil {
			return nil, fmt.Errorf("what comes of the kubelet's files with %s is not known: %w", ours.Path, err)
		}
		texts = append(texts, text)
	}
	return texts, nil
}

// kubeletFile is the file below all drop-ins, "" for none. A flag that stands for a field has more weight than all files, and is refused.
func (g *Guard) kubeletFile(process int) (string, error) {
	file := kubelet.ReadFlags("").File
	line := hostfile.State{}
	if process != 0 {
		var err error
		if line, err = g.disk.Read(commandLineOf(process)); err != nil {
			return "", fmt.Errorf("reading the flags of the kubelet: %w", err)
		}
	}
	if line.Type != hostfile.Regular {
		// It does not run now. The file of kubeadm is the one with which it starts, if it is there.
		if now, err := g.disk.Read(file); err != nil || now.Type == hostfile.Absent {
			return "", err
		}
		return file, nil
	}
	file = ""
	for _, flag := range host.KubeletFlags(string(line.Content)) {
		switch {
		case kubeletfiles.IsElsewhere(flag):
			return "", fmt.Errorf("the kubelet is started with %s, and what it remembers there is removed in %s only: start it without the flag", flag, kubeletfiles.Root)
		case kubeletfiles.Outweighs(flag):
			return "", fmt.Errorf("the kubelet is started with %s, which the operations do not have in mind", flag)
		}
		if value, found := strings.CutPrefix(flag, "--config="); found {
			file = value
		}
	}
	return file, nil
}

func commandLineOf(process int) string { return path.Join("/proc", strconv.Itoa(process), "cmdline") }

// dropIns are the files of a folder and those below it that the kubelet merges, in its order, with more that are not there yet.
func (g *Guard) dropIns(folder string, more ...string) ([]string, error) {
	names, err := g.machine.Names(folder)
	if err != nil {
		return nil, err
	}
	names = slices.Concat(names, more)
	slices.Sort(names)
	var files []string
	for _, name := range slices.Compact(names) {
		name = path.Join(folder, name)
		now, err := g.disk.Read(name)
		switch {
		case err != nil:
			return nil, err
		case now.Type == hostfile.Folder:
			below, err := g.dropIns(name)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		case path.Ext(name) == ".conf":
			files = append(files, name)
		}
	}
	return files, nil
}

// readConfiguration reads a file of the kubelet, which follows links.
func (g *Guard) readConfiguration(name string) (string, error) {
	const most = 8
	at := name
	for range most {
		now, err := g.disk.Read(at)
		switch {
		case err != nil:
			return "", err
		case now.Type == hostfile.Regular:
			return string(now.Content), nil
		case now.Type != hostfile.Link:
			return "", fmt.Errorf("%s is %s", at, now)
		}
		target := string(now.Content)
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(at), target)
		}
		at = path.Clean(target)
	}
	return "", fmt.Errorf("%s is a link to a link, and so on", name)
}
