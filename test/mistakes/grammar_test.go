// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package mistakes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/controllers"
	"github.com/lowlatency-dev/lowlatency-operator/internal/sim/cluster"
)

// step is one thing that a user does.
type step struct {
	name string
	do   func(*world) error
	// reboots are how often a node may reboot for it, those of nodes for the nodes that it is about; 0 for a mistake.
	reboots int
	nodes   []string
	// upsets tells that mistakes which follow may not be harmless any more, because what they would disturb is gone.
	upsets bool
	// losesNICs tells that it takes NICs away itself, and tainting that it takes proofs away.
	losesNICs, tainting bool
	// competes tells that another profile selects the nodes from then on, and yields that the profile lets go of some: after both
	// the platform hands these over, which spec.rollout.maximumReleasedNodes does not bound.
	competes, yields bool
	// lingers tells that nothing says when the operator has noticed it, so that it may cost its reboots later.
	lingers bool
}

// rule makes a step of random details.
type rule func(*rand.Rand) step

// one of several values.
func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// rules are the grammar of plausible mistakes, and of changes that are none.
func rules() []rule {
	return []rule{
		typoInSelector, narrowSelector, impossibleSpec, pausedChange, pausedPoolsChange, secondProfile,
		overlappingPool, sameResource, emptyPool,
		hugepagesChange, argumentChange, poolHugepagesChange, wrongNIC, limitChange, gateChange,
		relabelNode, joinSpare, replaceNode, foreignLabels,
		recreateProfile, recreatePool, swapPools,
		deleteGenerated, editGenerated, stopAgent, restartOperator,
	}
}

// typo exchanges two letters, or loses one.
func typo(r *rand.Rand, word string) string {
	at := 1 + r.IntN(len(word)-2)
	if r.IntN(2) == 0 {
		return word[:at] + word[at+1:]
	}
	return word[:at-1] + string(word[at]) + string(word[at-1]) + word[at+1:]
}

func selectorStep(name string, labels v1alpha1.Labels) step {
	return step{name: name, yields: true, do: func(w *world) error {
		return w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.NodeSelector.MatchLabels = labels })
	}}
}

func typoInSelector(r *rand.Rand) step {
	key := "node-role.kubernetes.io/" + typo(r, "trading")
	for key == tradingLabel {
		key = "node-role.kubernetes.io/" + typo(r, "trading")
	}
	return selectorStep("the profile selects "+key, v1alpha1.Labels{key: ""})
}

func narrowSelector(r *rand.Rand) step {
	node := pick(r, "xeon-1", "epyc-1")
	return selectorStep("the profile selects "+node+" only", v1alpha1.Labels{"kubernetes.io/hostname": v1alpha1.LabelValue(node)})
}

func specStep(name string, change func(*v1alpha1.LowLatencyNodeProfileSpec)) step {
	return step{name: name, do: func(w *world) error { return w.editProfile(change) }}
}

func impossibleSpec(r *rand.Rand) step {
	return pick(r,
		specStep("64 housekeeping cores per NUMA node", func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.CPUs.Derived = &v1alpha1.DerivedCPUs{HousekeepingCores: 64}
		}),
		specStep("isolated CPUs that do not exist", func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.CPUs.Partition, s.CPUs.Derived = v1alpha1.PartitionExplicit, nil
			s.CPUs.Explicit = &v1alpha1.ExplicitCPUs{Housekeeping: "0-1", Isolated: "2-255"}
		}),
		specStep("a kernel argument that contradicts the plan", func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0", "isolcpus=1"}
		}),
		specStep("hugepages on a NUMA node that does not exist", func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: 2, NUMANode: new(int32(7))}}
		}),
	)
}

func pausedChange(r *rand.Rand) step {
	count := int32(3 + r.IntN(3)) //nolint:gosec // Small.
	return specStep(fmt.Sprintf("rollout Paused, and %d hugepages", count), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Rollout.State = v1alpha1.RolloutPaused
		s.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: count}}
	})
}

func pausedPoolsChange(r *rand.Rand) step {
	count := int32(3 + r.IntN(3)) //nolint:gosec // Small.
	return step{name: fmt.Sprintf("an admin pauses the pools, then %d hugepages", count), do: func(w *world) error {
		return errors.Join(w.pauseMachineConfigPools(true), w.editProfile(func(s *v1alpha1.LowLatencyNodeProfileSpec) {
			s.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: count}}
		}))
	}}
}

func secondProfile(*rand.Rand) step {
	return step{name: "a second profile selects the same nodes", competes: true, do: func(w *world) error {
		profile := baseProfile()
		profile.Name = "second"
		profile.Spec.Memory.Hugepages[0].Count = 7
		return w.createOnce(profile)
	}}
}

