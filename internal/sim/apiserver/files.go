// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apiserver

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const (
	projectModule   = "github.com/lowlatency-dev/lowlatency-operator"
	openShiftModule = "github.com/openshift/api"
)

// Binaries returns the folder with etcd and kube-apiserver: KUBEBUILDER_ASSETS, or else the project's store
// in the user's cache, which "make toolchain" fills.
func Binaries() (string, error) {
	folder := os.Getenv("KUBEBUILDER_ASSETS")
	if folder == "" {
		store, err := binaryStore()
		if err != nil {
			return "", err
		}
		folder = store
	}
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if _, err := exec.LookPath(filepath.Join(folder, name)); err != nil {
			return "", fmt.Errorf("no runnable %s in %s (KUBEBUILDER_ASSETS is %q): "+
				"run \"make toolchain\", which downloads or builds it once for this machine: %w",
				name, folder, os.Getenv("KUBEBUILDER_ASSETS"), err)
		}
	}
	return folder, nil
}

// OpenShiftCRDs returns the CRD files of the machine-config operator, in the variant of a self-managed
// cluster without feature gates, from the openshift/api module; and the stand-in for Tuned, whose kind no
// published module carries.
func OpenShiftCRDs() ([]string, error) {
	module, err := moduleDirectory(openShiftModule)
	if err != nil {
		return nil, err
	}
	root, err := moduleDirectory(projectModule)
	if err != nil {
		return nil, err
	}
	manifests := filepath.Join(module, "machineconfiguration", "v1", "zz_generated.crd-manifests")
	tuned, err := filepath.Glob(filepath.Join(root, "config", "tuned", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for the stand-in CRD of Tuned: %w", err)
	}
	return append(tuned,
		filepath.Join(manifests, "0000_80_machine-config_01_kubeletconfigs-Default.crd.yaml"),
		filepath.Join(manifests, "0000_80_machine-config_01_machineconfigpools-SelfManagedHA.crd.yaml"),
		filepath.Join(manifests, "0000_80_machine-config_01_machineconfigs.crd.yaml"),
	), nil
}

// SecurityConstraintsCRD returns the folder with the CRD of SecurityContextConstraints, from the openshift/api module.
func SecurityConstraintsCRD() (string, error) {
	module, err := moduleDirectory(openShiftModule)
	if err != nil {
		return "", err
	}
	return filepath.Join(module, "security", "v1", "zz_generated.crd-manifests"), nil
}

// moduleDirectory asks the go command, which knows the module cache and replacements.
func moduleDirectory(module string) (string, error) {
	command := goCommand("list", "-m", "-f", "{{.Dir}}", module)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("locating module %s: %w: %s", module, err, strings.TrimSpace(stderr.String()))
	}
	directory := strings.TrimSpace(string(out))
	if directory == "" {
		return "", fmt.Errorf("module %s is not in the module cache: run \"go mod download %s\"", module, module)
	}
	return directory, nil
}

// goCommand calls the go command, which no Ctrl-C reaches: a terminal signals all processes of a group, and what is answered within
// moments is no reason for whoever ends the demo to read of an error.
func goCommand(arguments ...string) *exec.Cmd {
	command := exec.Command("go", arguments...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return command
}

// binaryStore is the folder that hack/toolchain.sh fills, laid out as setup-envtest does.
func binaryStore() (string, error) {
	root, err := moduleDirectory(projectModule)
	if err != nil {
		return "", err
	}
	version, err := readVersion(filepath.Join(root, "hack", "versions.env"), "KUBERNETES_VERSION")
	if err != nil {
		return "", err
	}
	cache, err := CacheFolder()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "k8s", fmt.Sprintf("%s-%s-%s", version, runtime.GOOS, runtime.GOARCH)), nil
}

// CacheFolder is where tools and images outlive the clone. It follows the same rule as hack/toolchain.sh, which
// os.UserCacheDir does not on every system.
func CacheFolder() (string, error) {
	if folder := os.Getenv("LOWLATENCY_CACHE"); folder != "" {
		return folder, nil
	}
	if folder := os.Getenv("XDG_CACHE_HOME"); folder != "" {
		return filepath.Join(folder, "lowlatency-operator"), nil
	}
	home := os.Getenv("HOME")
	if home == "" {
		return "", errors.New("none of LOWLATENCY_CACHE, XDG_CACHE_HOME and HOME is set: cannot tell where the tools are")
	}
	return filepath.Join(home, ".cache", "lowlatency-operator"), nil
}

func readVersion(path, name string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading tool versions: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if value, found := strings.CutPrefix(lines.Text(), name+"="); found {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s names no %s", path, name)
}
