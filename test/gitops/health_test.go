// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Package gitops tries health checks of Argo CD on every state that the operator's own tests have recorded, with the Lua engine and
// the libraries that Argo CD gives them, and compares their verdicts with those of kstatus.
package gitops

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	flux "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"
)

const (
	checks = "../../config/gitops/argocd"
	// states are the folders of kinds with files of recorded conditions, wherever the tests are that have recorded them.
	states = "../../internal/*/*/testdata/states"

	healthy, progressing, degraded, suspended = "Healthy", "Progressing", "Degraded", "Suspended"
)

// kinds are those that have a health check.
func kinds() []string {
	return []string{"BypassNICPool", "LatencyTest", "LowLatencyNode", "LowLatencyNodeProfile"}
}

// toLua turns a value of JSON into one of Lua, as Argo CD does: lists count from one.
func toLua(state *lua.LState, value any) lua.LValue {
	switch typed := value.(type) {
	case bool:
		return lua.LBool(typed)
	case float64:
		return lua.LNumber(typed)
	case int64:
		return lua.LNumber(typed)
	case string:
		return lua.LString(typed)
	case []any:
		table := state.CreateTable(len(typed), 0)
		for _, one := range typed {
			table.Append(toLua(state, one))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(typed))
		for name, one := range typed {
			table.RawSetString(name, toLua(state, one))
		}
		return table
	default:
		return lua.LNil
	}
}

// health is the verdict of a check and its message. A check has the libraries of Argo CD and no others: package, the basic
// functions and table.
func health(t *testing.T, kind string, object *unstructured.Unstructured) (verdict, message string) {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(checks, "health", kind+".lua"))
	if err != nil {
		t.Fatal(err)
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, library := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := state.CallByParam(lua.P{Fn: state.NewFunction(library), Protect: true}, lua.LString(name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	state.SetContext(ctx)
	state.SetGlobal("obj", toLua(state, object.Object))
	if err := state.DoString(string(script)); err != nil {
		t.Fatal(err)
	}
	table, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		t.Fatalf("the check of %s returns %s", kind, state.Get(-1).Type())
	}
	return lua.LVAsString(table.RawGetString("status")), lua.LVAsString(table.RawGetString("message"))
}

// object has conditions, and a status of its newest generation.
func object(kind string, conditions []any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "lowlatency.dev/v1alpha1", "kind": kind,
		"metadata": map[string]any{"name": "a", "generation": int64(3)},
		"status":   map[string]any{"observedGeneration": int64(3), "conditions": conditions},
	}}
}

// recorded are the states of a kind by the names of their cases.
func recorded(t *testing.T, kind string) map[string][]any {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(states, kind, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]any{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases map[string][]any
		if err := yaml.Unmarshal(content, &cases); err != nil {
			t.Fatal(err)
		}
		for name, conditions := range cases {
			all[filepath.Base(file)+": "+name] = conditions
		}
	}
	return all
}

// find returns status, reason and message of a condition.
func find(conditions []any, kind string) (status, reason, message string) {
	for _, one := range conditions {
		if fields, ok := one.(map[string]any); ok && fields["type"] == kind {
			return fmt.Sprint(fields["status"]), fmt.Sprint(fields["reason"]), fmt.Sprint(fields["message"])
		}
	}
	return "", "", ""
}

// wanted is the table of docs/conditions.md.
func wanted(conditions []any) (verdict, message string) {
	ready, _, readyMessage := find(conditions, "Ready")
	isDegraded, _, degradedMessage := find(conditions, "Degraded")
	isProgressing, reason, progressingMessage := find(conditions, "Progressing")
	switch {
	case isDegraded == "True":
		return degraded, degradedMessage
	case ready == "True":
		return healthy, readyMessage
	case isProgressing == "False" && reason == "Paused":
		return suspended, progressingMessage
	default:
		return progressing, readyMessage
	}
}

