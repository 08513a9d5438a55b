// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/text"
	"github.com/lowlatency-dev/lowlatency-operator/internal/cli/view"
	"github.com/lowlatency-dev/lowlatency-operator/internal/plan"
)

// comparison is what plans are compared with.
type comparison struct {
	// against is the value of --against.
	against string
	// files of the other version; nil for what hosts run.
	files *manifests
	// isRef tells that these are the files of -f at a ref of git: what only they have is gone.
	isRef bool
	// older is what the profile was; nil when it is new.
	older *wanted
	// selection are the changes that may move nodes into or out of a profile or a pool.
	selection []plan.Change
}

// comparison reads what --against names.
func (a *app) comparison(ctx context.Context, options *planOptions) (*comparison, error) {
	c := &comparison{against: options.against}
	if c.against == "" || c.against == againstRunning {
		return c, nil
	}
	ref, err := gitRef(ctx, c.against, options.files)
	if err != nil {
		return nil, err
	}
	if c.isRef = ref != ""; c.isRef {
		c.files, err = a.manifestsAt(ctx, ref, options.files)
	} else {
		c.files, err = a.readManifests(ctx, []string{c.against})
	}
	return c, err
}

// newer reads the files of -f. What a change has deleted as a whole is as if it were empty, where a ref of git still has it.
func (a *app) newer(ctx context.Context, files []string, c *comparison) (*manifests, error) {
	if c.isRef && len(c.files.profiles) > 0 {
		if files = slices.DeleteFunc(slices.Clone(files), isEmptied); len(files) == 0 {
			return &manifests{}, nil
		}
	}
	return a.readManifests(ctx, files)
}

// isEmptied reports whether a value of -f names nothing any more, or a folder without manifests.
func isEmptied(name string) bool {
	files, isFolder, _ := manifestFiles(name)
	return name != "-" && (isFolder && len(files) == 0 || !isFolder && !exists(name))
}

// isGone reports whether only the ref of git has the profile that is asked for: the only one of all files, or that of --profile.
func (c *comparison) isGone(newer *manifests, profile string) bool {
	if !c.isRef {
		return false
	}
	if profile == "" {
		return len(newer.profiles) == 0 && len(c.files.profiles) > 0
	}
	return !newer.hasProfile(profile) && c.files.hasProfile(profile)
}

// resolve finds what the profile was, and which changes may move nodes.
func (c *comparison) resolve(profile *v1alpha1.LowLatencyNodeProfile, newer *manifests) error {
	if c.files == nil {
		return nil
	}
	name := profile.Name
	if !c.isRef && len(c.files.profiles) == 1 {
		// Whoever names a file compares with what it holds, also under another name.
		name = ""
	}
	// At a ref of git, a profile that is not there is new: everything that it asks for is.
	if !c.isRef || c.files.hasProfile(name) {
		older, err := c.files.wanted(name)
		if err != nil {
			return err
		}
		c.older = &older
		c.addSelection("LowLatencyNodeProfile "+profile.Name, older.profile.Spec.NodeSelector, profile.Spec.NodeSelector)
	}
	c.addOthers(newer)
	return nil
}

// addOthers adds the pools whose selector is another, and the profiles that are gone.
func (c *comparison) addOthers(newer *manifests) {
	for _, pool := range newer.sortedPools() {
		at := slices.IndexFunc(c.files.pools, func(was *v1alpha1.BypassNICPool) bool { return was.Name == pool.Name })
		if at >= 0 {
			c.addSelection("BypassNICPool "+pool.Name, c.files.pools[at].Spec.NodeSelector, pool.Spec.NodeSelector)
		}
	}
	for _, profile := range c.files.profiles {
		if c.isRef && !newer.hasProfile(profile.Name) {
			c.selection = append(c.selection, plan.Change{
				What: "LowLatencyNodeProfile " + profile.Name, From: selectorText(profile.Spec.NodeSelector), Reboot: v1alpha1.RebootUnknown,
				Why: "the profile is gone; each node that it had is given back, and reboots. No host tells the labels by which to know them",
			})
		}
	}
}

// addSelection notes that another selector selects the nodes of an object. Which ones, only the cluster knows: a host has no labels.
func (c *comparison) addSelection(object string, was, is v1alpha1.NodeSelector) {
	from, to := selectorText(was), selectorText(is)
	if from == to {
		return
	}
	c.selection = append(c.selection, plan.Change{
		What: "nodeSelector of " + object, From: from, To: to, Reboot: v1alpha1.RebootUnknown,
		Why: "nodes may join or leave, also ones that are not planned here, and reboot then. No host tells the labels by which to know them",
	})
}

