// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package helm

import (
	"os"
	"path/filepath"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/kube"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/apiserver"
)

// chartUnderTest is the folder of the chart, or the archive of a released one that CHART names, and the image that it runs by itself.
func chartUnderTest() (chart, runs string) {
	if archive := os.Getenv("CHART"); archive != "" {
		return archive, os.Getenv("IMAGE")
	}
	return chartFolder, image
}

// TestRelease installs, upgrades and uninstalls the chart on a real API server without our CustomResourceDefinitions.
func TestRelease(t *testing.T) {
	environment, err := apiserver.Start(apiserver.Options{Platform: apiserver.Kubernetes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	removeDefinitions(t, environment.Client())
	configuration, chart := connect(t, environment), load(t)
	values := map[string]any{"platform": "Kubernetes", "monitoring": "Disabled"}

	install := action.NewInstall(configuration)
	install.ReleaseName, install.Namespace, install.WaitStrategy = "lowlatency", "default", kube.HookOnlyStrategy
	if _, err := install.Run(chart, values); err != nil {
		t.Fatal(err)
	}
	_, runs := chartUnderTest()
	expectManager(t, environment.Client(), runs)

	upgrade := action.NewUpgrade(configuration)
	upgrade.Namespace, upgrade.WaitStrategy = "default", kube.HookOnlyStrategy
	values["image"] = map[string]any{"tag": "v0.2.0", "digest": ""}
	if _, err := upgrade.Run("lowlatency", chart, values); err != nil {
		t.Fatal(err)
	}
	expectManager(t, environment.Client(), "ghcr.io/lowlatency-dev/lowlatency-operator:v0.2.0")

	uninstall := action.NewUninstall(configuration)
	uninstall.WaitStrategy = kube.HookOnlyStrategy
	if _, err := uninstall.Run("lowlatency"); err != nil {
		t.Fatal(err)
	}
	if err := environment.Client().Get(t.Context(), managerKey(), &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("reading the manager's Deployment: %v, want that it is gone", err)
	}
	var definitions apiextensionsv1.CustomResourceDefinitionList
	if err := environment.Client().List(t.Context(), &definitions); err != nil {
		t.Fatal(err)
	}
	shipped, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(definitions.Items) != len(shipped) {
		t.Errorf("%d CustomResourceDefinitions are left, want all %d: with them would go the profiles: %v", len(definitions.Items), len(shipped), err)
	}
}

func load(t *testing.T) any {
	t.Helper()
	chart, _ := chartUnderTest()
	loaded, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// connect lets Helm keep its releases in Secrets of the API server.
func connect(t *testing.T, environment *apiserver.Environment) *action.Configuration {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := environment.WriteKubeconfig(settings.KubeConfig); err != nil {
		t.Fatal(err)
	}
	configuration := action.NewConfiguration()
	if err := configuration.Init(settings.RESTClientGetter(), "default", "secret"); err != nil {
		t.Fatal(err)
	}
	return configuration
}

// removeDefinitions removes the CustomResourceDefinitions that the test's API server starts with: the chart brings its own.
func removeDefinitions(t *testing.T, cluster client.Client) {
	t.Helper()
	if err := cluster.DeleteAllOf(t.Context(), &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		t.Fatal(err)
	}
	for {
		var left apiextensionsv1.CustomResourceDefinitionList
		if err := cluster.List(t.Context(), &left); err != nil {
			t.Fatal(err)
		}
		if len(left.Items) == 0 {
			return
		}
	}
}

func managerKey() client.ObjectKey {
	return client.ObjectKey{Namespace: "lowlatency-operator-system", Name: "lowlatency-operator-controller-manager"}
}

func expectManager(t *testing.T, cluster client.Client, image string) {
	t.Helper()
	var manager appsv1.Deployment
	if err := cluster.Get(t.Context(), managerKey(), &manager); err != nil {
		t.Fatal(err)
	}
	if got := manager.Spec.Template.Spec.Containers[0].Image; got != image {
		t.Errorf("the manager runs %s, want %s", got, image)
	}
}
