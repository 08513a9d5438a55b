// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package platform

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// What the operator renders is its own as a whole: what somebody adds to the content of such an object takes effect on
// nodes as if the operator had planned it. Server-side apply leaves it there, because it has another owner. Labels,
// annotations, finalizers and the status are open to everybody.

// addition is a field of an object's content that is not rendered, or a list that is longer or shorter than the rendered
// one.
type addition struct {
	// path of the field: keys of maps and positions in lists.
	path []string
	// place is where a patch takes it away: the field, or the outermost list on the way to it, since a patch that merges
	// replaces lists as a whole. Then mended is the rendered list, in which the API server fills in its defaults again.
	place  []string
	mended any
}

func (a addition) String() string { return strings.Join(a.path, ".") }

// id tells the paths of two additions apart, whatever characters are in their keys.
func (a addition) id() string { return joined(a.path) }

func joined(path []string) string { return strings.Join(path, "\x00") }

// additions are what the live object has in its content and the rendered one has not. What the API server or somebody's
// typed client has printed of fields that are not set is none. A nil object has none.
func additions(live, desired *unstructured.Unstructured) []addition {
	if live == nil {
		return nil
	}
	var found []addition
	for _, key := range sortedKeys(live.Object) {
		if slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
			continue
		}
		found = append(found, additionsIn([]string{key}, live.Object[key], desired.Object[key])...)
	}
	return found
}

func additionsIn(path []string, live, desired any) []addition {
	if desired == nil {
		if live == nil || isEmpty(live) && len(path) <= specField || isOpen(path) {
			return nil
		}
		return []addition{{path: path, place: path}}
	}
	switch live := live.(type) {
	case map[string]any:
		want, ok := desired.(map[string]any)
		if !ok {
			return nil
		}
		var found []addition
		for _, key := range sortedKeys(live) {
			found = append(found, additionsIn(append(slices.Clone(path), key), live[key], want[key])...)
		}
		return found
	case []any:
		return additionsInList(path, live, desired)
	default:
		// Another value is one that applying sets right.
		return nil
	}
}

// specField is how deep the fields of a spec are. What is deeper may be the content of a file, where a value that is
// empty is one.
const specField = 2

// additionsInList compares lists as a whole. Those of most kinds have one owner, but the containers of a pod template
// and the like belong to whoever has added each, so that applying a list does not take an element away.
func additionsInList(path []string, live []any, desired any) []addition {
	want, ok := desired.([]any)
	if !ok {
		return nil
	}
	if len(live) != len(want) {
		return []addition{{path: path, place: path, mended: want}}
	}
	var found []addition
	for i := range live {
		found = append(found, additionsIn(append(slices.Clone(path), strconv.Itoa(i)), live[i], want[i])...)
	}
	for i := range found {
		found[i].place, found[i].mended = path, want
	}
	return found
}

// isOpen reports whether a field of the content is open to everybody: the annotations of a pod template, by which kubectl
// rollout restart works.
func isOpen(path []string) bool {
	annotations := []string{"spec", "template", "metadata", "annotations"}
	return len(path) >= len(annotations) && slices.Equal(path[:len(annotations)], annotations)
}

func sortedKeys[V any](set map[string]V) []string { return slices.Sorted(maps.Keys(set)) }

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return value == "" || value == false || sameNumber(value, int64(0))
	}
}

// foreignTo leaves of the additions those that somebody else has made, by the API server's record of who owns which
// field. Defaults of the API server are nobody's. Where the record does not know the operator, it says nothing, and all
// count.
func foreignTo(live *unstructured.Unstructured, found []addition) []addition {
	if len(found) == 0 || !slices.ContainsFunc(live.GetManagedFields(), IsOwnApply) {
		return slices.Clone(found)
	}
	owned := foreignPaths(live)
	return slices.DeleteFunc(slices.Clone(found), func(one addition) bool {
		for path := range owned {
			if isWithin(path, one.id()) || isWithin(one.id(), path) {
				return false
			}
		}
		return true
	})
}

