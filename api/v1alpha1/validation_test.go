// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package v1alpha1_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// rule is one CEL rule at one place of a kind's schema, with an object that it accepts and one that it rejects.
type rule[T any] struct {
	// field is the place, with [] for the items of a list and the values of a map.
	field    string
	message  string
	accepted func(*T)
	rejected func(*T)
}

// place is how a rule is compared with the generated CRD.
type place struct{ Field, Message string }

func places[T any](rules []rule[T]) map[place]int {
	counts := map[place]int{}
	for _, r := range rules {
		counts[place{r.field, r.message}]++
	}
	return counts
}

// generatedPlaces returns each CEL rule of a kind's generated CRD.
func generatedPlaces(t testing.TB, kind string) map[place]int {
	t.Helper()
	counts := map[place]int{}
	walk(schemas(t)[kind+" v1alpha1"], func(n node) {
		field := strings.NewReplacer(".items", "[]", ".*", "[]").Replace(n.path)
		for _, r := range n.schema.XValidations {
			counts[place{field, r.Message}]++
		}
	})
	return counts
}

// TestEveryRuleHasACase holds the tables of cases against the generated CRDs: a rule without a case fails, and so
// does a case without a rule.
func TestEveryRuleHasACase(t *testing.T) {
	cases := map[string]map[place]int{
		"LowLatencyNodeProfile": places(profileRules()),
		"LowLatencyNode":        places(nodeRules()),
		"BypassNICPool":         withTransition(places(nicPoolRules())),
		"LatencyTest":           places(latencyTestRules()),
	}
	for kind, got := range cases {
		t.Run(kind, func(t *testing.T) {
			want := generatedPlaces(t, kind)
			if len(want) == 0 {
				t.Fatalf("the CRD has no rule")
			}
			for of := range want {
				// A rule may have more than one case.
				got[of] = min(got[of], max(want[of], 1))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rules of the CRD (-) and cases (+):\n%s", diff)
			}
		})
	}
}

// withTransition adds the rule that holds between two versions of a BypassNICPool, which has a test of its own.
func withTransition(counts map[place]int) map[place]int {
	counts[place{"spec.resourceName", resourceIsImmutable}]++
	return counts
}

// objections returns what the API server finds wrong, by place. A message is reduced to the known sentence that
// it ends with: before it, the server repeats the value.
func objections(err error, sentence string) map[place]int {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	index := regexp.MustCompile(`\[[^]]*\]`)
	found := map[place]int{}
	for _, cause := range status.Status().Details.Causes {
		field, message := index.ReplaceAllString(cause.Field, "[]"), cause.Message
		if field == "<nil>" {
			field = ""
		}
		if strings.HasSuffix(message, ": "+sentence) {
			message = sentence
		}
		found[place{field, message}]++
	}
	return found
}

// has says whether an object has a value at a place, so that a rule there is evaluated.
func has(object any, field string) bool {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	Expect(err).NotTo(HaveOccurred())
	if field == "" {
		return true
	}
	return hasPath(content, strings.Split(strings.ReplaceAll(field, "[]", ".[]"), "."))
}

func hasPath(value any, path []string) bool {
	if len(path) == 0 {
		return value != nil
	}
	switch typed := value.(type) {
	case []any:
		return path[0] == "[]" && len(typed) > 0 && hasPath(typed[0], path[1:])
	case map[string]any:
		if path[0] != "[]" {
			return hasPath(typed[path[0]], path[1:])
		}
		for _, any := range typed {
			return hasPath(any, path[1:])
		}
	}
	return false
}

func newProfile() *v1alpha1.LowLatencyNodeProfile {
	return &v1alpha1.LowLatencyNodeProfile{
		ObjectMeta: metav1.ObjectMeta{Name: "trading"},
		Spec: v1alpha1.LowLatencyNodeProfileSpec{
			NodeSelector: v1alpha1.NodeSelector{MatchLabels: v1alpha1.Labels{"node-role.kubernetes.io/trading": ""}},
		},
	}
}

func describeProfileRules(admin func() client.Client) {
	create := func(ctx SpecContext, change func(*v1alpha1.LowLatencyNodeProfile)) (*v1alpha1.LowLatencyNodeProfile, error) {
		profile := newProfile()
		change(profile)
		return profile, admin().Create(ctx, profile, client.DryRunAll)
	}
	for _, r := range profileRules() {
		It("accepts and rejects at "+r.field+": "+r.message, func(ctx SpecContext) {
			accepted, err := create(ctx, r.accepted)
			Expect(err).NotTo(HaveOccurred())
			Expect(has(accepted, r.field)).To(BeTrue(), "the accepted object has no value at "+r.field)

			_, err = create(ctx, r.rejected)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
			Expect(objections(err, r.message)).To(Equal(map[place]int{{r.field, r.message}: 1}))
		})
	}
}

func describeNodeRules(admin func() client.Client) {
	var created *v1alpha1.LowLatencyNode

	BeforeAll(func(ctx SpecContext) {
		created = &v1alpha1.LowLatencyNode{
			ObjectMeta: metav1.ObjectMeta{Name: "node-1"},
			Spec:       v1alpha1.LowLatencyNodeSpec{Profile: "trading"},
		}
		Expect(admin().Create(ctx, created)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(admin().Delete(ctx, created)).To(Succeed()) })
	})

	update := func(ctx SpecContext, field string, change func(*v1alpha1.LowLatencyNode)) (*v1alpha1.LowLatencyNode, error) {
		node := created.DeepCopy()
		change(node)
		if strings.HasPrefix(field, "status") {
			return node, admin().Status().Update(ctx, node, client.DryRunAll)
		}
		return node, admin().Update(ctx, node, client.DryRunAll)
	}
	for _, r := range nodeRules() {
		It("accepts and rejects at "+r.field+": "+r.message, func(ctx SpecContext) {
			accepted, err := update(ctx, r.field, r.accepted)
			Expect(err).NotTo(HaveOccurred())
			Expect(has(accepted, r.field)).To(BeTrue(), "the accepted object has no value at "+r.field)

			_, err = update(ctx, r.field, r.rejected)
			Expect(apierrors.IsInvalid(err)).To(BeTrue(), "not refused as invalid: %v", err)
			Expect(objections(err, r.message)).To(Equal(map[place]int{{r.field, r.message}: 1}))
		})
	}
}
