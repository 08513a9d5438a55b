// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package crdschema

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	parsed := &unstructured.Unstructured{}
	if err := parsed.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return parsed
}

func TestValidate(t *testing.T) {
	const head = `
apiVersion: lowlatency.dev/v1alpha1
kind: LowLatencyNodeProfile
metadata: {name: trading}
spec:
  nodeSelector: {matchLabels: {a: b}}
`
	cases := map[string]struct {
		text string
		want []string
	}{
		"a valid profile": {text: head},
		"an unknown field": {
			text: head + "  cpu: {}\n",
			want: []string{`spec.cpu: Forbidden: unknown field; did you mean cpus?`},
		},
		"a wrong type and a required field": {
			text: "apiVersion: lowlatency.dev/v1alpha1\nkind: LowLatencyNodeProfile\nmetadata: {name: a}\nspec: {memory: {hugepages: 3}}\n",
			want: []string{
				`spec.memory.hugepages: Invalid value: "integer": spec.memory.hugepages in body must be of type array: "integer"`,
				`spec.nodeSelector: Required value`,
			},
		},
		"a value outside an enumeration hides the rules": {
			text: head + "  cpus: {partition: Explicit, tick: Maybe}\n",
			want: []string{`spec.cpus.tick: Unsupported value: "Maybe": supported values: "Stopped", "Periodic"`},
		},
		"a broken CEL rule": {
			text: head + "  cpus: {partition: Explicit}\n",
			want: []string{`spec.cpus: Invalid value: spec.cpus.explicit must be set when spec.cpus.partition is Explicit, and only then.`},
		},
		"a broken rule of the whole object": {
			text: "apiVersion: lowlatency.dev/v1alpha1\nkind: LowLatencyNodeProfile\n" +
				"metadata: {name: a-name-of-more-than-forty-characters-length}\nspec: {nodeSelector: {matchLabels: {a: b}}}\n",
			want: []string{`<nil>: Invalid value: metadata.name must be at most 40 characters long, because the names of machine config pools are made from it.`},
		},
		"a list key twice": {
			text: head + "  system: {stopServices: [a.service, a.service]}\n",
			want: []string{`spec.system.stopServices[1]: Duplicate value: "a.service"`},
		},
		"a bad name": {
			text: "apiVersion: lowlatency.dev/v1alpha1\nkind: LowLatencyNodeProfile\nmetadata: {name: A_b}\nspec: {nodeSelector: {matchLabels: {a: b}}}\n",
			want: []string{`metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		},
		"another kind": {
			text: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
			want: []string{`kind: Unsupported value: "Pod": supported values: "BypassNICPool", "LatencyTest", "LowLatencyNode", "LowLatencyNodeProfile"`},
		},
	}
	schemas, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			errs := schemas.Validate(t.Context(), object(t, tc.text))
			got := make([]string, 0, len(errs))
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Validate (-want +got):\n%s", diff)
			}
		})
	}
}

func TestKnows(t *testing.T) {
	schemas, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]bool{"LowLatencyNodeProfile": true, "LowLatencyNode": true, "Pod": false} {
		got, err := schemas.Knows(schema.GroupVersionKind{Group: "lowlatency.dev", Version: "v1alpha1", Kind: kind})
		if got != want || err != nil {
			t.Errorf("Knows(%s) = %t, %v, want %t", kind, got, err, want)
		}
	}
}

func TestLoadRefusesBrokenDefinitions(t *testing.T) {
	const named = `"spec": {"group": "a", "names": {"kind": "A"}, "scope": "Cluster", "versions": [{"name": "v1", "served": true, `
	cases := map[string]string{
		"no JSON":        "\t",
		"unknown field":  `{"kind": "CustomResourceDefinition", "specification": {}}`,
		"twice":          `{` + named + `"served": true}]}}`,
		"not structural": `{` + named + `"schema": {"openAPIV3Schema": {"type": "object", "$ref": "#/definitions/a"}}}]}}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			schemas, err := load(fstest.MapFS{"schemas/A.json": {Data: []byte(text)}})
			if err == nil {
				_, err = schemas.Knows(schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "A"})
			}
			if err == nil {
				t.Error("it was accepted")
			}
		})
	}
}
