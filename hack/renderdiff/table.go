// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// place is where something differs: a kind and a field of it.
type place struct{ kind, field string }

// difference is how often something differs in one place, and the first case of it.
type difference struct {
	count                    int
	input, host, left, right string
}

// table collects differences.
type table struct {
	renderings, refusals, objects, equal int
	places                               map[place]*difference
}

func newTable() *table { return &table{places: map[place]*difference{}} }

// render compares what two builds render.
func (t *table) render(input, host string, left, right rendered) {
	host, _, _ = strings.Cut(host, "=")
	t.renderings++
	if left.refusal != "" || right.refusal != "" {
		t.refusals++
		t.add(place{"(nothing)", "refusal"}, input, host, left.refusal, right.refusal)
		return
	}
	was, is := groupName(left.objects), groupName(right.objects)
	t.add(place{"(names)", "group of nodes"}, input, host, was, is)
	for i := range max(len(left.objects), len(right.objects)) {
		t.objects++
		a, b := rename(at(left.objects, i), was, is), at(right.objects, i)
		before, after := flatten(a), flatten(b)
		if maps.Equal(before, after) {
			t.equal++
		}
		kind := fmt.Sprint(cmp.Or(b["kind"], a["kind"]))
		for _, field := range slices.Sorted(maps.Keys(union(before, after))) {
			t.add(place{kind, generic(field)}, input, host, before[field], after[field])
		}
	}
}

// groupName is the name of the group of nodes that is made, "" for one that exists already.
func groupName(objects []map[string]any) string {
	for _, object := range objects {
		if metadata, ok := object["metadata"].(map[string]any); ok && object["kind"] == "MachineConfigPool" {
			return fmt.Sprint(metadata["name"])
		}
	}
	return ""
}

// rename gives an object the name that its group of nodes has now, so that a changed name counts once.
func rename(object map[string]any, was, is string) map[string]any {
	if was == "" || was == is {
		return object
	}
	text, err := json.Marshal(object)
	if err != nil {
		return object
	}
	var renamed map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(text, []byte(was), []byte(is)), &renamed); err != nil {
		return object
	}
	return renamed
}

// text compares two texts line by line.
func (t *table) text(input, what, left, right string) {
	if left != right {
		t.add(place{"(" + what + ")", "text"}, input, "", left, right)
	}
}

func (t *table) add(p place, input, host, left, right string) {
	if left == right {
		return
	}
	if t.places[p] == nil {
		t.places[p] = &difference{input: input, host: host, left: left, right: right}
	}
	t.places[p].count++
}

// print writes the table and reports whether nothing but the plan differs.
func (t *table) print(out io.Writer) (bool, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "%d renderings, %d of them refused; %d objects, %d of them equal\n", t.renderings, t.refusals, t.objects, t.equal)
	text.WriteString("COUNT\tKIND\tFIELD\tFIRST SEEN\tBEFORE\tAFTER\n")
	expected := true
	for _, p := range slices.SortedFunc(maps.Keys(t.places), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.field, b.field))
	}) {
		d := t.places[p]
		expected = expected && p.isPlan()
		fmt.Fprintf(&text, "%d\t%s\t%s\t%s %s\t%s\t%s\n", d.count, p.kind, p.field, d.input, d.host, short(d.left), short(d.right))
	}
	writer := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	if _, err := io.WriteString(writer, text.String()); err != nil {
		return false, err
	}
	return expected, writer.Flush()
}

// isPlan reports whether the place is the plan, its hash, or a name made of the hash.
func (p place) isPlan() bool {
	return p.field == "metadata.annotations[lowlatency.dev/plan-hash]" ||
		p.kind == "ConfigMap" && (p.field == "metadata.name" || strings.HasPrefix(p.field, "data[plan.json]"))
}

func short(text string) string {
	const limit = 60
	text = fmt.Sprintf("%q", text)
	if len(text) > limit {
		return text[:limit] + "…"
	}
	return text
}

func at(objects []map[string]any, i int) map[string]any {
	if i < len(objects) {
		return objects[i]
	}
	return nil
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// generic leaves the keys of list elements out of a field.
func generic(field string) string {
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(field, "[]")
}

// flatten lists the values of an object by their fields. Files and plans, which are texts in texts, are taken apart.
func flatten(object map[string]any) map[string]string {
	all := map[string]string{}
	flattenInto(all, "", object)
	return all
}

func flattenInto(all map[string]string, field string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, inner := range value {
			flattenInto(all, join(field, key), inner)
		}
	case []any:
		for i, inner := range value {
			flattenInto(all, field+"{"+name(inner, i)+"}", inner)
		}
	case string:
		flattenText(all, field, value)
	default:
		all[field] = fmt.Sprint(value)
	}
}

func join(field, key string) string {
	switch {
	case strings.ContainsAny(key, "./"):
		return field + "[" + key + "]"
	case field == "":
		return key
	default:
		return field + "." + key
	}
}

// name identifies an element of a list by what it calls itself, else by its place.
func name(element any, at int) string {
	if fields, ok := element.(map[string]any); ok {
		for _, key := range []string{"path", "name", "text"} {
			if text, ok := fields[key].(string); ok {
				return strings.NewReplacer("{", "(", "}", ")").Replace(text)
			}
		}
	}
	return strconv.Itoa(at)
}

func flattenText(all map[string]string, field, text string) {
	if encoded, found := strings.CutPrefix(text, "data:text/plain;charset=utf-8;base64,"); found {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			all[field] = string(decoded)
			return
		}
	}
	var inner any
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &inner) == nil {
		flattenInto(all, field, inner)
		return
	}
	all[field] = text
}