func TestHealthOfEveryState(t *testing.T) {
	for kind, verdicts := range map[string][]string{
		"BypassNICPool":         {healthy, progressing, degraded, suspended},
		"LatencyTest":           {healthy, progressing, degraded},
		"LowLatencyNodeProfile": {healthy, progressing, degraded, suspended},
	} {
		seen := map[string]int{}
		for name, conditions := range recorded(t, kind) {
			want, wantMessage := wanted(conditions)
			got, message := health(t, kind, object(kind, conditions))
			if got != want || message != wantMessage {
				t.Errorf("%s: %s: health is %s (%s), want %s (%s)", kind, name, got, message, want, wantMessage)
			}
			expectSameOfKstatus(t, kind+": "+name, got, conditions)
			seen[got]++
		}
		t.Logf("%s: %v", kind, seen)
		if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, slices.Sorted(slices.Values(verdicts))) {
			t.Errorf("the recorded states of %s are %v, want %v", kind, got, verdicts)
		}
	}
}

// expectSameOfKstatus: both are content with the same states, and what has failed for good is Degraded. Between these kstatus
// knows work in progress only.
func expectSameOfKstatus(t *testing.T, name, verdict string, conditions []any) {
	t.Helper()
	said := kstatus(t, object("Any", conditions))
	if (said == current) != (verdict == healthy) {
		t.Errorf("%s: Argo CD says %s, kstatus %s", name, verdict, said)
	}
	if said == failed && verdict != degraded {
		t.Errorf("%s: Argo CD says %s of what has failed", name, verdict)
	}
	if stalled, _, _ := find(conditions, "Stalled"); (stalled == "True") != (said == failed) {
		t.Errorf("%s: kstatus says %s, Stalled is %q", name, said, stalled)
	}
}

// The verdicts of kstatus.
const (
	current, failed, inProgress = string(status.CurrentStatus), string(status.FailedStatus), string(status.InProgressStatus)
)

// kstatus is the verdict of kstatus, which must be that of the copy by which Flux judges.
func kstatus(t *testing.T, object *unstructured.Unstructured) string {
	t.Helper()
	result, err := status.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	ofFlux, err := flux.Compute(object)
	if err != nil {
		t.Fatal(err)
	}
	if ofFlux.Status.String() != result.Status.String() || ofFlux.Message != result.Message {
		t.Errorf("kstatus says %s (%s), Flux %s (%s)", result.Status, result.Message, ofFlux.Status, ofFlux.Message)
	}
	return result.Status.String()
}

func TestHealthBeforeTheOperatorHasLooked(t *testing.T) {
	ready := []any{map[string]any{"type": "Ready", "status": "True", "reason": "Verified", "message": "all is well"}}
	for _, kind := range kinds() {
		bare := object(kind, nil)
		delete(bare.Object, "status")
		if got, message := health(t, kind, bare); got != progressing || message == "" {
			t.Errorf("%s without a status is %s (%s)", kind, got, message)
		}
		// The one difference: kstatus knows no kind of ours, and takes one without a status for one that never has any.
		if said := kstatus(t, bare); said != current {
			t.Errorf("without a status kstatus says %s of %s: docs/conditions.md says otherwise", said, kind)
		}
		empty := object(kind, nil)
		empty.Object["status"] = map[string]any{}
		if got, _ := health(t, kind, empty); got != progressing {
			t.Errorf("%s with an empty status is %s", kind, got)
		}
		if kind == "LowLatencyNode" {
			continue
		}
		edited := object(kind, ready)
		edited.SetGeneration(4)
		if got, _ := health(t, kind, edited); got != progressing {
			t.Errorf("%s with a new spec is %s", kind, got)
		}
		if said := kstatus(t, edited); said != inProgress {
			t.Errorf("with a new spec kstatus says %s of %s", said, kind)
		}
	}
}

