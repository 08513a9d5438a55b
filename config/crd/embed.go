// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package crd holds the generated CustomResourceDefinitions as files of the binary, so that the command
// line can judge objects by them without a cluster.
package crd

import (
	"embed"
)

// Schemas returns the folder "schemas" with one CustomResourceDefinition in each JSON file, which has the name of the kind.
// They are those of the folder bases, without the texts for people.
func Schemas() embed.FS { return schemas }

//go:embed schemas/*.json
var schemas embed.FS

// RuleTrees returns the CEL rules of these definitions with their syntax trees, see FormatRuleTrees of package crdschema.
func RuleTrees() string { return ruleTrees }

//go:embed schemas/rules.txt
var ruleTrees string
