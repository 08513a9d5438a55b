// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package signingkey

import (
	"crypto/rand"
	"strings"
	"testing"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
)

// reports is what a guard says that trusts a key.
func reports(id string, serial int64) *v1alpha1.NodeEnactment {
	return &v1alpha1.NodeEnactment{Key: &v1alpha1.EnactmentKey{ID: id, Serial: serial}}
}

// twoKeys are a key and the one that takes its place.
func twoKeys(t *testing.T) (first, next *Key) {
	t.Helper()
	first, err := New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if next, err = first.Next(rand.Reader); err != nil {
		t.Fatal(err)
	}
	return first, next
}

// TestNext: a key that takes the place of another is read from its Secret as it was made, and knows the ones before.
func TestNext(t *testing.T) {
	first, err := New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := first
	for serial := int64(2); serial < 4; serial++ {
		next, err := key.Next(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if key, err = Read(next.Secret("operator")); err != nil || key.Last.Serial != serial || key.Last.ID() != next.Last.ID() {
			t.Fatalf("Read() = %+v, %v", key, err)
		}
	}
	for name, tc := range map[string]struct {
		key      *Key
		reported *v1alpha1.NodeEnactment
		want     Standing
	}{
		"no guard":              {key, nil, Unknown},
		"a silent guard":        {key, &v1alpha1.NodeEnactment{}, Unknown},
		"the last":              {key, reports(key.Last.ID(), 3), Current},
		"the first":             {key, reports(first.Last.ID(), 1), Former},
		"the first, by hand":    {key, reports(first.Last.ID(), 0), Former},
		"a strange one":         {key, reports("0123456789abcdef", 1), Strange},
		"newer than the backup": {first, reports(key.Last.ID(), 3), Strange},
		"no key":                {nil, reports(key.Last.ID(), 3), Strange},
	} {
		if got := tc.key.StandingOf(tc.reported); got != tc.want {
			t.Errorf("%s: StandingOf() = %s, want %s", name, got, tc.want)
		}
	}
}

// TestEstrangement: what a profile says of a key that guards trust and the operator has not has the way out.
func TestEstrangement(t *testing.T) {
	first, next := twoKeys(t)
	var lost *Key
	if says := lost.Estrangement("operator", reports("0123456789abcdef", 1).Key); !strings.Contains(says, "--lost") {
		t.Errorf("Estrangement() = %q", says)
	}
	if says := first.Estrangement("operator", reports(next.Last.ID(), 2).Key); !strings.Contains(says, "restore the newer Secret") || !strings.Contains(says, "lowlatency-guard trust ") {
		t.Errorf("Estrangement() = %q", says)
	}
}

func TestReadRefuses(t *testing.T) {
	first, next := twoKeys(t)
	for name, change := range map[string]func(map[string][]byte){
		"no seed":                func(data map[string][]byte) { delete(data, seedEntry) },
		"the seed from before":   func(data map[string][]byte) { data[seedEntry] = first.Private.Seed() },
		"a chain that is broken": func(data map[string][]byte) { data[chainEntry] = data[chainEntry][1:] },
	} {
		secret := next.Secret("operator")
		change(secret.Data)
		if key, err := Read(secret); err == nil {
			t.Errorf("%s: Read() = %+v", name, key)
		}
	}
}
