// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/hack/kustomization"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/installer"
)

const (
	// generated begins the names of the files that this program writes.
	generated = "zz_generated."
	// agentNamespace stands in the manifests for the namespace of the agents.
	agentNamespace = "lowlatency-operator-agents"
)

// question is something that users of the chart decide, and that kustomize decides by overlays. The first answer is the default.
type question struct {
	value   string
	answers []answer
}

// answer is a value with the folders of config/ that it adds.
type answer struct {
	value                 string
	resources, components []string
}

// wholeNamespace is a namespace that is all of a value: without quotes, YAML reads one such as 2024 as a number.
var wholeNamespace = regexp.MustCompile(`(?m)^( *(?:- )?\w+: \{\{ \.Values\.namespaces\.(?:operator|agents)) \}\}$`)

// questionCount is how many questions there are.
const questionCount = 4

// questions are those of all templates.
func questions() [questionCount]question {
	return [...]question{
		{".Values.platform", []answer{
			{"OpenShift", []string{"scc"}, []string{"agent-openshift"}}, {"Kubernetes", nil, nil},
			{"K3s", nil, []string{"agent-k3s"}}, {"RKE2", nil, []string{"agent-rke2"}},
		}},
		// The default follows the platform, so that the helper of the chart answers.
		{`(include "lowlatency-operator.monitoring" .)`, []answer{
			{"Enabled", nil, []string{"prometheus"}}, {"CertManager", nil, []string{"prometheus-cert-manager"}},
			{"Unverified", nil, []string{"prometheus-unverified"}}, {"Disabled", nil, nil},
		}},
		{".Values.agents", []answer{{"Read", nil, nil}, {"Repair", nil, []string{"agent-repair"}}}},
		{".Values.enactment", []answer{{"Disabled", nil, nil}, {"Enabled", nil, []string{"enactment"}}}},
	}
}

// addition is what an answer to a question of its own adds beside all others: the objects of a folder that no overlay changes.
type addition struct {
	value, answer, folder string
}

// additions are those of all templates. What has no addition, such as the answer "Disabled", adds nothing.
func additions() []addition {
	return []addition{
		{".Values.dashboard", "Console", "dashboard"},
		{".Values.dashboard", "Grafana", "dashboard-grafana"},
	}
}

// combination has the index of an answer for each question.
type combination [questionCount]int

func combinations() []combination {
	all := []combination{{}}
	for index, asked := range questions() {
		given := all
		all = nil
		for number := range asked.answers {
			for _, before := range given {
				all = append(all, before.with(index, number))
			}
		}
	}
	return all
}

// with gives another answer to one question.
func (c combination) with(question, answer int) combination {
	c[question] = answer
	return c
}

// overlay is the deployment that the answers want.
func (c combination) overlay() kustomization.Overlay {
	overlay := kustomization.Overlay{Resources: []string{"default"}}
	for index, asked := range questions() {
		given := asked.answers[c[index]]
		overlay.Resources = append(overlay.Resources, given.resources...)
		overlay.Components = append(overlay.Components, given.components...)
	}
	return overlay
}

// condition is the template's expression for the answers to some questions.
func (c combination) condition(asked []int) string {
	terms := make([]string, 0, len(asked))
	for _, index := range asked {
		one := questions()[index]
		terms = append(terms, fmt.Sprintf("(eq %s %q)", one.value, one.answers[c[index]].value))
	}
	return "and " + strings.Join(terms, " ")
}

// object is one object under all answers; its text is empty where it is not there.
type object struct {
	kind, name string
	texts      map[combination]string
}

// generate returns the templates by the rest of their names.
func generate(source string) (map[string]string, error) {
	objects, err := collect(source)
	if err != nil {
		return nil, err
	}
	templates := map[string]string{}
	for _, one := range objects {
		add(templates, one.kind, one.template())
	}
	for _, one := range additions() {
		if err := one.collect(source, templates); err != nil {
			return nil, err
		}
	}
	return templates, nil
}

// add puts an object to the others of its kind.
func add(templates map[string]string, kind, text string) {
	name := strings.ToLower(kind) + ".yaml"
	if templates[name] == "" {
		templates[name] = "# Generated from config/ by hack/helm.\n"
	}
	templates[name] += text
}

// collect builds the folder of an addition.
func (a addition) collect(source string, templates map[string]string) error {
	built, err := kustomization.Build(filepath.Join(source, a.folder))
	if err != nil {
		return err
	}
	for _, one := range built {
		text, err := spell(one)
		if err != nil {
			return fmt.Errorf("writing %s %s: %w", one.GetKind(), one.GetName(), err)
		}
		add(templates, one.GetKind(), fmt.Sprintf("{{- if eq %s %q }}\n---\n%s{{- end }}\n", a.value, a.answer, text))
	}
	return nil
}

