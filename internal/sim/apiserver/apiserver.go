// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package apiserver starts a real etcd and kube-apiserver for tests, with this project's CRDs and the
// real OpenShift CRDs installed. A test that cannot have them fails; it never skips.
package apiserver

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// Platform says which CRDs besides our own the API server has.
type Platform int

const (
	// OpenShift has MachineConfig, MachineConfigPool, KubeletConfig and the stand-in for Tuned.
	OpenShift Platform = iota
	// Kubernetes has none of them.
	Kubernetes
)

// Options say what the API server is to hold. The zero value is an OpenShift-like server.
type Options struct {
	// Platform chooses the CRDs besides our own.
	Platform Platform
	// CRDs are files or folders with further CRDs.
	CRDs []string
	// Scheme is the scheme of Client; nil means Scheme().
	Scheme *runtime.Scheme
	// Flags are further flags of kube-apiserver, without dashes.
	Flags map[string]string
}

// Environment is a running API server.
type Environment struct {
	environment *envtest.Environment
	config      *rest.Config
	client      client.Client
}

// startTimeout is how long etcd and kube-apiserver may take, each.
const startTimeout = 3 * time.Minute

// Start starts etcd and kube-apiserver on free local ports and installs the CRDs. The caller must Stop the
// environment. The error names the missing binary and the command that provides it, or the CRD that the API
// server refused.
func Start(options Options) (*Environment, error) {
	binaries, err := Binaries()
	if err != nil {
		return nil, err
	}
	crds, err := crdPaths(options)
	if err != nil {
		return nil, err
	}
	scheme, err := schemeOf(options)
	if err != nil {
		return nil, err
	}
	server := &envtest.APIServer{Path: filepath.Join(binaries, "kube-apiserver")}
	for name, value := range options.Flags {
		server.Configure().Set(name, value)
	}
	environment := &envtest.Environment{
		Scheme: scheme,
		ControlPlane: envtest.ControlPlane{
			APIServer: server,
			Etcd:      &envtest.Etcd{Path: filepath.Join(binaries, "etcd")},
		},
		CRDDirectoryPaths:     crds,
		ErrorIfCRDPathMissing: true,
		// The library waits 20 s for the processes and 10 s for the CRDs by default, which a machine that is busy with other tests exceeds.
		ControlPlaneStartTimeout: startTimeout,
		CRDInstallOptions:        envtest.CRDInstallOptions{MaxTime: startTimeout},
	}
	config, err := environment.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting etcd and kube-apiserver: %w", err), environment.Stop())
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("creating a client: %w", err), environment.Stop())
	}
	return &Environment{environment: environment, config: config, client: direct}, nil
}

// Config returns the connection of an administrator. The caller owns the copy.
func (e *Environment) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Client returns an administrator's client that reads from the server, not from a cache.
func (e *Environment) Client() client.Client { return e.client }

// Stop ends both processes and removes their data.
func (e *Environment) Stop() error {
	if err := e.environment.Stop(); err != nil {
		return fmt.Errorf("stopping etcd and kube-apiserver: %w", err)
	}
	return nil
}

// Scheme returns a scheme with the kinds of Kubernetes, of this project, of CRDs themselves and of the
// machine-config operator.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, mcfgv1.Install, v1alpha1.AddToScheme)
	if err := builder.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	return scheme, nil
}

func schemeOf(options Options) (*runtime.Scheme, error) {
	if options.Scheme != nil {
		return options.Scheme, nil
	}
	return Scheme()
}

func crdPaths(options Options) ([]string, error) {
	root, err := moduleDirectory(projectModule)
	if err != nil {
		return nil, err
	}
	paths := append([]string{filepath.Join(root, "config", "crd", "bases")}, options.CRDs...)
	if options.Platform == Kubernetes {
		return paths, nil
	}
	openShift, err := OpenShiftCRDs()
	return append(paths, openShift...), err
}
