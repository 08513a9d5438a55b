// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Command apidoc prints docs/api.md, the reference of the API, from the CustomResourceDefinitions:
//
//	go run ./hack/apidoc > docs/api.md
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const introduction = `# The API

<!-- Printed by hack/apidoc from config/crd/bases. Edit the comments in api/v1alpha1, not this file. -->

Every kind, field by field, as the API server knows it: ` + "`kubectl explain bypassnicpool.spec --recursive`" + ` prints the same from a cluster.
Whole objects are in [config/samples](../config/samples) and in the [guides](README.md#do-a-job).

**Required** fields are marked with a star. A field that is left out has no default in the schema: what is in force then is computed
with the plan, and the status shows it.
`

func main() {
	if err := run(os.Stdout, "config/crd/bases"); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}

// run prints the reference of all definitions of a folder.
func run(out io.Writer, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s holds no definitions: %w", folder, err)
	}
	var definitions []apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a definition: %w", err)
		}
		var definition apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		definitions = append(definitions, definition)
	}
	_, err = io.WriteString(out, reference(definitions))
	return err
}

// reference is the whole page.
func reference(definitions []apiextensionsv1.CustomResourceDefinition) string {
	var page strings.Builder
	page.WriteString(introduction + "\n| Kind | Short name | Scope | What it is |\n|---|---|---|---|\n")
	for _, d := range definitions {
		schema := d.Spec.Versions[0].Schema.OpenAPIV3Schema
		fmt.Fprintf(&page, "| [%s](#%s) | %s | %s | %s |\n", d.Spec.Names.Kind, strings.ToLower(d.Spec.Names.Kind),
			code(strings.Join(d.Spec.Names.ShortNames, ", ")), d.Spec.Scope, firstSentence(schema.Description))
	}
	for _, d := range definitions {
		version := d.Spec.Versions[0]
		schema := version.Schema.OpenAPIV3Schema
		fmt.Fprintf(&page, "\n## %s\n\n`%s/%s`. %s\n", d.Spec.Names.Kind, d.Spec.Group, version.Name, blocks(schema.Description))
		writeRules(&page, schema)
		for _, part := range []string{"spec", "status"} {
			properties, found := schema.Properties[part]
			if !found {
				continue
			}
			fmt.Fprintf(&page, "\n### %s `%s`\n\n%s\n", d.Spec.Names.Kind, part, blocks(properties.Description))
			writeObject(&page, part, &properties)
		}
	}
	return page.String()
}

// writeObject writes a table of the fields of an object, its rules, and then the same of each object in it.
func writeObject(page *strings.Builder, path string, schema *apiextensionsv1.JSONSchemaProps) {
	writeRules(page, schema)
	names := slices.Sorted(maps.Keys(schema.Properties))
	if len(names) == 0 {
		return
	}
	page.WriteString("\n| Field | Type | Description |\n|---|---|---|\n")
	for _, name := range names {
		field := schema.Properties[name]
		star := ""
		if slices.Contains(schema.Required, name) {
			star = " *"
		}
		fmt.Fprintf(page, "| `%s`%s | %s | %s |\n", name, star, typeOf(&field), cell(&field))
	}
	for _, name := range names {
		field := schema.Properties[name]
		inner, below := &field, path+"."+name
		if field.Items != nil && field.Items.Schema != nil {
			inner, below = field.Items.Schema, below+"[]"
		}
		if len(inner.Properties) > 0 && !known(inner) {
			fmt.Fprintf(page, "\n#### `%s`\n", below)
			writeObject(page, below, inner)
		}
	}
}

// known reports whether an object is one of Kubernetes' own that every reader knows.
func known(schema *apiextensionsv1.JSONSchemaProps) bool {
	_, condition := schema.Properties["lastTransitionTime"]
	_, reason := schema.Properties["reason"]
	_, selector := schema.Properties["matchExpressions"]
	return condition && reason && len(schema.Properties) == 6 || selector && len(schema.Properties) == 2
}

// writeRules writes the rules that the API server enforces beyond types and bounds.
func writeRules(page *strings.Builder, schema *apiextensionsv1.JSONSchemaProps) {
	if len(schema.XValidations) == 0 {
		return
	}
	page.WriteString("\nRules:\n\n")
	for _, rule := range schema.XValidations {
		message := rule.Message
		if message == "" {
			message = code(strings.Join(strings.Fields(rule.Rule), " "))
		}
		fmt.Fprintf(page, "- %s\n", message)
	}
}

