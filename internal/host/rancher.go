// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// rancherRoot has the configurations of K3s and RKE2, in folders of their names.
const rancherRoot = "/etc/rancher/"

// The arguments of K3s and RKE2 by which the configuration of their kubelet is decided; appended is the end of a key whose values are added to those of
// the files before.
const (
	rancherDataDir    = "data-dir"
	rancherKubeletArg = "kubelet-arg"
	appended          = "+"
)

// RancherProgram is the distribution of Rancher whose kubelet a unit runs: k3s or rke2; "" for any other unit.
func RancherProgram(unit string) string {
	if _, isRancher := rancherFolders()[unit]; !isRancher {
		return ""
	}
	program, _, _ := strings.Cut(strings.TrimSuffix(unit, ".service"), "-")
	return program
}

// rancherArguments are the arguments of K3s and RKE2, as --name=value, that their files give them: config.yaml, and those of config.yaml.d in the order
// of their names, where a later file has more weight (docs.k3s.io, "Configuration Options"). Without a file there are none.
func (r *reader) rancherArguments(unit Fact[string]) Fact[[]string] {
	program := RancherProgram(unit.Value)
	if program == "" {
		return Absent[[]string](unit.Source, "no service of K3s or RKE2 runs")
	}
	file := rancherRoot + program + "/config.yaml"
	given := map[string][]string{}
	found := Known[[]string](nil, file)
	files, err := r.rancherFiles(file)
	if err != nil {
		return Absent[[]string](file+".d", reasonOf(err))
	}
	for _, name := range files {
		text, err := r.content(name, smallFile)
		switch {
		case err == nil:
			err = addRancherArguments(given, text)
		case errors.Is(err, fs.ErrNotExist) && (r.complete || slices.Contains(r.missing, name)):
			r.taken.lack(name)
			continue
		}
		if err != nil {
			return Absent[[]string](name, reasonOf(err))
		}
	}
	for _, key := range []string{rancherDataDir, rancherKubeletArg} {
		for _, value := range given[key] {
			found.Value = append(found.Value, "--"+key+"="+value)
		}
	}
	return found
}

// rancherFiles are a file of configuration and those of its folder, in the order in which they are read.
func (r *reader) rancherFiles(file string) ([]string, error) {
	names, err := r.peekList(file+".d", func(e entry) bool { return strings.HasSuffix(e.name, ".yaml") || strings.HasSuffix(e.name, ".yml") })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	slices.Sort(names)
	files := []string{file}
	for _, name := range names {
		files = append(files, file+".d/"+name)
	}
	return files, nil
}

// addRancherArguments adds what a file gives to what those before it gave.
func addRancherArguments(given map[string][]string, text string) error {
	fields, err := rancherFields(text)
	if err != nil {
		return err
	}
	for _, key := range []string{rancherDataDir, rancherKubeletArg} {
		if values, found := fields[key]; found {
			given[key] = values
		}
		given[key] = append(given[key], fields[key+appended]...)
	}
	return nil
}

// rancherFields are the arguments in a file that matter, a value being a list of one.
func rancherFields(text string) (map[string][]string, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &all); err != nil {
		return nil, errors.New("no table of arguments in YAML")
	}
	kept := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value := all[key]
		name := strings.TrimSuffix(key, appended)
		if name == "d" {
			name = rancherDataDir
		}
		if name != rancherDataDir && name != rancherKubeletArg {
			continue
		}
		values, isList := value.([]any)
		if !isList && value != nil {
			values = []any{value}
		}
		if strings.HasSuffix(key, appended) {
			name += appended
		}
		// A key without values takes away those of the files before.
		texts := append([]string{}, kept[name]...)
		for _, value := range values {
			texts = append(texts, fmt.Sprint(value))
		}
		kept[name] = texts
	}
	return kept, nil
}

// essentialRancher keeps the arguments that matter, and of those for the kubelet the flags that do. The rest has the token of the cluster, addresses and
// labels. What is no configuration says only that.
func essentialRancher(content string) string {
	fields, err := rancherFields(content)
	if err != nil {
		return "not a configuration\n"
	}
	for _, key := range []string{rancherKubeletArg, rancherKubeletArg + appended} {
		if values, found := fields[key]; found {
			fields[key] = slices.DeleteFunc(values, func(value string) bool { return len(essentialFlags([]string{"--" + value})) == 0 })
		}
	}
	text, err := yaml.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(text)
}