// TestHealthOfANode: what the agent reports. It knows no Stalled; a plan that has not come about for good is Degraded nevertheless.
func TestHealthOfANode(t *testing.T) {
	all := recorded(t, "LowLatencyNode")
	for name, reason := range map[string]string{"has not rebooted": "RebootPending", "not looked at again": "AwaitingVerification"} {
		ready := map[string]any{"type": "Ready", "status": "False", "reason": reason, "message": "it says so"}
		all["of other packages: "+name] = []any{map[string]any{"type": "Applied", "status": "False", "reason": reason, "message": "x"}, ready}
	}
	seen := map[string]int{}
	for name, conditions := range all {
		isReady, reason, want := find(conditions, "Ready")
		verdict := progressing
		switch {
		case isReady == "True":
			verdict = healthy
		case isReady == "False" && slices.Contains([]string{"ChecksFailed", "Refused", "TakenBack"}, reason):
			verdict = degraded
		}
		got, message := health(t, "LowLatencyNode", object("LowLatencyNode", conditions))
		if got != verdict || message != want {
			t.Errorf("%s: health is %s (%s), want %s (%s)", name, got, message, verdict, want)
		}
		expectSameOfKstatus(t, name, got, conditions)
		seen[isReady+" "+reason]++
	}
	states := []string{
		"False AwaitingVerification", "False ChecksFailed", "False RebootPending", "False Refused", "False TakenBack", "True Verified",
		"Unknown AwaitingPlan", "Unknown ChecksUnknown",
	}
	if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, states) {
		t.Errorf("the states of nodes are %q, want %q", got, states)
	}
}

// TestHealthOfAnApplication: an app of apps waits for what its Applications manage.
func TestHealthOfAnApplication(t *testing.T) {
	application := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}}
	if got, _ := health(t, "Application", application); got != progressing {
		t.Errorf("an Application without a status is %s", got)
	}
	for _, want := range []string{healthy, progressing, degraded, suspended} {
		application.Object["status"] = map[string]any{"health": map[string]any{"status": want, "message": "it says so"}}
		if got, message := health(t, "Application", application); got != want || message != "it says so" {
			t.Errorf("an Application that is %s is judged as %s (%s)", want, got, message)
		}
	}
}

// TestManifestsHoldTheChecks: argocd-cm.yaml and argocd-operator.yaml repeat the scripts, because Argo CD reads no files.
func TestManifestsHoldTheChecks(t *testing.T) {
	var configMap struct{ Data map[string]string }
	read(t, "argocd-cm.yaml", &configMap)
	var operator struct {
		Spec struct {
			ResourceHealthChecks []struct{ Group, Kind, Check string }
		}
	}
	read(t, "argocd-operator.yaml", &operator)
	checked := map[string]string{}
	for _, one := range operator.Spec.ResourceHealthChecks {
		checked[one.Group+"_"+one.Kind] = one.Check
	}
	groups := map[string]string{"Application": "argoproj.io"}
	for _, kind := range kinds() {
		groups[kind] = "lowlatency.dev"
	}
	for kind, group := range groups {
		script, err := os.ReadFile(filepath.Join(checks, "health", kind+".lua"))
		if err != nil {
			t.Fatal(err)
		}
		if configMap.Data["resource.customizations.health."+group+"_"+kind] != string(script) {
			t.Errorf("argocd-cm.yaml has not health/%s.lua", kind)
		}
		if checked[group+"_"+kind] != string(script) {
			t.Errorf("argocd-operator.yaml has not health/%s.lua", kind)
		}
	}
	if len(configMap.Data) != len(groups) || len(checked) != len(groups) {
		t.Errorf("%d checks in argocd-cm.yaml, %d in argocd-operator.yaml, %d kinds", len(configMap.Data), len(checked), len(groups))
	}
}

func read(t *testing.T, name string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(checks, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		t.Fatalf("%s: %v", name, strings.TrimSpace(err.Error()))
	}
}
