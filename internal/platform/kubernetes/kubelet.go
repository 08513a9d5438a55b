// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/kubeletfiles"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubeletconfig"
)

const (
	kubeletService = "kubelet.service"
	// dropInFolder is given to a kubelet that has none. It is the kubelet's own, so that whoever may read its state may read it.
	dropInFolder = "/var/lib/kubelet/kubelet.conf.d"
	stateCleanup = "/etc/tmpfiles.d/lowlatency-kubelet.conf"
	theKubelet   = "the kubelet"
)

// stateFiles are where the kubelet remembers its policies.
func stateFiles() []string {
	return []string{"/var/lib/kubelet/cpu_manager_state", "/var/lib/kubelet/memory_manager_state"}
}

// writeKubelet adds a file to the folder whose files the kubelet merges over its configuration. The configuration file
// itself belongs to whoever installed the kubelet.
func (w *writer) writeKubelet() error {
	if w.facts.Software.NoKubelet.Value {
		w.report(v1alpha1.SeverityLow, ruleKubelet, theKubelet, "Do this again once the host has joined a cluster, if it is to.",
			"the host has no kubelet: its part is left out")
		return nil
	}
	if program := host.RancherProgram(w.facts.Software.KubeletUnit.Value); program != "" {
		if why := refusedArgument(program, argumentsOf(w.facts.Software.RancherArguments.Value)); why != "" {
			w.report(v1alpha1.SeverityCritical, ruleKubeletFlags, theKubelet, "Render the plan again when that is done.", "%s", why)
			return nil
		}
	}
	folder, found := w.kubeletFolder()
	if !found {
		return nil
	}
	own := path.Join(folder, dropIn)
	before := w.otherConfigurations(own)
	content, err := w.kubeletContent(before.all)
	if err != nil {
		return err
	}
	w.add(operation.PutKubeletDropIn(own, string(content)))
	w.writeKubeletState()
	w.orderAfterUnits()
	w.checkFlags()
	return w.checkMerged(before, content)
}

// kubeletFolder finds the folder, or gives the kubelet one. Where neither can be done, nothing is written on the host.
func (w *writer) kubeletFolder() (string, bool) {
	kubelet, software := w.facts.Kubelet, w.facts.Software
	unit := software.KubeletUnit.Value
	folder := kubelet.DropInFolder.Value
	switch {
	case folder != "" && !operation.Allowed(operation.KubeletDropIn, path.Join(folder, dropIn)):
		w.report(v1alpha1.SeverityCritical, ruleKubelet, theKubelet,
			"Start it with --config-dir="+dropInFolder+", and move there what is in its folder.",
			"it reads %s, which is none of the folders that are written to", folder)
		return "", false
	case (folder == "" || folder == dropInFolder) && w.takesArguments():
		w.add(operation.PutDropIn(kubeletService, dropIn, fmt.Sprintf("[Service]\nEnvironment=\"KUBELET_CONFIG_ARGS=%s --config-dir=%s\"\n"+
			"Environment=KUBELET_CONFIG_DROPIN_DIR_ALPHA=true\n", software.KubeletConfigArguments.Value, dropInFolder)))
		return dropInFolder, true
	case folder != "":
		return folder, true
	case unit != "" && unit != kubeletService:
		w.report(v1alpha1.SeverityCritical, ruleKubelet, theKubelet, "Upgrade the node to Kubernetes 1.32 or later.",
			"%s has no folder of configuration for its kubelet", unit)
	default:
		w.report(v1alpha1.SeverityCritical, ruleKubelet, theKubelet,
			"Add --config-dir="+dropInFolder+" to its command line, and start it again.",
			"it reads no folder of configuration, and its service is not kubeadm's, so nobody but its owner can give it one")
	}
	return "", false
}

// takesArguments reports whether the service is kubeadm's, and gives the kubelet no folder by itself. One that runs with our
// folder all the same has it from our drop-in, which has to stay.
func (w *writer) takesArguments() bool {
	arguments, known := w.facts.Software.KubeletConfigArguments.Get()
	return known && w.facts.Software.KubeletUnit.Value == kubeletService && !strings.Contains(arguments, "--config-dir")
}

