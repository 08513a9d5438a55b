// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/lowlatency-dev/lowlatency-operator/api/v1alpha1"
	"github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/platform/kubernetes/signingkey"
)

// secretStore is the part of an API server that keeps the operator's Secret.
type secretStore struct {
	secret *corev1.Secret
	writes int
}

func (s *secretStore) handle(mux *http.ServeMux) {
	const all = "/api/v1/namespaces/lowlatency-operator-system/secrets"
	mux.HandleFunc("GET "+all+"/"+signingkey.SecretName, func(w http.ResponseWriter, _ *http.Request) {
		if s.secret == nil {
			s.answer(w, http.StatusNotFound, metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound,
				Code: http.StatusNotFound, Message: "there is no such Secret",
			})
			return
		}
		s.answer(w, http.StatusOK, s.secret)
	})
	write := func(w http.ResponseWriter, r *http.Request) {
		secret := &corev1.Secret{}
		if err := json.NewDecoder(r.Body).Decode(secret); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.secret, s.writes = secret, s.writes+1
		s.answer(w, http.StatusOK, secret)
	}
	mux.HandleFunc("PUT "+all+"/"+signingkey.SecretName, write)
	mux.HandleFunc("POST "+all, write)
}

func (s *secretStore) answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

// newKeys are a key and the Secret that has it.
func newKeys(t *testing.T) (*signingkey.Key, *corev1.Secret) {
	t.Helper()
	key, err := signingkey.New(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret := key.Secret("lowlatency-operator-system")
	secret.ResourceVersion = "17"
	return key, secret
}

// guarded is a node whose guard says that it trusts a key.
func guarded(name string, key instruction.Key) v1alpha1.LowLatencyNode {
	node := v1alpha1.LowLatencyNode{}
	node.Name = name
	node.Status.Enactment = &v1alpha1.NodeEnactment{Key: &v1alpha1.EnactmentKey{ID: key.ID(), Serial: key.Serial}}
	return node
}

// TestRotateSigningKey: the Secret has a key afterwards that the one before has signed, written over the version that was read.
func TestRotateSigningKey(t *testing.T) {
	key, secret := newKeys(t)
	store := &secretStore{secret: secret}
	config := cluster(t, nil, []v1alpha1.LowLatencyNode{guarded("a", key.Last)}, store.handle)
	if got := run(t, "", "signing-key", "show", "--kubeconfig", config); got.code != ExitOK || !strings.Contains(got.out, "Current") {
		t.Errorf("show ends with %d:\n%s%s", got.code, got.out, got.err)
	}
	if got := run(t, "", "signing-key", "rotate", "--kubeconfig", config); got.code != ExitOK || !strings.Contains(got.out, "has taken the place of "+key.Last.ID()) {
		t.Fatalf("rotate ends with %d:\n%s%s", got.code, got.out, got.err)
	}
	next, err := signingkey.Read(store.secret)
	if err != nil {
		t.Fatal(err)
	}
	if got := next.StandingOf(guarded("a", key.Last).Status.Enactment); got != signingkey.Former || store.secret.ResourceVersion != "17" {
		t.Errorf("the key before is %s, written over version %q", got, store.secret.ResourceVersion)
	}
	if got := run(t, "", "signing-key", "show", "--kubeconfig", config); got.code != ExitFindings || !strings.Contains(got.out, "Former") {
		t.Errorf("show ends with %d after rotate:\n%s%s", got.code, got.out, got.err)
	}
}

// TestRotateRefuses: no key takes the place of another by mistake, and nothing is written then.
func TestRotateRefuses(t *testing.T) {
	_, secret := newKeys(t)
	frozen := secret.DeepCopy()
	frozen.Immutable = new(true)
	damaged := secret.DeepCopy()
	damaged.Data = map[string][]byte{"seed": []byte("short")}
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		args   []string
		says   string
	}{
		"it is gone":             {nil, nil, "restore it from a backup, or give --lost"},
		"it is not lost":         {secret, []string{"--lost"}, "is there: without --lost"},
		"an immutable Secret":    {frozen, nil, "without \"immutable: true\""},
		"a Secret without a key": {damaged, nil, "error: "},
	} {
		t.Run(name, func(t *testing.T) {
			store := &secretStore{secret: tc.secret}
			config := cluster(t, nil, nil, store.handle)
			got := run(t, "", append([]string{"signing-key", "rotate", "--kubeconfig", config}, tc.args...)...)
			if got.code != ExitUsage || !strings.Contains(got.err, tc.says) || store.writes != 0 {
				t.Errorf("ends with %d after %d writes:\n%s", got.code, store.writes, got.err)
			}
		})
	}
}

// TestALostSigningKey: a key that nothing signs is made when the Secret is gone, with the command for hosts.
func TestALostSigningKey(t *testing.T) {
	store := &secretStore{}
	got := run(t, "", "signing-key", "rotate", "--lost", "--kubeconfig", cluster(t, nil, nil, store.handle))
	if got.code != ExitOK || store.writes != 1 {
		t.Fatalf("ends with %d after %d writes:\n%s", got.code, store.writes, got.err)
	}
	key, err := signingkey.Read(store.secret)
	if err != nil {
		t.Fatal(err)
	}
	if want := "lowlatency-guard trust " + instruction.FormatKey(key.Last.Public); !strings.Contains(got.out, want) {
		t.Errorf("%q is missing in:\n%s", want, got.out)
	}
}