// isWithin reports whether a path is the other one or leads into it.
func isWithin(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"\x00")
}

// foreignPaths are the fields of the content that others than the operator own, with their managers.
func foreignPaths(live *unstructured.Unstructured) map[string]string {
	owned := map[string]string{}
	for _, entry := range live.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil || IsOwnApply(entry) {
			continue
		}
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
			continue
		}
		set.Leaves().Iterate(func(path fieldpath.Path) {
			if resolved, found := resolve(live.Object, path); found {
				owned[resolved] = entry.Manager
			}
		})
	}
	return owned
}

// otherManagers are those, besides the operator, who own something of the content, ascending.
func otherManagers(live *unstructured.Unstructured) []string {
	names := map[string]bool{}
	for _, manager := range foreignPaths(live) {
		if manager != v1alpha1.FieldManager {
			names[manager] = true
		}
	}
	return sortedKeys(names)
}

// fingerprint identifies an addition with its value.
func (a addition) fingerprint(object *unstructured.Unstructured) string {
	at := any(object.Object)
	for _, key := range a.path {
		switch in := at.(type) {
		case map[string]any:
			at = in[key]
		case []any:
			position, err := strconv.Atoi(key)
			if err != nil || position >= len(in) {
				return a.id()
			}
			at = in[position]
		}
	}
	return a.id() + "=" + asText(at)
}

// resolve turns a path of the API server's record, which names the elements of lists by their keys, into keys and
// positions in the content of an object.
func resolve(root any, path fieldpath.Path) (string, bool) {
	parts := make([]string, 0, len(path))
	at := root
	for _, element := range path {
		part, next, found := descend(at, element)
		if !found {
			return "", false
		}
		parts, at = append(parts, part), next
	}
	return joined(parts), len(parts) > 0 && parts[0] != "metadata" && parts[0] != "status"
}

func descend(at any, element fieldpath.PathElement) (string, any, bool) {
	switch {
	case element.FieldName != nil:
		fields, ok := at.(map[string]any)
		next, found := fields[*element.FieldName]
		return *element.FieldName, next, ok && found
	case element.Index != nil:
		list, ok := at.([]any)
		if !ok || *element.Index >= len(list) {
			return "", nil, false
		}
		return strconv.Itoa(*element.Index), list[*element.Index], true
	default:
		list, ok := at.([]any)
		if !ok {
			return "", nil, false
		}
		position := slices.IndexFunc(list, func(item any) bool { return isItem(item, element) })
		if position < 0 {
			return "", nil, false
		}
		return strconv.Itoa(position), list[position], true
	}
}

// isItem reports whether an item of a list is the one that a path names by its value or its keys.
func isItem(item any, element fieldpath.PathElement) bool {
	if element.Value != nil {
		return value.Equals(value.NewValueInterface(item), *element.Value)
	}
	fields, ok := item.(map[string]any)
	if !ok || element.Key == nil {
		return false
	}
	return !slices.ContainsFunc(*element.Key, func(field value.Field) bool {
		have, found := fields[field.Name]
		return !found || !value.Equals(value.NewValueInterface(have), field.Value)
	})
}

// removalOf is a merge patch that takes the additions out of the object as it was read, and fails when it has changed since.
func removalOf(live *unstructured.Unstructured, found []addition) map[string]any {
	patch := map[string]any{}
	for _, one := range found {
		at := patch
		for _, key := range one.place[:len(one.place)-1] {
			next, ok := at[key].(map[string]any)
			if !ok {
				next = map[string]any{}
				at[key] = next
			}
			at = next
		}
		at[one.place[len(one.place)-1]] = one.mended
	}
	patch["metadata"] = map[string]any{"resourceVersion": live.GetResourceVersion()}
	return patch
}