func overlappingPool(r *rand.Rand) step {
	name := pick(r, "a-newcomer", "z-newcomer")
	pool := onloadPool(name, "lowlatency.dev/newcomer")
	how := pick(r, "vendor", "driver", "one address")
	switch how {
	case "vendor":
		pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "1924"}}
	case "driver":
		pool.Spec.NICs = []v1alpha1.NICSelector{{Drivers: []v1alpha1.DriverName{"sfc"}}}
	default:
		pool.Spec.NICs = []v1alpha1.NICSelector{{PCIAddresses: []v1alpha1.PCIAddress{"0000:af:00.0"}}}
	}
	pool.Spec.Hugepages[0].CountPerNIC = pick[int32](r, 4, 8, 16)
	return step{name: "pool " + name + " selects the same NICs by " + how, do: func(w *world) error { return w.createOnce(pool.DeepCopy()) }}
}

func sameResource(r *rand.Rand) step {
	pool := onloadPool(pick(r, "a-same", "z-same"), "lowlatency.dev/x2")
	pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "8086"}, {Vendor: "15b3"}}
	pool.Spec.Hugepages = nil
	return step{name: "pool " + pool.Name + " has the same resource name", do: func(w *world) error { return w.createOnce(pool.DeepCopy()) }}
}

func emptyPool(*rand.Rand) step {
	pool := onloadPool("empty", "lowlatency.dev/empty")
	pool.Spec.NICs = []v1alpha1.NICSelector{{Vendor: "1234"}}
	return step{name: "a pool that selects no NIC", do: func(w *world) error { return w.createOnce(pool.DeepCopy()) }}
}

func hugepagesChange(r *rand.Rand) step {
	count := int32(3 + r.IntN(4)) //nolint:gosec // Small.
	s := specStep(fmt.Sprintf("%d hugepages", count), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Memory.Hugepages = []v1alpha1.HugepageReservation{{Size: "1Gi", Count: count}}
	})
	s.reboots = 1
	return s
}

func argumentChange(r *rand.Rand) step {
	argument := pick[v1alpha1.KernelArgument](r, "nowatchdog", "selinux=0", "quiet")
	s := specStep("kernel argument "+string(argument), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Kernel.AdditionalArguments = []v1alpha1.KernelArgument{"audit=0", argument}
	})
	s.reboots = 1
	return s
}

func poolHugepagesChange(r *rand.Rand) step {
	count := pick[int32](r, 4, 12, 16)
	return step{name: fmt.Sprintf("%d hugepages per NIC", count), reboots: 1, do: func(w *world) error {
		return w.editPool(func(s *v1alpha1.BypassNICPoolSpec) { s.Hugepages[0].CountPerNIC = count })
	}}
}

// wrongNIC takes the NICs out of the pool by the user's own word.
func wrongNIC(*rand.Rand) step {
	return step{name: "a wrong device id in the pool", reboots: 1, upsets: true, losesNICs: true, do: func(w *world) error {
		return w.editPool(func(s *v1alpha1.BypassNICPoolSpec) { s.NICs[0].Devices = []v1alpha1.PCIID{"0b30"} })
	}}
}

func limitChange(r *rand.Rand) step {
	limit := int32(1 + r.IntN(3)) //nolint:gosec // Small.
	return specStep(fmt.Sprintf("at most %d nodes away", limit), func(s *v1alpha1.LowLatencyNodeProfileSpec) {
		s.Pools.MaximumUnavailableNodes = limit
	})
}

func gateChange(*rand.Rand) step {
	return specStep("gate ReportOnly", func(s *v1alpha1.LowLatencyNodeProfileSpec) { s.Verification.Gate = v1alpha1.GateReportOnly })
}

func relabelNode(r *rand.Rand) step {
	node := pick(r, "xeon-1", "xeon-2", "epyc-1")
	return step{name: node + " loses its label", reboots: 1, nodes: []string{node}, losesNICs: true, do: func(w *world) error {
		return client.IgnoreNotFound(w.label(node, map[string]*string{tradingLabel: nil}))
	}}
}

func joinSpare(*rand.Rand) step {
	return step{name: "the spare node gets the label", reboots: 1, nodes: []string{"spare"}, do: func(w *world) error {
		return w.label("spare", map[string]*string{tradingLabel: new("")})
	}}
}

// replaceNode takes a node away and adds a new one of the same name.
func replaceNode(r *rand.Rand) step {
	node := pick(r, "xeon-2", "epyc-1")
	return step{name: node + " is replaced by a new machine", reboots: 1, nodes: []string{node}, losesNICs: true, do: func(w *world) error {
		if !slices.Contains(w.Fleet.Names(), node) {
			return nil
		}
		delete(w.dead, node)
		return errors.Join(w.Fleet.Remove(w.ctx, node), w.Fleet.Add(w.ctx, node, w.machines[node], map[string]string{tradingLabel: ""}))
	}}
}

func foreignLabels(*rand.Rand) step {
	// The platform may be faster than the operator, so the node may go there and come back.
	return step{name: "the spare node gets the labels of a machine config pool", reboots: 2, nodes: []string{"spare"}, do: labelForeign}
}

func recreateProfile(*rand.Rand) step {
	return step{name: "the profile is deleted and made again", reboots: 2, upsets: true, losesNICs: true, tainting: true, do: func(w *world) error {
		return errors.Join(w.remove(baseProfile()), w.recreate(baseProfile()))
	}}
}