// configurations are the files of others that the kubelet merges, around the place of ours.
type configurations struct {
	// first and last are merged before and after ours; all is their merged text.
	first, last []string
	all         string
	// known is false when a part could not be read; missing names the first such, and why.
	known   bool
	missing string
}

// lack notes a part that could not be read.
func (c *configurations) lack(source, reason string) {
	if c.known {
		c.known, c.missing = false, fmt.Sprintf("%s (%s)", cmp.Or(source, "its configuration"), cmp.Or(reason, "nobody has reported it"))
	}
}

func (w *writer) otherConfigurations(own string) configurations {
	found := configurations{known: true}
	if dropIns := w.facts.Kubelet.DropIns; !dropIns.Known {
		// A folder that cannot be looked into may hold anything.
		found.lack(dropIns.Source, dropIns.Reason)
	}
	file := w.facts.Kubelet.File
	if text, known := file.Get(); known {
		found.first = append(found.first, text)
	} else if kubeletfiles.NeedsFile(own) {
		found.lack(file.Source, file.Reason)
	}
	for _, other := range w.facts.Kubelet.DropIns.Value {
		text, known := other.Content.Get()
		switch {
		case other.Path == own:
		case !known:
			found.lack(other.Path, other.Content.Reason)
		case other.Path < own:
			found.first = append(found.first, text)
		default:
			found.last = append(found.last, text)
		}
	}
	merged, err := host.MergeKubeletConfigurations(slices.Concat(found.first, found.last)...)
	if err != nil {
		w.report(v1alpha1.SeverityCritical, ruleKubeletMerged, theKubelet, "Mend the file.", "a file of its configuration is %s", err)
		return configurations{}
	}
	found.all = merged
	return found
}

// kubeletContent is the planned configuration. Of the maps of options, in which the kubelet merges names, it removes those that
// others set and the plan does not have.
func (w *writer) kubeletContent(others string) ([]byte, error) {
	raw, err := kubeletconfig.Print(w.plan.Kubelet)
	if err != nil {
		return nil, err
	}
	var fields, before map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("reading the kubelet configuration: %w", err)
	}
	if others != "" {
		if err := json.Unmarshal([]byte(others), &before); err != nil {
			return nil, fmt.Errorf("reading the kubelet configuration: %w", err)
		}
	}
	for _, name := range []string{"cpuManagerPolicyOptions", "topologyManagerPolicyOptions", "reservedMemory"} {
		removeOthers(fields, before, name)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(fields); err != nil {
		return nil, fmt.Errorf("printing the kubelet configuration: %w", err)
	}
	return out.Bytes(), nil
}

// removeOthers makes the planned value of a field the only one: null removes a name in a merge.
func removeOthers(fields, before map[string]any, name string) {
	if before[name] == nil {
		return
	}
	wanted, planned := fields[name].(map[string]any)
	if fields[name] == nil {
		fields[name] = nil
		return
	}
	others, _ := before[name].(map[string]any)
	for option := range others {
		if _, kept := wanted[option]; planned && !kept {
			wanted[option] = nil
		}
	}
}

// writeKubeletState removes what the kubelet remembers, now and at each boot: it refuses to start where its policies differ
// from those in the files, where the online CPUs do, and where the memory differs by a byte, as it may after any boot.
func (w *writer) writeKubeletState() {
	var lines strings.Builder
	for _, file := range stateFiles() {
		w.add(operation.RemoveStateFile(file))
		fmt.Fprintf(&lines, "r! %s\n", file)
	}
	w.add(operation.PutFile(stateCleanup, 0o644, lines.String()))
}

// orderAfterUnits lets the service of K3s or RKE2 wait for the planned units: these name the services of packages only.
func (w *writer) orderAfterUnits() {
	unit := w.facts.Software.KubeletUnit.Value
	if unit == "" || unit == kubeletService {
		return
	}
	var after, required []string
	for _, o := range w.Operations {
		if o.Kind != operation.Unit || !strings.Contains(o.Content, kubeletService) {
			continue
		}
		after = append(after, o.Name)
		if strings.Contains(o.Content, "RequiredBy="+kubeletService) {
			required = append(required, o.Name)
		}
	}
	slices.Sort(after)
	slices.Sort(required)
	text := "[Unit]\n"
	if len(required) > 0 {
		text += "Requires=" + strings.Join(required, " ") + "\n"
	}
	if w.hasTuneD() {
		after = append(after, tunedService)
	}
	if len(after) > 0 {
		w.add(operation.PutDropIn(unit, dropIn, text+"After="+strings.Join(after, " ")+"\n"))
	}
}

