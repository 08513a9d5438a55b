// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package kubernetes

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/kubeletfiles"
)

// rancherPrograms are the distributions that tell on a Node what they were started with (pkg/nodeconfig of K3s, from which RKE2 has it, too).
func rancherPrograms() []string { return []string{"k3s", "rke2"} }

func argumentsAnnotation(program string) string   { return program + ".io/node-args" }
func environmentAnnotation(program string) string { return program + ".io/node-env" }

// NodeAnnotations are the annotations of a Node that CheckNodeArguments reads.
func NodeAnnotations() []string {
	names := make([]string, 0, 2*len(rancherPrograms()))
	for _, program := range rancherPrograms() {
		names = append(names, argumentsAnnotation(program), environmentAnnotation(program))
	}
	return names
}

// CheckNodeArguments says why a plan would be of no use on a node of K3s or RKE2, by the annotations of its Node; "" where they say nothing against it.
// An agent sees neither where such a service keeps its data, nor the flags that K3s gives its kubelet: the files of /etc/rancher, by which writeKubelet goes
// on the host itself, have secrets and are not mounted. The arguments there are those of the command line and of config.yaml and config.yaml.d alike.
func CheckNodeArguments(annotations map[string]string) string {
	for _, program := range rancherPrograms() {
		arguments, environment := argumentsAnnotation(program), environmentAnnotation(program)
		text, found := annotations[arguments]
		if !found {
			continue
		}
		var words []string
		if err := json.Unmarshal([]byte(text), &words); err != nil {
			return unreadableArguments(program, arguments, "list of words")
		}
		given := argumentsOf(words)
		variables := map[string]string{}
		// Without the annotation there was no variable of the service's.
		if text := annotations[environment]; text != "" && json.Unmarshal([]byte(text), &variables) != nil {
			return unreadableArguments(program, environment, "table of variables")
		}
		if folder := variables[strings.ToUpper(program)+"_DATA_DIR"]; folder != "" {
			given = append([]argument{{dataDir, folder}}, given...)
		}
		if why := refusedArgument(program, given); why != "" {
			return why
		}
	}
	return ""
}

func unreadableArguments(program, annotation, expected string) string {
	return fmt.Sprintf("what its service was started with is not known, because the annotation %s of its Node is no %s; start %s on it again, which writes it anew", annotation, expected, program)
}

const (
	dataDir         = "data-dir"
	kubeletArgument = "kubelet-arg"
)

type argument struct{ name, value string }

// argumentsOf are the arguments with a value that matter, written as --x=y or as two words.
func argumentsOf(words []string) []argument {
	var given []argument
	for i, word := range words {
		name, value, hasValue := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if name == "d" {
			name = dataDir
		}
		if !strings.HasPrefix(word, "-") || name != dataDir && name != kubeletArgument {
			continue
		}
		if !hasValue && i+1 < len(words) {
			value = words[i+1]
		}
		given = append(given, argument{name, value})
	}
	return given
}

// refusedArgument says which argument stands in the way. Of several data-dirs the last counts.
func refusedArgument(program string, given []argument) string {
	usual := "/var/lib/rancher/" + program
	folder := usual
	for _, a := range given {
		if a.name == dataDir {
			folder = a.value
			continue
		}
		if why := refusedFlag(a.value); why != "" {
			return fmt.Sprintf("%s; take it out of kubelet-arg, in /etc/rancher/%s/config.yaml, config.yaml.d or the unit, and start %s again", why, program, program)
		}
	}
	if path.Clean(folder) != usual {
		return fmt.Sprintf("%s was started with data-dir %s, and its kubelet reads files in %s/agent/etc/kubelet.conf.d, which are not written; mount that folder at %s (mount --bind), and start %s without data-dir",
			program, folder, path.Clean(folder), usual, program)
	}
	return ""
}

// refusedFlag says what is wrong with a flag that kubelet-arg gives to the kubelet. Of "config" and "config-dir" the service makes files.
func refusedFlag(given string) string {
	for _, flag := range host.KubeletFlags("--" + given) {
		switch {
		case kubeletfiles.IsElsewhere(flag):
			return fmt.Sprintf("its kubelet is started with %s, and what it remembers there is removed in %s only", flag, kubeletfiles.Root)
		case kubeletfiles.Outweighs(flag):
			return fmt.Sprintf("its kubelet is started with %s, which has more weight than any file", flag)
		}
	}
	return ""
}