// collect builds all overlays.
func collect(source string) ([]*object, error) {
	found := map[string]*object{}
	for _, answers := range combinations() {
		built, err := kustomization.BuildOverlay(source, answers.overlay())
		if err != nil {
			return nil, err
		}
		for _, one := range built {
			key := strings.Join([]string{one.GetKind(), one.GetNamespace(), one.GetName()}, "/")
			if found[key] == nil {
				found[key] = &object{kind: one.GetKind(), name: one.GetName(), texts: map[combination]string{}}
			}
			if found[key].texts[answers], err = spell(one); err != nil {
				return nil, fmt.Errorf("writing %s: %w", key, err)
			}
		}
	}
	keys := make([]string, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, cmp.Compare[string])
	objects := make([]*object, 0, len(keys))
	for _, key := range keys {
		objects = append(objects, found[key])
	}
	return objects, nil
}

// spell writes an object as a template without conditions.
func spell(one *unstructured.Unstructured) (string, error) {
	if one.GetKind() == "CustomResourceDefinition" {
		// With its definition would go every profile, and with the profiles the tuning of all nodes.
		annotations := one.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["helm.sh/resource-policy"] = "keep"
		one.SetAnnotations(annotations)
	}
	content, err := yaml.Marshal(one.Object)
	if err != nil {
		return "", err
	}
	text := strings.NewReplacer(
		"{{", `{{ "{{" }}`,
		"}}", `{{ "}}" }}`,
		"image: "+installer.SourceTrafficImage, `image: {{ include "lowlatency-operator.trafficImage" . | quote }}`,
		"image: "+installer.SourceImage, `image: {{ include "lowlatency-operator.image" . | quote }}`,
		"app.kubernetes.io/managed-by: kustomize", "app.kubernetes.io/managed-by: {{ .Release.Service }}",
		installer.SourceNamespace, "{{ .Values.namespaces.operator }}",
		agentNamespace, "{{ .Values.namespaces.agents }}",
	).Replace(string(content))
	text = wholeNamespace.ReplaceAllString(text, "$1 | quote }}")
	switch one.GetKind() {
	case "ServiceMonitor", "PrometheusRule":
		// A Prometheus may take only those with a label of its own.
		text = strings.Replace(text, "  labels:\n", "  labels:\n    {{- with .Values.monitoringLabels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}\n", 1)
	case "ServiceAccount":
		// Its pods have them all, those that the operator makes, too.
		text += "{{- with .Values.imagePullSecrets }}\nimagePullSecrets:\n{{- toYaml . | nindent 0 }}\n{{- end }}\n"
	case "Deployment":
		text = strings.Replace(text, "        - --leader-elect\n",
			"        - --leader-elect\n        {{- if ne .Values.namespaces.agents \""+agentNamespace+"\" }}\n"+
				"        - --agent-namespace={{ .Values.namespaces.agents }}\n        {{- end }}\n", 1)
	}
	return text, nil
}

// template is the object under all values.
func (o *object) template() string {
	text := o.choose()
	switch {
	case o.kind == "CustomResourceDefinition":
		return "{{- if eq .Values.crds \"Install\" }}\n" + text + "{{- end }}\n"
	case o.kind == "Namespace" && o.name == installer.SourceNamespace:
		return "{{- if ne .Release.Namespace .Values.namespaces.operator }}\n" + text + "{{- end }}\n"
	case o.kind == "Namespace":
		return "{{- if ne .Release.Namespace .Values.namespaces.agents }}\n" + text + "{{- end }}\n"
	}
	return text
}

// choose lists the texts with the answers that lead to them.
func (o *object) choose() string {
	asked := o.asked()
	if len(asked) == 0 {
		return "---\n" + o.texts[combination{}]
	}
	var texts []string
	conditions := map[string][]string{}
	for _, answers := range combinations() {
		text := o.texts[answers]
		if text == "" || answers != answers.only(asked) {
			continue
		}
		if conditions[text] == nil {
			texts = append(texts, text)
		}
		conditions[text] = append(conditions[text], answers.condition(asked))
	}
	var text strings.Builder
	for index, one := range texts {
		word, condition := "else if", conditions[one][0]
		if index == 0 {
			word = "if"
		}
		if len(conditions[one]) > 1 {
			condition = "or (" + strings.Join(conditions[one], ") (") + ")"
		}
		fmt.Fprintf(&text, "{{- %s %s }}\n---\n%s", word, condition, one)
	}
	return text.String() + "{{- end }}\n"
}

// asked are the questions on which the object depends.
func (o *object) asked() []int {
	var asked []int
	for index := range questions() {
		if slices.ContainsFunc(combinations(), func(c combination) bool { return o.texts[c] != o.texts[c.with(index, 0)] }) {
			asked = append(asked, index)
		}
	}
	return asked
}

// only gives the default answer to all but some questions.
func (c combination) only(asked []int) combination {
	var kept combination
	for _, index := range asked {
		kept[index] = c[index]
	}
	return kept
}
