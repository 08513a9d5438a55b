// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package installation_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/fleet"
	"github.com/lowlatency-dev/lowlatency-operator/internal/host"
	"github.com/lowlatency-dev/lowlatency-operator/internal/installation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/hosttree"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/objects"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/ordinaryhost"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

// read reads a host as an agent does.
func read(t *testing.T, dir string) *host.Facts {
	t.Helper()
	opened, err := host.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	facts, err := opened.ReadWith(t.Context(), host.Request{Software: true})
	if err = errors.Join(err, opened.Close()); err != nil {
		t.Fatal(err)
	}
	return facts
}

func planOn(t *testing.T, facts *host.Facts) *plan.NodePlan {
	t.Helper()
	hardware, err := topology.FromFacts(facts)
	if err != nil {
		t.Fatal(err)
	}
	profile := objects.MakeProfile("trading").Obj()
	planned := fleet.PlanHardware(profile, fleet.NewPoolSet(nil, nil, nil).On(nil), hardware, kubernetes.Rules())
	if planned.Plan == nil {
		t.Fatalf("no plan: %v", planned.Findings)
	}
	return planned.Plan
}

// reported are the facts as they come out of the API.
func reported(t *testing.T, facts *host.Facts) *host.Facts {
	t.Helper()
	hardware, err := topology.FromFacts(facts)
	if err != nil {
		t.Fatal(err)
	}
	through, err := installation.Facts(topology.Inventory(facts, hardware), installation.Of(facts))
	if err != nil {
		t.Fatal(err)
	}
	return through
}

func write(t *testing.T, p *plan.NodePlan, facts *host.Facts) kubernetes.Writing {
	t.Helper()
	written, err := kubernetes.Write(p, facts)
	if err != nil {
		t.Fatal(err)
	}
	return written
}

// TestSameOperations: what the operator spells from a report is what the host itself would be given, before a plan is in force
// on it, and afterwards.
func TestSameOperations(t *testing.T) {
	for name, distribution := range map[string]ordinaryhost.Distribution{"debian": ordinaryhost.Debian(), "rocky": ordinaryhost.Rocky(), "k3s": ordinaryhost.K3s()} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h, err := ordinaryhost.Install(dir, hosttree.Xeon(), distribution, "", "")
			if err != nil {
				t.Fatal(err)
			}
			before := read(t, dir)
			p := planOn(t, before)
			first := write(t, p, before)
			if first.Refused() {
				t.Fatalf("refused: %v", first.Findings)
			}
			if diff := cmp.Diff(first.Operations, write(t, p, reported(t, before)).Operations); diff != "" {
				t.Errorf("from the report (-host +report):\n%s", diff)
			}
			if err := h.BootWith(t.Context(), first.Operations); err != nil {
				t.Fatal(err)
			}
			after := read(t, dir)
			for from, facts := range map[string]*host.Facts{"host": after, "report": reported(t, after)} {
				again := write(t, p, facts)
				if again.Refused() {
					t.Fatalf("from the %s, refused once it is in force: %v", from, again.Findings)
				}
				if diff := cmp.Diff(pathsOf(first.Operations), pathsOf(again.Operations)); diff != "" {
					t.Errorf("from the %s, once it is in force (-first +again):\n%s", from, diff)
				}
			}
		})
	}
}

// pathsOf are the files of operations: what is missing from a later plan is taken back.
func pathsOf(operations []operation.Operation) []string {
	paths := make([]string, 0, len(operations))
	for i := range operations {
		paths = append(paths, string(operations[i].Kind)+" "+operations[i].Path+operations[i].Name)
	}
	return paths
}

// TestOfOpenShift: nobody asks for the software of a node of OpenShift.
func TestOfOpenShift(t *testing.T) {
	facts := &host.Facts{}
	facts.Software.OpenShift = host.Known(true, "")
	if got := installation.Of(facts); got != nil {
		t.Errorf("Of() = %+v, want nothing", got)
	}
}

// TestOfUnknown: what is too long, secret or unreadable is not reported, and what comes of it is unknown, not empty.
func TestOfUnknown(t *testing.T) {
	const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	facts := &host.Facts{}
	facts.Software.KubeletUnit = host.Known("kubelet.service", "")
	facts.Kubelet.File = host.Known(head+"staticPodURLHeader: {Authorization: [secret]}\nmaxPods: 7\n", "/var/lib/kubelet/config.yaml")
	facts.Kubelet.DropInFolder = host.Known("/a", "")
	facts.Kubelet.DropIns = host.Known([]host.KubeletDropIn{
		{Path: "/a/1.conf", Content: host.Known(head+"featureGates: {"+strings.Repeat("a", v1alpha1.MaxKubeletFileLength)+": true}\n", "")},
		{Path: "/a/2.conf", Content: host.Absent[string]("/a/2.conf", "permission denied")},
	}, "/a")
	software := installation.Of(facts)
	if text := software.Kubelet.Files[0].Content; strings.Contains(text, "secret") || !strings.Contains(text, "maxPods") {
		t.Errorf("the configuration is reported as %s", text)
	}
	back, err := installation.Facts(&v1alpha1.Inventory{}, software)
	if err != nil {
		t.Fatal(err)
	}
	for _, dropIn := range back.Kubelet.DropIns.Value {
		if dropIn.Content.Known {
			t.Errorf("%s is known as %q", dropIn.Path, filepath.Base(dropIn.Content.Value))
		}
	}
	if len(back.Kubelet.DropIns.Value) != 2 {
		t.Errorf("%d drop-ins came back, want 2", len(back.Kubelet.DropIns.Value))
	}
}

// TestHiddenFolder: of a folder that an agent does not see, as that of K3s, nobody claims that it is empty.
func TestHiddenFolder(t *testing.T) {
	const folder = "/var/lib/rancher/k3s/agent/etc/kubelet.conf.d"
	facts := &host.Facts{}
	facts.Software.KubeletUnit = host.Known("k3s-agent.service", "")
	facts.Kubelet.DropInFolder = host.Known(folder, folder)
	facts.Kubelet.DropIns = host.Absent[[]host.KubeletDropIn](folder, host.ReasonNotMounted)
	back, err := installation.Facts(&v1alpha1.Inventory{}, installation.Of(facts))
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Kubelet.DropIns.Value; len(got) != 1 || got[0].Content.Known {
		t.Errorf("the drop-ins came back as %+v, want one that is not known", got)
	}
}

// TestFactsOfGarbage: a list of CPUs that cannot be read is an error, wherever it is.
func TestFactsOfGarbage(t *testing.T) {
	for name, inventory := range map[string]*v1alpha1.Inventory{"online": {OnlineCPUs: "x"}, "offline": {OfflineCPUs: "3-"}} {
		if _, err := installation.Facts(inventory, &v1alpha1.NodeSoftware{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := installation.Facts(&v1alpha1.Inventory{}, &v1alpha1.NodeSoftware{PossibleCPUs: "-"}); err == nil {
		t.Error("possible: no error")
	}
}
