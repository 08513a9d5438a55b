// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"

	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/usage"
)

// defaultWidth is the width of drawings that do not go to a terminal.
const defaultWidth = 110

// app is what all commands share.
type app struct {
	Streams
	// release is the version that a release build states.
	release string
	colour  colourMode
}

// colourMode is the flag --color; "" means auto.
type colourMode string

// String returns the mode.
func (m *colourMode) String() string {
	if *m == "" {
		return "auto"
	}
	return string(*m)
}

// Set chooses the mode.
func (m *colourMode) Set(value string) error {
	chosen := usage.Choice{Allowed: m.names()}
	if err := chosen.Set(value); err != nil {
		return err
	}
	*m = colourMode(chosen.Value)
	return nil
}

// Type names the kind of flag in the help.
func (m *colourMode) Type() string { return strings.Join(m.names(), "|") }

// names are the modes.
func (m *colourMode) names() []string { return []string{"auto", "always", "never"} }

// palette returns the paints for the standard output.
func (a *app) palette() text.Palette {
	switch a.colour.String() {
	case "always":
		return text.NewPalette(true)
	case "never":
		return text.NewPalette(false)
	}
	_, plain := os.LookupEnv("NO_COLOR")
	_, isTerminal := a.terminal()
	return text.NewPalette(isTerminal && !plain)
}

// width is the number of columns to draw on.
func (a *app) width() int {
	if file, ok := a.terminal(); ok {
		if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
			return columns
		}
	}
	return defaultWidth
}

func (a *app) terminal() (*os.File, bool) {
	file, ok := a.Out.(*os.File)
	return file, ok && term.IsTerminal(int(file.Fd()))
}

// printer prints a value for programs, or as the text that draw returns.
func (a *app) print(format string, value any, draw func() string) error {
	switch {
	case isTemplate(format):
		var written strings.Builder
		if err := writeTemplate(&written, format, value); err != nil {
			return err
		}
		_, err := io.WriteString(a.Out, text.Harmless(written.String()))
		return err
	case format == "json":
		return writeJSON(a.Out, value)
	case format == "yaml":
		data, err := yaml.Marshal(value)
		if err != nil {
			return fmt.Errorf("writing YAML: %w", err)
		}
		_, err = a.Out.Write(data)
		return err
	default:
		_, err := io.WriteString(a.Out, text.Harmless(draw()))
		return err
	}
}

func writeJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// orderedYAML writes a value as YAML with its fields in the order of their types, not of the alphabet.
func orderedYAML(value any) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var document yamlv3.Node
	// JSON is YAML, and its reader keeps the order of fields.
	if err := yamlv3.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	blockStyle(&document)
	var b bytes.Buffer
	encoder := yamlv3.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&document); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// blockStyle takes the braces and quotes of JSON off a document; quotes stay where a reader of YAML 1.1, as
// kubectl is one, would take the text for something else, such as Off for a boolean.
func blockStyle(node *yamlv3.Node) {
	var plain any
	err := yaml.Unmarshal([]byte(node.Value), &plain)
	if node.Kind != yamlv3.ScalarNode || node.Tag != "!!str" || err == nil && plain == node.Value {
		node.Style = 0
	}
	for _, child := range node.Content {
		blockStyle(child)
	}
}