// selectorText is a selector in kubectl's words, in one order, so that selectors that mean the same are the same text.
func selectorText(selector v1alpha1.NodeSelector) string {
	all := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	for key, value := range selector.MatchLabels {
		all.MatchLabels[key] = string(value)
	}
	for _, expression := range selector.MatchExpressions {
		values := make([]string, 0, len(expression.Values))
		for _, value := range expression.Values {
			values = append(values, string(value))
		}
		slices.Sort(values)
		values = slices.Compact(values)
		key := string(expression.Key)
		if label, named := all.MatchLabels[key]; expression.Operator == v1alpha1.LabelIn && len(values) == 1 && (!named || label == values[0]) {
			// In with one value is what a label in matchLabels means.
			all.MatchLabels[key] = values[0]
			continue
		}
		all.MatchExpressions = append(all.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOperator(expression.Operator), Values: values,
		})
	}
	return metav1.FormatLabelSelector(all)
}

// changes compares one node's plan. Without --against it is with what the node runs.
func (c *comparison) changes(node planned) plan.Changes {
	var changes plan.Changes
	switch {
	case c.files == nil:
		return differsFromRunning(node)
	case c.older == nil:
		changes = plan.Diff(nil, node.Plan)
	default:
		changes = differsFrom(*c.older, node)
	}
	changes.Items = slices.Concat(c.selection, changes.Items)
	return changes
}

// planReturn tells what becomes of the nodes of a profile that only the ref of git has: they are given back.
func (a *app) planReturn(ctx context.Context, options *planOptions, c *comparison, newer *manifests) error {
	older, err := c.files.wanted(options.profile)
	if err != nil {
		return err
	}
	nodes, err := options.nodes(ctx, newer, reading{configuration: true})
	if err != nil {
		return err
	}
	c.addOthers(newer)
	views := make([]view.Plan, 0, len(nodes))
	drawn := make([]text.NodePlan, 0, len(nodes))
	for _, node := range nodes {
		changes := plan.Diff(older.plan(node).Plan, nil)
		changes.Items = slices.Concat(c.selection, changes.Items)
		v := view.OfReturn(node.name, older.profile.Name, c.against, changes)
		views = append(views, v)
		drawn = append(drawn, text.NodePlan{View: v, Topology: node.topology, Returned: true})
	}
	if err := a.printPlans(options, views, drawn, older.profile.Name, c); err != nil {
		return err
	}
	return options.reboots(views, c)
}

// printPlans prints plans, or what is left of them, in the format that is asked for.
func (a *app) printPlans(options *planOptions, views []view.Plan, drawn []text.NodePlan, profile string, c *comparison) error {
	return a.print(options.format.Value, views, func() string {
		if options.format.Value == markdown {
			return text.Markdown(drawn, profile, c.against, c.selection)
		}
		return text.Plans(drawn, c.against, a.palette(), a.width())
	})
}

// reboots is errReboots when a node has to reboot, or may join or leave and reboot then, and that shall be told by the exit code.
func (o *planOptions) reboots(views []view.Plan, c *comparison) error {
	reboots := func(v view.Plan) bool { return v.Reboot == v1alpha1.RebootRequired && len(v.Changes) > 0 }
	if o.exitCode && (len(c.selection) > 0 || slices.ContainsFunc(views, reboots)) {
		return errReboots
	}
	return nil
}

func differsFromRunning(node planned) plan.Changes {
	if node.Plan == nil || node.facts == nil {
		return unknownChanges()
	}
	return plan.DiffRunning(node.facts, node.Plan)
}

func differsFrom(older wanted, node planned) plan.Changes {
	if node.Plan == nil {
		return unknownChanges()
	}
	return plan.Diff(older.plan(node.node).Plan, node.Plan)
}

// unknownChanges stand for a comparison that cannot be made.
func unknownChanges() plan.Changes {
	return plan.Changes{Items: []plan.Change{{
		What: "the running system", Reboot: v1alpha1.RebootUnknown, Why: "it could not be read",
	}}}
}

// read reads the profile, the pools and the nodes, and what they are compared with. The wanted is empty where the profile is gone.
func (o *planOptions) read(ctx context.Context, a *app) (*comparison, *manifests, wanted, error) {
	if o.against == "" && (o.exitCode || o.format.Value == markdown) {
		return nil, nil, wanted{}, errors.New("--exit-code and -o markdown tell changes: say from what, with --against")
	}
	c, err := a.comparison(ctx, o)
	if err != nil {
		return nil, nil, wanted{}, err
	}
	newer, err := a.newer(ctx, o.files, c)
	if err != nil || c.isGone(newer, o.profile) {
		return c, newer, wanted{}, err
	}
	chosen, err := newer.wanted(o.profile)
	if err != nil {
		return nil, nil, wanted{}, err
	}
	return c, newer, chosen, c.resolve(chosen.profile, newer)
}
