// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apiserver

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// WriteKubeconfig writes how the API server is reached as a file for the environment variable KUBECONFIG.
func (e *Environment) WriteKubeconfig(path string) error {
	config, file := e.Config(), clientcmdapi.NewConfig()
	file.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test"}
	file.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// WriteKubeconfigOf writes how a user, whom the API server knows by a certificate, reaches it. The user has no rights but
// those of its groups and bindings.
func (e *Environment) WriteKubeconfigOf(path, user string, groups ...string) error {
	known, err := e.environment.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		return fmt.Errorf("making user %s: %w", user, err)
	}
	text, err := known.KubeConfig()
	if err != nil {
		return fmt.Errorf("printing the kubeconfig of user %s: %w", user, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
