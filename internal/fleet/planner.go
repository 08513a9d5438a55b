// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package fleet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/manifest"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
	"github.com/lowlatency-dev/lowlatency-operator/internal/topology"
)

const ruleInventory = "plan.inventory"

// Planned is the outcome of planning for one inventory. It is shared by all nodes that report it.
type Planned struct {
	// Plan is nil when a finding is critical. Equal plans are one object.
	Plan *plan.NodePlan
	// Hash of the plan, and Signature of the topology; "" without a plan.
	Hash, Signature string
	// ConfigMap is the name of the ConfigMap that holds the plan.
	ConfigMap string
	// Findings about the profile on this hardware.
	Findings []plan.Finding
	// Claimed is which pool has which NIC, also where there is no plan.
	Claimed []v1alpha1.BypassNICClaim
}

// Planner makes plans and remembers those of the nodes that the profiles have, so that the event of one node costs no planning
// for the others.
type Planner struct {
	rules plan.PlatformRules
	mutex sync.Mutex
	// byNode remembers the plan of each node until its profile, its pools or the inventory hash that it reports change. A
	// node's word about its hash decides about that node only.
	byNode memory[nodeKey, *Planned]
	// byContent shares plans between nodes whose inventories are equal, as the planner itself finds.
	byContent shared[contentKey, Planned]
	// byHash makes equal plans one object.
	byHash shared[hashKey, plan.NodePlan]
}

type generation struct {
	profile    types.UID
	generation int64
	// pools is the key of the pools that select the node.
	pools string
}

type nodeKey struct {
	generation
	inventoryHash string
}

type contentKey struct {
	generation
	content [sha256.Size]byte
}

type hashKey struct {
	profile types.UID
	hash    string
}

// NewPlanner returns a planner for a platform with these rules. It remembers nothing yet.
func NewPlanner(rules plan.PlatformRules) *Planner {
	return &Planner{rules: rules, byNode: memory[nodeKey, *Planned]{}}
}

// Plan returns the plan of the node that the pools select and that reports the inventory.
func (p *Planner) Plan(profile *v1alpha1.LowLatencyNodeProfile, pools NodePools, node string, inventory *v1alpha1.Inventory) *Planned {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	at := generation{profile: profile.UID, generation: profile.Generation, pools: pools.key()}
	from := nodeKey{generation: at, inventoryHash: inventory.Hash}
	if known, found := p.byNode.get(profile.Name, node, from); found {
		return known
	}
	result := p.planContent(at, profile, pools, inventory)
	p.byNode.put(profile.Name, node, from, result)
	return result
}

// Retain forgets nodes that the profile of that name no longer has; it has none when it is gone.
func (p *Planner) Retain(profile string, nodes ...string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.byNode.retain(profile, nodes)
}

func (p *Planner) planContent(at generation, profile *v1alpha1.LowLatencyNodeProfile, pools NodePools, inventory *v1alpha1.Inventory) *Planned {
	content, err := digest(inventory)
	if err != nil {
		return impossible(err)
	}
	key := contentKey{generation: at, content: content}
	if known := p.byContent.get(key); known != nil {
		return known
	}
	result := p.planInventory(profile, pools, inventory)
	if result.Plan != nil {
		same := hashKey{profile: profile.UID, hash: result.Hash}
		if known := p.byHash.get(same); known != nil && ptr.Equal(known.CPUs.Derivation, result.Plan.CPUs.Derivation) {
			result.Plan = known
		} else {
			p.byHash.put(same, result.Plan)
		}
	}
	p.byContent.put(key, result)
	return result
}

func (p *Planner) planInventory(profile *v1alpha1.LowLatencyNodeProfile, pools NodePools, inventory *v1alpha1.Inventory) *Planned {
	hardware, err := topology.FromInventory(inventory)
	if err != nil {
		known := impossible(err)
		known.Claimed = pools.recorded
		return known
	}
	return PlanHardware(profile, pools, hardware, p.rules)
}

// PlanHardware plans for one piece of hardware that the pools select, on a platform with these rules.
func PlanHardware(profile *v1alpha1.LowLatencyNodeProfile, pools NodePools, hardware *topology.Topology, rules plan.PlatformRules) *Planned {
	planned, claimed := pools.planned(hardware.NICs)
	nodePlan, findings := plan.New(plan.Input{Profile: profile, Topology: hardware, Pools: planned, Platform: rules})
	if nodePlan == nil {
		return &Planned{Findings: findings, Claimed: claimed}
	}
	hash := nodePlan.Hash()
	return &Planned{
		Plan: nodePlan, Hash: hash, ConfigMap: manifest.PlanConfigMapName(profile.Name, hash),
		Signature: hardware.Signature(), Findings: findings, Claimed: claimed,
	}
}

// impossible is the outcome for an inventory that cannot be read.
func impossible(err error) *Planned {
	return &Planned{Findings: []plan.Finding{{
		Rule: ruleInventory, Severity: v1alpha1.SeverityCritical, Field: "status.inventory",
		Message: fmt.Sprintf("the LowLatencyNode cannot be read: %s.", err.Error()),
		Remedy:  "See the log of the agent on that node.",
	}}}
}

// digest identifies the content of an inventory.
func digest(inventory *v1alpha1.Inventory) ([sha256.Size]byte, error) {
	content := *inventory
	content.Hash = ""
	text, err := json.Marshal(&content)
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("printing the inventory: %w", err)
	}
	return sha256.Sum256(text), nil
}
