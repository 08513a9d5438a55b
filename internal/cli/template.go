// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/template"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"
)

// The formats of -o that are templates, as kubectl has them.
const (
	jsonPathPrefix   = "jsonpath="
	goTemplatePrefix = "go-template="
)

func isTemplate(format string) bool {
	return strings.HasPrefix(format, jsonPathPrefix) || strings.HasPrefix(format, goTemplatePrefix)
}

// parsesTemplate judges a value of -o that may be a template.
func parsesTemplate(value string) (bool, error) {
	if !isTemplate(value) {
		return false, nil
	}
	_, err := parseTemplate(value)
	return true, err
}

// templateNames are the kinds of templates in the help.
func templateNames() []string { return []string{jsonPathPrefix + "...", goTemplatePrefix + "..."} }

// parsedTemplate writes what a template selects of a value that JSON can hold.
type parsedTemplate func(out io.Writer, value any) error

// parseTemplate reads the value of -o. What a value does not have is left out by jsonpath, and "<no value>" in a Go template.
func parseTemplate(format string) (parsedTemplate, error) {
	if text, ok := strings.CutPrefix(format, goTemplatePrefix); ok {
		parsed, err := template.New("output").Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parsing the Go template: %w", err)
		}
		return parsed.Execute, nil
	}
	parsed := jsonpath.New("output").AllowMissingKeys(true)
	if err := parsed.Parse(strings.TrimPrefix(format, jsonPathPrefix)); err != nil {
		return nil, fmt.Errorf("parsing the JSONPath template: %w", err)
	}
	return parsed.Execute, nil
}

// writeTemplate writes what a template selects of the JSON of a value.
func writeTemplate(out io.Writer, format string, value any) error {
	parsed, err := parseTemplate(format)
	if err != nil {
		return err
	}
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	var plain any
	// Integers stay integers.
	if err := utiljson.Unmarshal(data, &plain); err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	if err := parsed(out, plain); err != nil {
		return fmt.Errorf("applying the template: %w", err)
	}
	return nil
}
