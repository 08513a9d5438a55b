// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mergepatch

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func decoded(t testing.TB, text string) map[string]any {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// The cases are those of the appendix of RFC 7386 that are about objects.
func TestMerge(t *testing.T) {
	for name, tc := range map[string]struct{ document, patch, want string }{
		"value":          {`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		"new name":       {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		"removed":        {`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		"list":           {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		"by list":        {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		"nested":         {`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		"lists replaced": {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		"object by text": {`{"a":"foo"}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			document, patch := decoded(t, tc.document), decoded(t, tc.patch)
			if diff := cmp.Diff(decoded(t, tc.want), Merge(document, patch)); diff != "" {
				t.Errorf("merged (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(decoded(t, tc.document), document) + cmp.Diff(decoded(t, tc.patch), patch); diff != "" {
				t.Errorf("an argument was changed:\n%s", diff)
			}
		})
	}
}