// checkFlags: a flag has more weight than any file. Of a kubelet inside K3s nobody sees them; K3s itself makes files of "config" and
// "config-dir" among its kubelet-arg, and gives the kubelet the rest as flags (extractConfigArgs in pkg/daemons/agent of K3s).
func (w *writer) checkFlags() {
	flags, known := w.facts.Kubelet.Flags.Get()
	if !known {
		w.report(v1alpha1.SeverityMedium, ruleKubeletFlags, theKubelet,
			"See that the service's unit and configuration (kubelet-arg in /etc/rancher/k3s/config.yaml and config.yaml.d) set nothing that the profile sets.",
			"which flags it is started with cannot be seen, and a flag has more weight than any file")
	}
	for _, flag := range flags {
		switch {
		case kubeletfiles.IsElsewhere(flag):
			w.report(v1alpha1.SeverityCritical, ruleKubeletFlags, theKubelet,
				"Start it without the flag, and mount the folder at "+kubeletfiles.Root+" (mount --bind) where it is to stay on its disk.",
				"it is started with %s, and what it remembers there, such as cpu_manager_state, is removed in %s only", flag, kubeletfiles.Root)
		case kubeletfiles.Outweighs(flag):
			w.report(v1alpha1.SeverityCritical, ruleKubeletFlags, theKubelet,
				"Remove the flag from where the kubelet's service takes it: its unit, /etc/default/kubelet, /etc/sysconfig/kubelet or /var/lib/kubelet/kubeadm-flags.env.",
				"it is started with %s, which has more weight than any file", flag)
		}
	}
}

// checkMerged computes what the kubelet makes of all files, and refuses what it would not start with.
func (w *writer) checkMerged(others configurations, content []byte) error {
	switch {
	case others.known:
	case others.missing == "":
		// It was read, and is no configuration, which is said already.
		return nil
	default:
		w.unread++
		w.report(v1alpha1.SeverityCritical, ruleKubeletMerged, theKubelet,
			"Have a kubelet that has joined its cluster, and look from where its configuration can be read: on the host, or by an agent that is installed with "+
				"config/agent-k3s or config/agent-rke2 where the kubelet is theirs.",
			"%s cannot be read, so what comes of its configuration with the planned one was not checked, and nothing is written", others.missing)
		return nil
	}
	merged, err := host.MergeKubeletConfigurations(slices.Concat(others.first, []string{string(content)}, others.last)...)
	if err != nil {
		return err
	}
	w.KubeletConfiguration = merged
	if err := kubeletconfig.Judge([]byte(merged)); err != nil {
		w.report(v1alpha1.SeverityCritical, ruleKubeletMerged, theKubelet, "Remove from the kubelet's other files what contradicts the profile.",
			"its files and the planned one together are refused: %s", err)
	}
	if err := w.checkProtected(merged); err != nil {
		return err
	}
	return w.checkOverridden(content, merged)
}

// checkOverridden finds what files behind ours set again.
func (w *writer) checkOverridden(content []byte, merged string) error {
	names, err := kubeletfiles.Overridden(string(content), merged)
	if err != nil {
		return err
	}
	for _, name := range names {
		w.report(v1alpha1.SeverityCritical, ruleKubeletMerged, theKubelet,
			"Remove the field from the files in its folder whose names come after "+dropIn+".",
			"one of its other files sets %s otherwise, and is read after the planned one", name)
	}
	return nil
}

func (w *writer) hasTuneD() bool { return w.facts.Software.TuneDProfiles.Value != "" }

// Rules are what kubeadm and the distributions of Kubernetes keep to themselves on a host.
func Rules() plan.PlatformRules {
	return plan.PlatformRules{
		KubeletFields: []string{"cgroupDriver", "clusterDNS", "clusterDomain", "containerRuntimeEndpoint", "staticPodPath"},
		Services:      []string{"k3s*.service", "rke2-*.service", "lowlatency-guard*"},
	}
}