func recreatePool(*rand.Rand) step {
	return step{name: "the pool is deleted and made again", reboots: 2, losesNICs: true, do: func(w *world) error {
		return errors.Join(w.remove(basePool()), w.recreate(basePool()))
	}}
}

func swapPools(*rand.Rand) step {
	return step{name: "the pool is replaced by one of another name", reboots: 2, upsets: true, losesNICs: true, do: func(w *world) error {
		return errors.Join(w.remove(basePool()), w.createOnce(onloadPool("x2-new", "lowlatency.dev/x2-new")))
	}}
}

// deleteGenerated deletes something that the operator has made. None of it is what a host boots with.
func deleteGenerated(r *rand.Rand) step {
	kind := pick(r, "plans", "LowLatencyNode", "DaemonSet", "pool file")
	return step{name: "somebody deletes the " + kind, losesNICs: true, tainting: true, do: func(w *world) error {
		namespaced := map[string]client.Object{"plans": &corev1.ConfigMap{}, "DaemonSet": &appsv1.DaemonSet{}, "pool file": &corev1.ConfigMap{}}
		label := map[string]string{"plans": v1alpha1.LabelProfile, "DaemonSet": v1alpha1.LabelBypassPool, "pool file": v1alpha1.LabelBypassPool}[kind]
		if kind == "LowLatencyNode" {
			return w.remove(&v1alpha1.LowLatencyNode{ObjectMeta: metav1.ObjectMeta{Name: "xeon-1"}})
		}
		for _, namespace := range []string{cluster.Namespace, controllers.DefaultAgentNamespace} {
			err := w.Client.DeleteAllOf(w.ctx, namespaced[kind], client.InNamespace(namespace), client.HasLabels{label})
			if err != nil {
				return fmt.Errorf("deleting all %s: %w", kind, err)
			}
		}
		return nil
	}}
}

// editGenerated changes what hosts boot with behind the operator's back. The platform may be faster than the operator.
func editGenerated(r *rand.Rand) step {
	if r.IntN(2) == 0 {
		return step{name: "somebody sets maxPods in the KubeletConfigs", reboots: 2, tainting: true, lingers: true, do: setMaxPods}
	}
	return step{name: "somebody adds an argument to the MachineConfigs", reboots: 2, tainting: true, lingers: true, do: func(w *world) error {
		var configs mcfgv1.MachineConfigList
		if err := w.Client.List(w.ctx, &configs, client.HasLabels{v1alpha1.LabelProfile}); err != nil {
			return fmt.Errorf("listing MachineConfigs: %w", err)
		}
		for i := range configs.Items {
			before := configs.Items[i].DeepCopy()
			configs.Items[i].Spec.KernelArguments = append(configs.Items[i].Spec.KernelArguments, "debug")
			if err := w.Client.Patch(w.ctx, &configs.Items[i], client.MergeFrom(before), client.FieldOwner("kubectl-edit")); err != nil {
				return fmt.Errorf("changing MachineConfig %s: %w", configs.Items[i].Name, err)
			}
		}
		return nil
	}}
}

func stopAgent(r *rand.Rand) step {
	node := pick(r, "xeon-1", "xeon-2")
	return step{name: "the agent of " + node + " stops", tainting: true, do: func(w *world) error {
		if !slices.Contains(w.Fleet.Names(), node) {
			return nil
		}
		w.dead[node] = true
		return w.Fleet.StopAgent(node)
	}}
}

func restartOperator(*rand.Rand) step {
	return step{name: "the operator is restarted", do: func(w *world) error {
		w.stopOperator()
		return w.startOperator()
	}}
}

// createOnce makes an object, unless it is there.
func (w *world) createOnce(object client.Object) error {
	return client.IgnoreAlreadyExists(w.Client.Create(w.ctx, object))
}

// history is what a user does, the correction of it all left out.
type history struct {
	seed  uint64
	steps []step
	// together tells that the steps are made without waiting in between.
	together bool
}

// draw makes the history of a seed.
func draw(seed uint64) history {
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // Not for secrets.
	all := rules()
	h := history{seed: seed, together: r.IntN(4) == 0}
	for range 1 + r.IntN(3) {
		h.steps = append(h.steps, all[r.IntN(len(all))](r))
	}
	// Every rule has its turn among the first seeds.
	h.steps[0] = all[int(seed%uint64(len(all)))](r) //nolint:gosec // A small remainder.
	return h
}

func (h history) String() string {
	names := make([]string, 0, len(h.steps))
	for _, s := range h.steps {
		names = append(names, s.name)
	}
	joint := "; then "
	if h.together {
		joint = "; at once "
	}
	return fmt.Sprintf("seed %d: %s; corrected", h.seed, strings.Join(names, joint))
}

// without is the history without one of its steps.
func (h history) without(i int) history {
	shorter := h
	shorter.steps = slices.Delete(slices.Clone(h.steps), i, i+1)
	return shorter
}
