// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build linux

// Enforcer keeps the rules of nftables of a machine of the lab as the NetworkPolicies of its cluster want them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/lowlatency-dev/lowlatency-operator/test/lab/policies"
)

// gap is how long it waits between two looks.
const gap = time.Second

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the API server")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := enforce(ctx, *kubeconfig)
	cancel()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "enforcer:", err)
		os.Exit(1)
	}
}

// enforce looks until the context ends. A look that fails leaves the rules as they are.
func enforce(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	inForce := ""
	for {
		wanted, err := look(ctx, api)
		if err == nil && wanted != inForce {
			if err = load(ctx, wanted); err == nil {
				inForce = wanted
				fmt.Print(wanted)
			}
		}
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, "enforcer:", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(gap):
		}
	}
}

// look makes the rules of what the API server has.
func look(ctx context.Context, api kubernetes.Interface) (string, error) {
	all := metav1.ListOptions{}
	wanted, err := api.NetworkingV1().NetworkPolicies("").List(ctx, all)
	if err != nil {
		return "", fmt.Errorf("reading policies: %w", err)
	}
	namespaces, err := api.CoreV1().Namespaces().List(ctx, all)
	if err != nil {
		return "", fmt.Errorf("reading namespaces: %w", err)
	}
	pods, err := api.CoreV1().Pods("").List(ctx, all)
	if err != nil {
		return "", fmt.Errorf("reading pods: %w", err)
	}
	return policies.Rules(policies.Cluster{Policies: wanted.Items, Namespaces: namespaces.Items, Pods: pods.Items})
}

func load(ctx context.Context, rules string) error {
	command := exec.CommandContext(ctx, "nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("loading rules: %w: %s", err, out)
	}
	return nil
}
