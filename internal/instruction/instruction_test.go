// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package instruction_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
	"github.com/lowlatency-dev/lowlatency-operator/internal/operation"
)

// keyOf makes a key of a seed, so that each run signs the same bytes.
func keyOf(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

func publicOf(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func enact() Instruction {
	return Instruction{
		Node: "worker-1", NodeUID: "3f1c2b7a-0000-4000-8000-000000000001", PlanHash: "17304b9f96e3aaaa", Number: 7, Action: Enact,
		Reboot: RebootAllowed, Attempt: FirstAttempt, DeadlineSeconds: 600,
		Operations: []operation.Operation{
			operation.PutFile("/etc/lowlatency/a", 0o644, "a < b && c\n"),
			operation.SetSysctl("vm.stat_interval", "10"),
			operation.AddKernelArguments("nohz_full=2-7"),
		},
		Plan: json.RawMessage(`{"name":"worker-1"}`),
	}
}

func remove() Instruction {
	i := enact()
	i.Action, i.Operations, i.Plan, i.PlanHash = Remove, nil, nil, ""
	return i
}

func sign(t *testing.T, key ed25519.PrivateKey, i Instruction) []byte {
	t.Helper()
	data, err := Sign(key, i)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// signRaw signs bytes that Sign would not make.
func signRaw(key ed25519.PrivateKey, payload string) []byte {
	signature := ed25519.Sign(key, []byte("lowlatency-instruction/1\n"+payload))
	return []byte("lowlatency-instruction/1 " + KeyID(publicOf(key)) + " " + base64.StdEncoding.EncodeToString(signature) + "\n" + payload)
}

func payloadOf(data []byte) string {
	_, payload, _ := strings.Cut(string(data), "\n")
	return payload
}

func TestOpenReturnsWhatWasSigned(t *testing.T) {
	key := keyOf(1)
	for _, i := range []Instruction{enact(), remove()} {
		got, err := Open(publicOf(key), sign(t, key, i), i.NodeUID, i.Number-1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&i, got); diff != "" {
			t.Errorf("instruction (-signed +opened):\n%s", diff)
		}
	}
}

func TestSignHasOneSpelling(t *testing.T) {
	key, i := keyOf(1), enact()
	reversed := enact()
	slices.Reverse(reversed.Operations)
	if !bytes.Equal(sign(t, key, i), sign(t, key, reversed)) {
		t.Error("the order of operations, which does not count, changes the bytes")
	}
	if operation.Hash(reversed.Operations) != operation.Hash(i.Operations) || reversed.Operations[0].Kind != operation.KernelArguments {
		t.Error("signing has changed the caller's operations")
	}
	if Digest(sign(t, key, i)) == Digest(sign(t, key, remove())) {
		t.Error("two instructions have one digest")
	}
}

func TestOpenRefuses(t *testing.T) {
	key := keyOf(1)
	good := sign(t, key, enact())
	uid := enact().NodeUID
	with := func(change func(*Instruction)) []byte {
		i := enact()
		change(&i)
		return sign(t, key, i)
	}
	payload := payloadOf(good)
	cases := map[string]struct {
		data   []byte
		last   int64
		reason Reason
		number int64
		want   string
	}{
		"another node":          {with(func(i *Instruction) { i.NodeUID = "other" }), 6, ReasonWrongNode, 7, "it is for node worker-1 with UID other, and this host is the node with UID " + uid},
		"the same number again": {good, 7, ReasonReplayed, 7, "its number is 7, and instruction 7 was taken already"},
		"an older number":       {good, 9, ReasonReplayed, 7, "instruction 9 was taken already"},
		"another key":           {sign(t, keyOf(2), enact()), 6, ReasonWrongKey, 0, `it is signed with key "` + KeyID(publicOf(keyOf(2))) + `", and this host takes instructions signed with key ` + KeyID(publicOf(key))},
		"another key under our name": {
			bytes.Replace(sign(t, keyOf(2), enact()), []byte(KeyID(publicOf(keyOf(2)))), []byte(KeyID(publicOf(key))), 1), 6,
			ReasonContentChanged, 0, "its signature does not fit its content",
		},
		"a changed content":   {bytes.Replace(good, []byte(`"10"`), []byte(`"99"`), 1), 6, ReasonContentChanged, 0, "its signature does not fit its content"},
		"a changed signature": {bytes.Replace(good, good[45:49], []byte("AAAA"), 1), 6, ReasonContentChanged, 0, "its signature does not fit its content"},
		"a carriage return":   {bytes.Replace(good, []byte("\n"), []byte("\r\n"), 1), 6, ReasonContentChanged, 0, "its signature does not fit its content"},
		"more behind it":      {append(slices.Clone(good), '\n'), 6, ReasonContentChanged, 0, "its signature does not fit its content"},
		"too long":            {bytes.Repeat([]byte("a"), MaximumBytes+1), 6, ReasonTooLong, 0, "it has 1048577 bytes, and at most 1048576 are taken"},
		"nothing":             {nil, 6, ReasonMalformed, 0, "it does not begin with a line of lowlatency-instruction/1"},
		"garbage":             {[]byte("\x00\xff\n\n{}"), 6, ReasonMalformed, 0, "it does not begin with a line"},
		"another version":     {bytes.Replace(good, []byte("/1 "), []byte("/2 "), 1), 6, ReasonMalformed, 0, "it does not begin with a line"},
		"no JSON":             {signRaw(key, "worker-1"), 6, ReasonMalformed, 0, "it is no instruction"},
		"an unknown field":    {signRaw(key, strings.Replace(payload, `"number"`, `"shell":"rm","number"`, 1)), 6, ReasonUnknownField, 0, `it has the field "shell", which this guard does not know`},
		"an unknown field of an operation": {
			signRaw(key, strings.Replace(payload, `{"kind"`, `{"run":"rm","kind"`, 1)), 6, ReasonUnknownField, 0, `it has the field "run"`,
		},
		"a field twice":         {signRaw(key, strings.Replace(payload, `"number":7`, `"number":7,"number":7`, 1)), 6, ReasonMalformed, 7, "it is not spelled as instructions are"},
		"a field in capitals":   {signRaw(key, strings.Replace(payload, `"number"`, `"NUMBER"`, 1)), 6, ReasonMalformed, 7, "it is not spelled as instructions are"},
		"signed, but no action": {signRaw(key, strings.Replace(payload, `"Enact"`, `"Shell"`, 1)), 6, ReasonInvalid, 7, `there is no action "Shell"`},
		"signed, but a path of somebody else": {
			signRaw(key, strings.Replace(payload, "/etc/lowlatency/a", "/etc/shadow", 1)), 6, ReasonInvalid, 7, `"/etc/shadow" is not among the paths`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := Open(publicOf(key), tc.data, uid, tc.last)
			refused, ok := errors.AsType[*RefusedError](err)
			if !ok || refused.Reason != tc.reason || refused.Number != tc.number || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Open() = %+v, want %s of number %d with %q", err, tc.reason, tc.number, tc.want)
			}
		})
	}
	if _, err := Open(nil, good, uid, 6); err == nil || !strings.Contains(err.Error(), "knows no key") {
		t.Errorf("without a key: %v", err)
	}
}

func TestSignRefuses(t *testing.T) {
	cases := map[string]struct {
		change func(*Instruction)
		want   string
	}{
		"no node":               {func(i *Instruction) { i.Node = "" }, `"" is not the name of a node`},
		"a line break":          {func(i *Instruction) { i.Node = "a\nb" }, `"a\nb" is not the name of a node`},
		"no UID":                {func(i *Instruction) { i.NodeUID = "" }, `"" is not the UID of a node`},
		"no number":             {func(i *Instruction) { i.Number = 0 }, "the number is 0 and must be positive"},
		"no action":             {func(i *Instruction) { i.Action = "" }, `there is no action ""`},
		"no word on reboots":    {func(i *Instruction) { i.Reboot = "" }, `reboot is "" and must be Allowed or Forbidden`},
		"no word on attempts":   {func(i *Instruction) { i.Attempt = "" }, `attempt is "" and must be First or Further`},
		"no deadline":           {func(i *Instruction) { i.DeadlineSeconds = 0 }, "the deadline is 0 seconds and must be 60 to 3600"},
		"a day":                 {func(i *Instruction) { i.DeadlineSeconds = 86400 }, "the deadline is 86400 seconds"},
		"nothing to do":         {func(i *Instruction) { i.Operations = nil }, "has no operations"},
		"no hash":               {func(i *Instruction) { i.PlanHash = "" }, `"" is not the hash of a plan`},
		"operations to remove":  {func(i *Instruction) { i.Action = Remove }, "must have none"},
		"an invalid operation":  {func(i *Instruction) { i.Operations[0].Path = "/etc/shadow" }, "is not among the paths"},
		"more than can be sent": {func(i *Instruction) { i.Plan = json.RawMessage(`"` + strings.Repeat("a", MaximumBytes) + `"`) }, "and at most 1048576 are taken"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			i := enact()
			tc.change(&i)
			if _, err := Sign(keyOf(1), i); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Sign() = %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzOpen holds that what anybody without the key writes is refused with a reason, and never read further than the signature.
func FuzzOpen(f *testing.F) {
	key := keyOf(1)
	good, err := Sign(key, enact())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte("lowlatency-instruction/1 a b\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, err := Open(publicOf(key), data, enact().NodeUID, 0)
		if bytes.Equal(data, good) != (err == nil) {
			t.Fatalf("Open(%q) = %v", data, err)
		}
		if refused, ok := errors.AsType[*RefusedError](err); err != nil && (!ok || refused.Reason == "" || refused.Message == "") {
			t.Fatalf("Open() = %#v, want a reason and a message", err)
		}
	})
}

// FuzzSigned holds that whatever JSON the operator's key has signed is read to one meaning, or refused.
func FuzzSigned(f *testing.F) {
	key := keyOf(1)
	for _, i := range []Instruction{enact(), remove()} {
		data, err := Sign(key, i)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(payloadOf(data))
	}
	f.Add(`{}`)
	f.Fuzz(func(t *testing.T, payload string) {
		data := signRaw(key, payload)
		i, err := Open(publicOf(key), data, enact().NodeUID, 0)
		if err != nil {
			return
		}
		again, err := Sign(key, *i)
		if err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%q is read as %+v, which is signed as %q: %v", payload, i, again, err)
		}
	})
}

func TestSignRefusesAKeyOfAnotherLength(t *testing.T) {
	for _, length := range []int{0, ed25519.SeedSize, ed25519.PrivateKeySize - 1} {
		if _, err := Sign(keyOf(1)[:length], enact()); err == nil || !strings.Contains(err.Error(), "a private key of Ed25519 has 64") {
			t.Errorf("Sign() with %d bytes = %v", length, err)
		}
	}
}
