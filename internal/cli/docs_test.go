// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
)

// fields adds the names of the JSON fields of a type, and of all types of the view in it.
func fields(of reflect.Type, names map[string]bool) {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice:
		fields(of.Elem(), names)
	case reflect.Struct:
		if !strings.HasSuffix(of.PkgPath(), "/view") && !strings.HasSuffix(of.PkgPath(), "/nodereport") {
			return
		}
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				names[name] = true
			}
			fields(field.Type, names)
		}
	default:
	}
}

func TestEveryFieldIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, value := range []any{view.Topology{}, view.Plan{}, view.Check{}, view.Pool{}, view.Node{}, view.Manual{}, view.LatencyTest{}} {
		fields(reflect.TypeOf(value), names)
	}
	if len(names) < 50 {
		t.Fatalf("found %d fields only", len(names))
	}
	documented := map[string]bool{}
	for _, word := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(string(data), -1) {
		documented[word] = true
	}
	for name := range names {
		if !documented[name] {
			t.Errorf("docs/cli.md does not name the field %s", name)
		}
	}
}

func TestEveryCommandIsDocumented(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range newRoot("", Streams{}).Commands() {
		if !strings.Contains(string(data), "`"+command.Name()+"`") {
			t.Errorf("docs/cli.md does not name the command %s", command.Name())
		}
	}
}
