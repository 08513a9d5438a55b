// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/util/cert"
)

// certificateFolders are the sources of the Node Tuning Operator that name a folder in which its pod has certificates, with the
// folder and the names of the files there: those of its webhooks and of its metrics.
func certificateFolders() map[string][3]string {
	return map[string][3]string{
		"cmd/cluster-node-tuning-operator/main.go": {"/apiserver.local.config/certificates", "apiserver.crt", "apiserver.key"},
		"pkg/metrics/server.go":                    {"/etc/secrets", "tls.crt", "tls.key"},
	}
}

// buildPeer builds the Node Tuning Operator from a checkout, as its own Makefile does, but with certificates in a folder of ours. It
// makes a file in the checkout: pkg/manifests/bindata.go.
func buildPeer(ctx context.Context, checkout, binary, folder string) error {
	overlay, err := replaceFolders(checkout, folder)
	if err != nil {
		return err
	}
	for _, arguments := range [][]string{
		{"run", "-mod=vendor", "./vendor/github.com/kevinburke/go-bindata/go-bindata", "-mode", "420", "-modtime", "1",
			"-pkg", "manifests", "-o", "pkg/manifests/bindata.go", "assets/tuned/manifests/..."},
		{"build", "-mod=vendor", "-trimpath", "-overlay", overlay, "-o", binary, "./cmd/cluster-node-tuning-operator"},
	} {
		command := exec.CommandContext(ctx, "go", arguments...)
		command.Dir, command.Stderr, command.Env = checkout, os.Stderr, append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
		if err := command.Run(); err != nil {
			return fmt.Errorf("building the Node Tuning Operator: %w", err)
		}
	}
	return nil
}

// replaceFolders makes certificates and, for the Go command, an overlay of the sources that look for them.
func replaceFolders(checkout, folder string) (string, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return "", fmt.Errorf("making a certificate: %w", err)
	}
	replaced := map[string]string{}
	for source, at := range certificateFolders() {
		text, err := os.ReadFile(filepath.Join(checkout, source))
		if err != nil {
			return "", fmt.Errorf("reading a source of the Node Tuning Operator: %w", err)
		}
		former := fmt.Sprintf("%q", at[0])
		if !strings.Contains(string(text), former) {
			return "", fmt.Errorf("%s does not name the folder %s any more", source, at[0])
		}
		ours := filepath.Join(folder, strings.ReplaceAll(source, "/", "-"))
		err = errors.Join(
			os.WriteFile(ours, []byte(strings.Replace(string(text), former, fmt.Sprintf("%q", folder), 1)), 0o600),
			os.WriteFile(filepath.Join(folder, at[1]), certificate, 0o600), os.WriteFile(filepath.Join(folder, at[2]), key, 0o600),
		)
		if err != nil {
			return "", fmt.Errorf("writing what the Node Tuning Operator finds in its pod: %w", err)
		}
		replaced[filepath.Join(checkout, source)] = ours
	}
	text, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", fmt.Errorf("printing the overlay: %w", err)
	}
	overlay := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		return "", fmt.Errorf("writing the overlay: %w", err)
	}
	return overlay, nil
}
