// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package lab

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const (
	// gateway is this machine as the virtual machines see it: QEMU's user network leads it to the loopback address.
	gateway = "10.0.2.2"
	// ServiceAddress is the API server's as pods know it: the first address of the services.
	ServiceAddress = "10.0.0.1"
	services       = "10.0.0.0/24"
	// controlPlaneLimit bounds the start of etcd and kube-apiserver: seconds on idle cores.
	controlPlaneLimit = 3 * time.Minute
)

// Cluster is a control plane of real programs on this machine: etcd, kube-apiserver with its Node and RBAC
// authorizers, kube-controller-manager and kube-scheduler. Virtual machines reach it through their gateway.
type Cluster struct {
	programs    Programs
	environment *envtest.Environment
	config      *rest.Config
	// dir holds certificates, kubeconfigs and the logs of the programs.
	dir string
	// running are ended in reverse order.
	running []*program
}

// StartCluster starts the control plane. The caller must Stop it. The controllers end with the context, and with this
// process, however that ends; etcd and kube-apiserver, which envtest starts, end with Stop only.
func StartCluster(ctx context.Context, programs Programs, progress io.Writer) (*Cluster, error) {
	dir, err := os.MkdirTemp("", "lab-cluster-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the control plane: %w", err)
	}
	c := &Cluster{programs: programs, dir: dir}
	start := time.Now()
	err = c.startServer()
	if err == nil {
		err = c.startControllers(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	report(progress, "control plane: up after %.0f s", time.Since(start).Seconds())
	return c, nil
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

// startServer starts etcd and kube-apiserver with a certificate that is also good for the addresses at which
// machines and pods find it.
func (c *Cluster) startServer() error {
	authority, err := c.writeKeys()
	if err != nil {
		return err
	}
	server := &envtest.APIServer{Path: c.programs.File("kube-apiserver"), CertDir: c.dir}
	server.CA = authority
	// envtest leaves service accounts out, because nobody makes them there; here a controller does.
	server.Configure().Disable("disable-admission-plugins").
		Set("authorization-mode", "Node,RBAC").
		Set("enable-admission-plugins", "NodeRestriction").
		Set("service-cluster-ip-range", services).
		Set("endpoint-reconciler-type", "none")
	c.environment = &envtest.Environment{
		ControlPlane:             envtest.ControlPlane{APIServer: server, Etcd: &envtest.Etcd{Path: c.programs.File("etcd")}},
		ControlPlaneStartTimeout: controlPlaneLimit, ControlPlaneStopTimeout: controlPlaneLimit,
	}
	if c.config, err = c.environment.Start(); err != nil {
		return fmt.Errorf("starting etcd and kube-apiserver: %w", err)
	}
	// A test is one client that waits a lot; the default is meant for many of them.
	c.config.QPS, c.config.Burst = 100, 200
	return nil
}

// writeKeys makes what envtest would make with fewer names: the server's certificate and the key of service accounts.
func (c *Cluster) writeKeys() (authority []byte, err error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost",
		[]net.IP{net.IPv4(127, 0, 0, 1), net.ParseIP(ServiceAddress), net.ParseIP(gateway)},
		[]string{"kubernetes.default", "kubernetes.default.svc"})
	if err != nil {
		return nil, fmt.Errorf("making the API server's certificate: %w", err)
	}
	signer, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("making the key of service accounts: %w", err)
	}
	accounts, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return nil, fmt.Errorf("making the key of service accounts: %w", err)
	}
	for name, content := range map[string][]byte{
		"apiserver.crt": certificate, "apiserver.key": key, "ca.crt": certificate,
		"sa-signer.crt": accounts, "sa-signer.key": accounts,
	} {
		if err := os.WriteFile(c.file(name), content, 0o600); err != nil {
			return nil, fmt.Errorf("writing the control plane's keys: %w", err)
		}
	}
	return certificate, nil
}

// startControllers starts what makes service accounts and pods and gives pods to nodes.
func (c *Cluster) startControllers(ctx context.Context) error {
	for _, controller := range []struct {
		name  string
		flags []string
	}{
		{"kube-controller-manager", []string{
			// Each controller acts with its own account and rights; the program's own rights are only to make these.
			"--use-service-account-credentials=true",
			"--service-account-private-key-file=" + c.file("sa-signer.key"), "--root-ca-file=" + c.file("ca.crt"),
			// An emulated node is late with its heartbeats when this machine is busy.
			"--node-monitor-grace-period=5m",
		}},
		{"kube-scheduler", nil},
	} {
		kubeconfig, err := c.Kubeconfig("system:" + controller.name)
		if err != nil {
			return err
		}
		flags := append([]string{"--kubeconfig=" + kubeconfig, "--leader-elect=false", "--secure-port=0"}, controller.flags...)
		if err := c.Launch(ctx, controller.name, c.programs.File(controller.name), flags...); err != nil {
			return err
		}
	}
	return nil
}

// Launch starts a program that belongs to the cluster and ends with it. Its log is kept until then.
func (c *Cluster) Launch(ctx context.Context, name, path string, arguments ...string) error {
	started, err := launch(ctx, name, c.file(name+".log"), path, arguments...)
	if err != nil {
		return err
	}
	c.running = append(c.running, started)
	return nil
}

// Log returns the last lines of a launched program's log.
func (c *Cluster) Log(name string, lines int) string {
	content, err := os.ReadFile(c.file(name + ".log"))
	if err != nil {
		return err.Error()
	}
	return lastLines(string(content), lines)
}

// Config is the connection of an administrator. The caller owns the copy.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Kubeconfig writes the connection of a user in some groups, and returns its file.
func (c *Cluster) Kubeconfig(user string, groups ...string) (string, error) {
	// The variable KUBECONFIG holds a list with colons between its files.
	path := c.file(strings.ReplaceAll(user, ":", "-") + ".kubeconfig")
	content, err := c.kubeconfig(c.config.Host, user, groups)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return "", fmt.Errorf("writing the kubeconfig of %s: %w", user, err)
	}
	return path, nil
}

// KubeconfigInside is the connection of a user in some groups for a program on a machine of the lab.
func (c *Cluster) KubeconfigInside(user string, groups ...string) (string, error) {
	content, err := c.kubeconfig("https://"+gateway+":"+c.port(), user, groups)
	return string(content), err
}

// kubeconfig of a user who finds the API server at an address.
func (c *Cluster) kubeconfig(server, user string, groups []string) ([]byte, error) {
	added, err := c.environment.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for %s: %w", user, err)
	}
	client := added.Config()
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: client.CAData}
	config.AuthInfos["lab"] = &clientcmdapi.AuthInfo{ClientCertificateData: client.CertData, ClientKeyData: client.KeyData}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	config.CurrentContext = "lab"
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("printing the kubeconfig of %s: %w", user, err)
	}
	return content, nil
}

// port of the API server on the loopback address.
func (c *Cluster) port() string { return c.environment.ControlPlane.APIServer.Port }

// Stop ends all programs and removes what belongs to them.
func (c *Cluster) Stop() error {
	for i := range c.running {
		c.running[len(c.running)-1-i].stop()
	}
	c.running = nil
	var err error
	if c.environment != nil {
		err = c.environment.Stop()
		c.environment = nil
	}
	if err = errors.Join(err, os.RemoveAll(c.dir)); err != nil {
		return fmt.Errorf("stopping the control plane: %w", err)
	}
	return nil
}
