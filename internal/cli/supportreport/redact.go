// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package supportreport

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cmdline"
)

// redactedValue stands for what is left out.
const redactedValue = "REDACTED"

// isReadAnnotation reports whether somebody who helps needs an annotation of a Node.
func isReadAnnotation(name string) bool {
	prefix, _, _ := strings.Cut(name, "/")
	return prefix == v1alpha1.GroupVersion.Group || prefix == "machineconfiguration.openshift.io"
}

// names are those that a redacted report replaces, by what they are the names of.
type names struct {
	nodes, pods, namespaces, containers map[string]bool
}

func newNames() *names {
	return &names{nodes: map[string]bool{}, pods: map[string]bool{}, namespaces: map[string]bool{}, containers: map[string]bool{}}
}

// learn notes the names in an object.
func (n *names) learn(folder string, object map[string]any) {
	metadata := fields(object, "metadata")
	name, _ := metadata["name"].(string)
	switch folder {
	case "lowlatencynodes":
		n.nodes[name] = true
	case "nodes":
		n.nodes[name] = true
		if label, _ := fields(metadata, "labels")["kubernetes.io/hostname"].(string); label != "" {
			n.nodes[label] = true
		}
		n.learnAddresses(object)
	case testsFolder:
		n.learnTest(object)
	}
	n.learnPods(object)
}

// learnTest notes the nodes of a LatencyTest, which need not have a LowLatencyNode, and its namespace.
func (n *names) learnTest(test map[string]any) {
	if namespace, _ := fields(test, "metadata")["namespace"].(string); namespace != "" {
		n.namespaces[namespace] = true
	}
	named, _ := fields(fields(test, "spec"), "nodes")["names"].([]any)
	for _, entry := range named {
		if name, _ := entry.(string); name != "" {
			n.nodes[name] = true
		}
	}
	results, _ := fields(test, "status")["results"].([]any)
	for _, entry := range results {
		result, _ := entry.(map[string]any)
		if name, _ := result["node"].(string); name != "" {
			n.nodes[name] = true
		}
	}
}

// learnAddresses notes the names among the addresses of a Node.
func (n *names) learnAddresses(node map[string]any) {
	addresses, _ := fields(node, "status")["addresses"].([]any)
	for _, entry := range addresses {
		address, _ := entry.(map[string]any)
		text, _ := address["address"].(string)
		if kind, _ := address["type"].(string); text != "" && !strings.HasSuffix(kind, "IP") {
			n.nodes[text] = true
		}
	}
}

// learnPods notes the names of pods that something names together with their namespace.
func (n *names) learnPods(value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			n.learnPods(each)
		}
	case map[string]any:
		pod, isPod := value["pod"].(string)
		namespace, inNamespace := value["namespace"].(string)
		if isPod && inNamespace {
			n.pods[pod], n.namespaces[namespace] = true, true
			if container, ok := value["container"].(string); ok {
				n.containers[container] = true
			}
		}
		for _, each := range value {
			n.learnPods(each)
		}
	}
}

// redactor replaces names in texts.
type redactor struct {
	replacements map[string]string
	nodes        map[string]string
	redacted     bool
}

// newRedactor numbers the names, so that what is sorted stays sorted.
func newRedactor(n *names, redacted bool) *redactor {
	r := &redactor{replacements: map[string]string{}, nodes: map[string]string{}, redacted: redacted}
	for format, set := range map[string]map[string]bool{
		"container-%03d": n.containers, "namespace-%03d": n.namespaces, "pod-%03d": n.pods,
	} {
		for i, name := range slices.Sorted(maps.Keys(set)) {
			r.replacements[name] = fmt.Sprintf(format, i+1)
		}
	}
	for i, name := range slices.Sorted(maps.Keys(n.nodes)) {
		r.nodes[name] = fmt.Sprintf("node-%03d", i+1)
		r.replacements[name] = r.nodes[name]
	}
	delete(r.replacements, "")
	return r
}

// credentials are a user and a password in a URL, such as that of a proxy.
var credentials = regexp.MustCompile(`(://)[^/\s:@"']+:[^/\s@"']+@`)

// word is what a name can be in.
var word = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9.-]*`)

// text is a text without credentials, and without the names that are to be replaced.
func (r *redactor) text(content []byte) []byte {
	content = credentials.ReplaceAll(content, []byte("${1}"+redactedValue+"@"))
	if !r.redacted {
		return content
	}
	content = word.ReplaceAllFunc(content, func(found []byte) []byte { return []byte(r.word(string(found))) })
	return []byte(host.WithoutAddresses(string(content)))
}

// word replaces a name that is a word, the first labels of a domain name, or, of a node, the end of another name: pods of
// the platform are named after their node.
func (r *redactor) word(found string) string {
	trimmed := strings.TrimRight(found, ".-")
	rest := found[len(trimmed):]
	if replaced, ok := r.replacements[trimmed]; ok {
		return replaced + rest
	}
	for at := len(trimmed) - 1; at > 0; at-- {
		switch trimmed[at] {
		case '.':
			if replaced, ok := r.replacements[trimmed[:at]]; ok {
				return replaced + ".domain" + rest
			}
		case '-':
			if replaced, ok := r.nodes[trimmed[at+1:]]; ok {
				return trimmed[:at+1] + replaced + rest
			}
		}
	}
	return found
}

// path replaces the names in a path.
func (r *redactor) path(name string) string {
	folder, base := path.Split(name)
	kind := ""
	for _, known := range []string{".yaml", ".json", ".tar.gz"} {
		if strings.HasSuffix(base, known) {
			kind = known
		}
	}
	parts := strings.Split(folder+strings.TrimSuffix(base, kind), "/")
	for i := range parts {
		parts[i] = string(r.text([]byte(parts[i])))
	}
	return strings.Join(parts, "/") + kind
}

// redactArguments leaves out the values of kernel arguments that are not about the kernel, as in a snapshot.
func redactArguments(value any) {
	switch value := value.(type) {
	case []any:
		for _, each := range value {
			redactArguments(each)
		}
	case map[string]any:
		for name, each := range value {
			if strings.HasSuffix(strings.ToLower(name), "arguments") {
				value[name] = withoutValues(each)
				continue
			}
			redactArguments(each)
		}
	}
}

// withoutValues redacts kernel arguments, in a list or in a line.
func withoutValues(arguments any) any {
	switch arguments := arguments.(type) {
	case string:
		words := strings.Fields(arguments)
		for i := range words {
			words[i] = withoutValue(words[i])
		}
		return strings.Join(words, " ")
	case []any:
		for i, each := range arguments {
			if text, ok := each.(string); ok {
				arguments[i] = withoutValue(text)
			}
		}
	}
	return arguments
}

func withoutValue(argument string) string {
	name, _, hasValue := strings.Cut(argument, "=")
	if !hasValue || cmdline.IsImpersonal(name) {
		return argument
	}
	return name + "=" + redactedValue
}