// typeOf is the type of a field with its bounds.
func typeOf(s *apiextensionsv1.JSONSchemaProps) string {
	var parts []string
	switch {
	case s.Items != nil && s.Items.Schema != nil:
		parts = append(parts, "list of "+typeOf(s.Items.Schema))
		parts = appendRange(parts, " entries", s.MinItems, s.MaxItems)
	case s.XIntOrString:
		parts = append(parts, "number or text")
	case len(s.Enum) > 0:
		return enumeration(s.Enum)
	case s.AdditionalProperties != nil:
		parts = append(parts, "map of texts")
	case s.Format == "date-time":
		parts = append(parts, "time")
	default:
		parts = append(parts, map[string]string{"string": "text", "integer": "number", "number": "number", "object": "object", "boolean": "true or false"}[s.Type])
		parts = appendRange(parts, " characters", s.MinLength, s.MaxLength)
	}
	return strings.Join(append(parts, limits(s)...), ", ")
}

// limits are those of a number.
func limits(s *apiextensionsv1.JSONSchemaProps) []string {
	switch {
	case s.Minimum == nil:
		return nil
	case s.Maximum == nil:
		return []string{fmt.Sprintf("at least %.0f", *s.Minimum)}
	}
	return []string{fmt.Sprintf("%.0f to %.0f", *s.Minimum, *s.Maximum)}
}

// enumeration lists the words that a field may have.
func enumeration(words []apiextensionsv1.JSON) string {
	values := make([]string, 0, len(words))
	for _, word := range words {
		var text string
		if json.Unmarshal(word.Raw, &text) != nil {
			text = string(word.Raw)
		}
		values = append(values, code(text))
	}
	return strings.Join(values, ", ")
}

func appendRange(parts []string, unit string, least, most *int64) []string {
	switch {
	case most == nil:
		return parts
	case least == nil:
		return append(parts, fmt.Sprintf("at most %d%s", *most, unit))
	}
	return append(parts, fmt.Sprintf("%d to %d%s", *least, *most, unit))
}

// cell is the description of a field, with its pattern and its rules, in one line.
func cell(s *apiextensionsv1.JSONSchemaProps) string {
	lines := []string{cellText(s.Description)}
	pattern := s.Pattern
	if s.Items != nil && s.Items.Schema != nil && pattern == "" {
		pattern = s.Items.Schema.Pattern
	}
	if pattern != "" {
		lines = append(lines, "Matches "+code(pattern)+".")
	}
	if len(s.Properties) == 0 {
		for _, rule := range s.XValidations {
			lines = append(lines, "Rule: "+escape(rule.Message))
		}
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	return strings.ReplaceAll(strings.Join(lines, "<br>"), "|", `\|`)
}

// part is a paragraph of a description, or an example, which is indented by tabs.
type part struct {
	lines     []string
	isExample bool
}

// partsOf divides a description: at empty lines, and where an example begins or ends.
func partsOf(description string) []part {
	var parts []part
	open := false
	for line := range strings.Lines(description) {
		line = strings.TrimRight(line, " \t\n")
		text, isExample := strings.CutPrefix(line, "\t")
		if line == "" {
			open = false
			continue
		}
		if !open || parts[len(parts)-1].isExample != isExample {
			parts = append(parts, part{isExample: isExample})
		}
		open = true
		last := &parts[len(parts)-1]
		last.lines = append(last.lines, text)
	}
	return parts
}

// blocks is a description as paragraphs and fenced examples.
func blocks(description string) string {
	parts := partsOf(description)
	all := make([]string, 0, len(parts))
	for _, p := range parts {
		text := paragraph(strings.Join(p.lines, " "))
		if p.isExample {
			text = "```text\n" + strings.Join(p.lines, "\n") + "\n```"
		}
		all = append(all, text)
	}
	return strings.Join(all, "\n\n")
}

// cellText is a description in one line, as cells of a table need: with line breaks between paragraphs, and examples that keep their lines.
func cellText(description string) string {
	var all strings.Builder
	afterText := false
	for _, p := range partsOf(description) {
		if p.isExample {
			all.WriteString("<pre>" + escape(strings.Join(p.lines, "\n")) + "</pre>")
			afterText = false
			continue
		}
		if afterText {
			all.WriteString("<br>")
		}
		all.WriteString(paragraph(strings.Join(p.lines, " ")))
		afterText = true
	}
	return strings.ReplaceAll(all.String(), "\n", "<br>")
}

// paragraph is a text in one line that is no markup.
func paragraph(text string) string { return escape(strings.Join(strings.Fields(text), " ")) }

// escape keeps a text from being markup.
func escape(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(text)
}

func firstSentence(text string) string {
	sentence, _, _ := strings.Cut(paragraph(text), ". ")
	return strings.TrimSuffix(sentence, ".")
}

// code is a word as code; a table's own character is escaped by the caller.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "`", "'") + "`"
}
