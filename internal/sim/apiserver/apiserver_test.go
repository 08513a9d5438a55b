// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package apiserver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func establishedCRDs(t *testing.T, reader client.Reader) []string {
	t.Helper()
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := reader.List(t.Context(), &list); err != nil {
		t.Fatalf("listing CRDs: %v", err)
	}
	var names []string
	for _, crd := range list.Items {
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				names = append(names, crd.Name)
			}
		}
	}
	return names
}

func TestStart(t *testing.T) {
	ours := []string{"bypassnicpools.lowlatency.dev", "latencytests.lowlatency.dev", "lowlatencynodeprofiles.lowlatency.dev", "lowlatencynodes.lowlatency.dev"}
	cases := map[string]struct {
		options  Options
		wantCRDs []string
	}{
		"a Kubernetes cluster has our kinds only": {
			options:  Options{Platform: Kubernetes},
			wantCRDs: ours,
		},
		"an OpenShift cluster has the machine-config operator's kinds": {
			wantCRDs: append([]string{
				"kubeletconfigs.machineconfiguration.openshift.io",
				"machineconfigpools.machineconfiguration.openshift.io",
				"machineconfigs.machineconfiguration.openshift.io",
			}, ours...),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			environment, err := Start(tc.options)
			if err != nil {
				t.Fatalf("Start: %v", err)
			}
			established := establishedCRDs(t, environment.Client())
			if tc.options.Platform == Kubernetes {
				if diff := cmp.Diff(tc.wantCRDs, established); diff != "" {
					t.Errorf("established CRDs (-want +got):\n%s", diff)
				}
			}
			for _, want := range tc.wantCRDs {
				if !strings.Contains(strings.Join(established, " "), want) {
					t.Errorf("CRD %s is not established; established are %v", want, established)
				}
			}
			if err := environment.Stop(); err != nil {
				t.Fatalf("Stop: %v", err)
			}
			if err := environment.Client().List(t.Context(), &corev1.NamespaceList{}); err == nil {
				t.Errorf("the API server still answers after Stop")
			}
		})
	}
}

func TestStartWithoutBinaries(t *testing.T) {
	cases := map[string]map[string]string{
		"a wrong KUBEBUILDER_ASSETS": {"KUBEBUILDER_ASSETS": filepath.Join(t.TempDir(), "absent")},
		"an empty cache":             {"KUBEBUILDER_ASSETS": "", "LOWLATENCY_CACHE": t.TempDir()},
	}
	for name, environment := range cases {
		t.Run(name, func(t *testing.T) {
			for key, value := range environment {
				t.Setenv(key, value)
			}
			_, err := Start(Options{})
			if err == nil || !strings.Contains(err.Error(), "make toolchain") {
				t.Errorf("Start = %v, want an error that names \"make toolchain\"", err)
			}
		})
	}
}

func TestStartReportsABinaryThatDoesNotRun(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
			t.Fatalf("WriteFile: %v", err)
		}
	}
	t.Setenv("KUBEBUILDER_ASSETS", folder)
	if _, err := Start(Options{}); err == nil || !strings.Contains(err.Error(), "starting etcd and kube-apiserver") {
		t.Errorf("Start = %v, want an error that says what was being started", err)
	}
}

func TestStartReportsARefusedCRD(t *testing.T) {
	path := filepath.Join(t.TempDir(), "absent.yaml")
	_, err := Start(Options{CRDs: []string{path}})
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Start = %v, want an error that names %s", err, path)
	}
}

func TestStartUsesTheGivenScheme(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatalf("Scheme: %v", err)
	}
	got, err := schemeOf(Options{Scheme: scheme})
	if err != nil || got != scheme {
		t.Errorf("schemeOf = %v, %v, want the scheme of the options", got, err)
	}
}

func TestCacheFolder(t *testing.T) {
	cases := map[string]struct {
		cache, xdg, home string
		want             string
		wantError        string
	}{
		"the project's own variable wins": {cache: "/c", xdg: "/x", home: "/h", want: "/c"},
		"then the XDG folder":             {xdg: "/x", home: "/h", want: "/x/lowlatency-operator"},
		"then the home folder":            {home: "/h", want: "/h/.cache/lowlatency-operator"},
		"nothing is set":                  {wantError: "HOME"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Setenv("LOWLATENCY_CACHE", tc.cache)
			t.Setenv("XDG_CACHE_HOME", tc.xdg)
			t.Setenv("HOME", tc.home)
			got, err := CacheFolder()
			if got != tc.want {
				t.Errorf("CacheFolder = %q, want %q", got, tc.want)
			}
			if (err != nil) != (tc.wantError != "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("CacheFolder error = %v, want one that names %q", err, tc.wantError)
			}
		})
	}
}

func TestReadVersion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "versions.env")
	if err := os.WriteFile(path, []byte("# comment\nOTHER_A=1\nA=2.3\n"), 0o600); err != nil {
		t.Fatalf("WriteFile: %v", err)
	}
	if got, err := readVersion(path, "A"); err != nil || got != "2.3" {
		t.Errorf("readVersion(A) = %q, %v, want 2.3", got, err)
	}
	if _, err := readVersion(path, "B"); err == nil || !strings.Contains(err.Error(), "B") {
		t.Errorf("readVersion(B) = %v, want an error that names B", err)
	}
	if _, err := readVersion(path+".absent", "A"); err == nil {
		t.Errorf("readVersion of an absent file succeeds")
	}
}

func TestModuleDirectoryOfAnUnknownModule(t *testing.T) {
	if _, err := moduleDirectory("example.com/absent"); err == nil || !strings.Contains(err.Error(), "example.com/absent") {
		t.Errorf("moduleDirectory = %v, want an error that names the module", err)
	}
}

// TestVersionsAgree holds the versions that are looked for against those that are built.
func TestVersionsAgree(t *testing.T) {
	cases := map[string]struct{ file, requirement string }{
		"KUBERNETES_VERSION": {file: "kubernetes/go.mod", requirement: "k8s.io/kubernetes v"},
		"ETCD_VERSION":       {file: "etcd/go.mod", requirement: "go.etcd.io/etcd/server/v3 v"},
		"OLM_VERSION":        {file: "olm/go.mod", requirement: "github.com/operator-framework/operator-lifecycle-manager "},
		"ARGOCD_VERSION":     {file: "argocd/go.mod", requirement: "github.com/argoproj/argo-cd/v3 "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			version, err := readVersion("../../../hack/versions.env", name)
			if err != nil {
				t.Fatalf("readVersion: %v", err)
			}
			content, err := os.ReadFile(filepath.Join("../../../hack", tc.file))
			if err != nil {
				t.Fatalf("ReadFile: %v", err)
			}
			if want := tc.requirement + version; !strings.Contains(string(content), want+" ") && !strings.Contains(string(content), want+"\n") {
				t.Errorf("hack/%s does not require %s", tc.file, want)
			}
		})
	}
}
