// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"fmt"
	"strings"
)

const (
	operatorImage = "lowlatency-operator"
	trafficImage  = "lowlatency-traffic"
)

// recipe is what an image is made of.
type recipe struct {
	// name of the image; prefix is that of the files that are written.
	name, prefix string
	// programs of cmd/ in Go, in the order in which they lie in it. The first is its entry point.
	programs []string
	// traffic adds the C program of measurements, and the C library below it.
	traffic bool
	// title, summary and description are for registries.
	title, summary, description string
}

// recipes are all images.
func recipes() []recipe {
	return []recipe{
		{
			name: operatorImage, programs: []string{"lowlatency-operator", "lowlatency-agent", "lowlatency-guard"}, title: "Low Latency Node Operator",
			summary:     "Keeps Kubernetes nodes quiet for low-latency workloads and proves it",
			description: "Plans, applies and verifies the low-latency tuning of nodes",
		},
		{
			// In a pod, a network stack such as Onload takes the place of functions of the C library, so that there has to be one.
			name: trafficImage, prefix: "traffic-", programs: []string{"kubectl-lowlatency"}, traffic: true, title: "Low Latency Traffic",
			summary:     "Measures latency over the network between pods and hosts",
			description: "The command line of the Low Latency Node Operator with the program that sends and answers messages",
		},
	}
}

func recipeNames() []string {
	all := recipes()
	names := make([]string, 0, len(all))
	for i := range all {
		names = append(names, all[i].name)
	}
	return names
}

func recipeOf(name string) (recipe, error) {
	for _, one := range recipes() {
		if one.name == name {
			return one, nil
		}
	}
	return recipe{}, fmt.Errorf("-image: there is no image %q, but %s", name, strings.Join(recipeNames(), " and "))
}

// packages of the programs.
func (r recipe) packages() []string {
	packages := make([]string, 0, len(r.programs))
	for _, program := range r.programs {
		packages = append(packages, "./cmd/"+program)
	}
	return packages
}
