// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package crd holds the generated CustomResourceDefinitions as files of the binary, so that the command
// line can judge objects by them without a cluster.
package crd

import "embed"

// Bases returns the folder "bases" with one CustomResourceDefinition in each YAML file.
func Bases() embed.FS { return bases }

//go:embed bases/*.yaml
var bases embed.FS
