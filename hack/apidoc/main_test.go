// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const description = "pages are reserved\nfor every NIC.\n\nReserving is <not> giving:\n\n\thugepages:\n\t- {size: 2Mi}\n\t  # a | b_c\n\nWhen omitted, none."

// TestDescriptionsKeepTheirShape: paragraphs stay apart and examples keep their lines and their indentation, on the page and in a cell.
func TestDescriptionsKeepTheirShape(t *testing.T) {
	page := "pages are reserved for every NIC.\n\nReserving is &lt;not> giving:\n\n```text\nhugepages:\n- {size: 2Mi}\n  # a | b_c\n```\n\nWhen omitted, none."
	if diff := cmp.Diff(page, blocks(description)); diff != "" {
		t.Errorf("on the page (-want +got):\n%s", diff)
	}
	want := `pages are reserved for every NIC.<br>Reserving is &lt;not> giving:<pre>hugepages:<br>- {size: 2Mi}<br>  # a \| b\_c</pre>When omitted, none.` +
		"<br>Matches `^a$`." + `<br>Rule: pages\_are pages.`
	got := cell(&apiextensionsv1.JSONSchemaProps{
		Description: description, Pattern: "^a$", XValidations: apiextensionsv1.ValidationRules{{Message: "pages_are pages."}},
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("in a cell (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("Only this", cell(&apiextensionsv1.JSONSchemaProps{Description: "Only this"})); diff != "" {
		t.Errorf("one line (-want +got):\n%s", diff)
	}
}
