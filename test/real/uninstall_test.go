// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

//go:build lab

package real

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// manifests are a cluster to which people apply manifests by hand.
type manifests struct {
	*world
	kubectl string
}

// TestUninstall installs the operator as docs/install.md says, brings a profile and a pool into force, and removes everything as
// docs/uninstall.md says: every object of the cluster is then one that was there before.
func TestUninstall(t *testing.T) {
	w := newWorld(t, "kubectl and kustomize", map[string]string{"xeon-1": tradingLabel, "xeon-2": tradingLabel, "epyc-1": tradingLabel})
	w.addKinds()
	m := &manifests{w, tool(t, "kubectl-"+version(t, "KUBERNETES_VERSION"), "kubectl")}
	overlay := m.overlay()
	ways := []struct{ name, deploy, remove string }{
		{"make deploy, make undeploy", "make deploy CONFIG=openshift", "make undeploy CONFIG=openshift"},
		{"kubectl apply -k, kubectl delete -k", "kubectl apply --server-side -k " + overlay, "kubectl delete -k " + overlay},
	}
	before := m.objects()
	for _, way := range ways {
		m.shell(way.deploy)
		m.check(m.Client.Create(t.Context(), profile()))
		m.check(m.Client.Create(t.Context(), pool()))
		m.inForce()
		added := len(m.objects()) - len(before)
		m.shell("kubectl delete latencytests --all --all-namespaces && kubectl delete bnp --all --wait=false && kubectl delete llnp --all")
		m.released()
		m.shell(m.documented(way.remove))
		m.await("the cluster has no object more than before", func() string {
			return strings.Join(slices.DeleteFunc(m.objects(), func(name string) bool { return slices.Contains(before, name) }), "\n")
		})
		m.seen(way.name, "profile and pool Ready on 3 nodes, %d objects more than before; removed in order, and each of them is gone", added)
	}
	m.finish("uninstall.txt")
}

// documented is a command of docs/uninstall.md, where an overlay is not named.
func (m *manifests) documented(command string) string {
	m.t.Helper()
	page, err := os.ReadFile("../../docs/uninstall.md")
	m.check(err)
	// The overlay is the reader's own.
	written := strings.Join(strings.Fields(command)[:3], " ")
	if !strings.Contains(string(page), "`"+written+"`") {
		m.t.Fatalf("docs/uninstall.md does not say %q", written)
	}
	return command
}

// overlay is a folder of the cluster's owner: OpenShift, with repair, and an image of their registry.
func (m *manifests) overlay() string {
	m.t.Helper()
	folder, source := filepath.Join(m.dir, "overlay"), "../../config/openshift-repair"
	absolute, err := filepath.Abs(source)
	m.check(err)
	relative, err := filepath.Rel(folder, absolute)
	m.check(errors.Join(err, os.Mkdir(folder, 0o750)))
	text := fmt.Sprintf("resources: [%s]\nimages: [{name: controller, newName: registry.example.com/lowlatency-operator, newTag: v0.1.0}]\n", relative)
	m.check(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
	return folder
}

// shell runs what people type in the folder of the repository.
func (m *manifests) shell(commands string) {
	m.t.Helper()
	command := exec.CommandContext(m.t.Context(), "bash", "-c", commands)
	command.Dir = "../.."
	command.Env = append(os.Environ(), "KUBECONFIG="+m.kubeconfig, "PATH="+filepath.Dir(m.kubectl)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said, err := command.CombinedOutput(); err != nil {
		m.t.Fatalf("%s: %v\n%s", commands, err, said)
	}
}

// objects are all that the API server lists, besides what others write all the time.
func (m *manifests) objects() []string {
	m.t.Helper()
	lists, err := discovery.NewDiscoveryClientForConfigOrDie(m.Config()).ServerPreferredResources()
	m.check(err)
	var all []string
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		m.check(err)
		for _, resource := range list.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains([]string{"Event", "Lease", "ComponentStatus"}, resource.Kind) {
				all = append(all, m.objectsOf(version.WithKind(resource.Kind))...)
			}
		}
	}
	slices.Sort(all)
	return all
}

// isOfOthers tells what comes and goes without the operator: what the simulated machine-config operator has rendered, which it keeps for pools that are gone, and
// the service account of each namespace.
func isOfOthers(kind, name string) bool {
	return kind == "MachineConfig" && strings.HasPrefix(name, "rendered-") || kind == "ServiceAccount" && name == "default"
}

func (m *manifests) objectsOf(kind schema.GroupVersionKind) []string {
	m.t.Helper()
	found := &metav1.PartialObjectMetadataList{}
	found.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	m.check(m.Client.List(m.t.Context(), found))
	names := make([]string, 0, len(found.Items))
	for i := range found.Items {
		if name := found.Items[i].Name; isOfOthers(kind.Kind, name) {
			continue
		}
		names = append(names, strings.TrimSpace(kind.Kind+"."+kind.Group+" "+found.Items[i].Namespace+"/"+found.Items[i].Name))
	}
	return names
}
