// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package instruction_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/lowlatency-dev/lowlatency-operator/internal/instruction"
)

// chainOf are the keys of these seeds, one after the other.
func chainOf(t testing.TB, seeds ...byte) Chain {
	t.Helper()
	var chain Chain
	for i := 1; i < len(seeds); i++ {
		var err error
		if chain, err = chain.Extend(keyOf(seeds[i-1]), publicOf(keyOf(seeds[i]))); err != nil {
			t.Fatal(err)
		}
	}
	return chain
}

func TestChainIsReadAsItWasWritten(t *testing.T) {
	for _, chain := range []Chain{nil, chainOf(t, 1, 2), chainOf(t, 1, 2, 3)} {
		got, err := ParseChain(chain.Bytes())
		if diff := cmp.Diff(chain, got); diff != "" || err != nil {
			t.Errorf("ParseChain() = %v (-want +got):\n%s", err, diff)
		}
	}
}

func TestFollow(t *testing.T) {
	key := func(seed byte, serial int64) Key { return Key{Public: publicOf(keyOf(seed)), Serial: serial} }
	cases := map[string]struct {
		trusted Key
		chain   Chain
		offered byte
		want    Key
		says    string
	}{
		"the same":                       {key(1, 1), nil, 1, key(1, 1), ""},
		"the same, given by hand":        {key(3, 0), chainOf(t, 1, 2, 3), 3, key(3, 3), ""},
		"the next":                       {key(1, 1), chainOf(t, 1, 2), 2, key(2, 2), ""},
		"the one after the next":         {key(1, 1), chainOf(t, 1, 2, 3), 3, key(3, 3), ""},
		"the next of one given by hand":  {key(2, 0), chainOf(t, 1, 2, 3), 3, key(3, 3), ""},
		"back":                           {key(2, 2), nil, 1, Key{}, "restore the newer Secret"},
		"back by an old chain":           {key(3, 3), chainOf(t, 1, 2), 2, Key{}, "restore the newer Secret"},
		"foreign":                        {key(9, 1), nil, 1, Key{}, "lowlatency-guard trust " + FormatKey(publicOf(keyOf(1)))},
		"a foreign chain":                {key(1, 1), chainOf(t, 7, 8), 8, Key{}, "lowlatency-guard trust"},
		"another branch from before":     {key(2, 2), chainOf(t, 1, 7), 7, Key{}, "lowlatency-guard trust"},
		"a key that was another one":     {key(1, 5), chainOf(t, 1, 2), 2, Key{}, "lowlatency-guard trust"},
		"a chain that is another key's":  {key(1, 1), chainOf(t, 1, 2), 3, Key{}, "the chain of keys ends with key"},
		"the same with a smaller serial": {key(2, 9), chainOf(t, 1, 2), 2, Key{}, "lowlatency-guard trust"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.chain.Follow(tc.trusted, publicOf(keyOf(tc.offered)))
			if diff := cmp.Diff(tc.want, got); diff != "" || (err == nil) != (tc.says == "") {
				t.Fatalf("Follow() = %v (-want +got):\n%s", err, diff)
			}
			if err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("Follow() = %v, want %q", err, tc.says)
			}
			strange, is := errors.AsType[*StrangeKeyError](err)
			if is && (strange.TrustedID != tc.trusted.ID() || strange.Offered.ID() != KeyID(publicOf(keyOf(tc.offered)))) {
				t.Errorf("Follow() = %+v", strange)
			}
		})
	}
}

func TestExtendRefuses(t *testing.T) {
	chain := chainOf(t, 1, 2)
	for name, seeds := range map[string][2]byte{"a key that is not the last": {1, 3}, "the same key": {2, 2}, "a key from before": {2, 1}} {
		if got, err := chain.Extend(keyOf(seeds[0]), publicOf(keyOf(seeds[1]))); err == nil {
			t.Errorf("%s: Extend() = %v", name, got)
		}
	}
	if _, err := chain.Extend(keyOf(2), nil); err == nil {
		t.Error("Extend() takes no key for one")
	}
}

// TestLongChain forgets the oldest keys, and keeps counting.
func TestLongChain(t *testing.T) {
	seeds := make([]byte, MaximumLinks+3)
	for i := range seeds {
		seeds[i] = byte(i + 1)
	}
	chain := chainOf(t, seeds...)
	if len(chain) != MaximumLinks || chain[len(chain)-1].Next.Serial != int64(len(seeds)) {
		t.Fatalf("the chain has %d links and ends with serial %d", len(chain), chain[len(chain)-1].Next.Serial)
	}
	if got, err := ParseChain(chain.Bytes()); err != nil || len(got) != len(chain) {
		t.Errorf("ParseChain() = %d links, %v", len(got), err)
	}
	if chain.HasFormer(KeyID(publicOf(keyOf(1))), 1) || !chain.HasFormer(KeyID(publicOf(keyOf(3))), 3) {
		t.Error("the wrong link was forgotten")
	}
}

func TestParseChainRefuses(t *testing.T) {
	good := string(chainOf(t, 1, 2, 3).Bytes())
	lines := strings.Split(good, "\n")
	other := strings.Split(string(chainOf(t, 7, 8).Bytes()), "\n")
	for name, text := range map[string]string{
		"garbage":                 "\x00\xff",
		"another version":         strings.Replace(good, "/1", "/2", 1),
		"the version alone":       lines[0] + "\n",
		"no last line break":      strings.TrimSuffix(good, "\n"),
		"one line break more":     good + "\n",
		"a carriage return":       strings.Replace(good, "\n", "\r\n", 1),
		"a gap":                   strings.Join([]string{lines[0], lines[2], lines[1], ""}, "\n"),
		"a link twice":            strings.Join([]string{lines[0], lines[1], lines[1], ""}, "\n"),
		"a foreign link":          strings.Join([]string{lines[0], other[1], lines[2], ""}, "\n"),
		"a word more":             strings.Replace(good, "\n3 ", "\n3 x ", 1),
		"a serial that is none":   strings.Replace(good, "\n2 ", "\nx ", 1),
		"a serial of a first key": strings.Replace(good, "\n2 ", "\n1 ", 1),
		"another serial":          strings.Replace(good, "\n2 ", "\n5 ", 1),
		"a serial with a sign":    strings.Replace(good, "\n2 ", "\n+2 ", 1),
		"too long":                good + strings.Repeat("x", 1<<20),
	} {
		if chain, err := ParseChain([]byte(text)); err == nil {
			t.Errorf("%s: ParseChain() = %v", name, chain)
		}
	}
	// Whatever byte is changed, somebody notices.
	for i := range good {
		changed := []byte(good)
		changed[i] ^= 1
		if _, err := ParseChain(changed); err == nil {
			t.Errorf("ParseChain() takes a chain whose byte %d was changed: %q", i, changed)
		}
	}
	// A signature for another purpose is none for a key.
	if _, err := Open(publicOf(keyOf(1)), []byte(good), "", 0); err == nil {
		t.Error("a chain is taken for an instruction")
	}
}

// FuzzParseChain holds that what is read is right throughout, and spelled in one way.
func FuzzParseChain(f *testing.F) {
	f.Add(chainOf(f, 1, 2).Bytes())
	f.Add(chainOf(f, 1, 2, 3).Bytes())
	f.Add([]byte("lowlatency-keys/1\n2 a b c\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		chain, err := ParseChain(data)
		if err != nil {
			return
		}
		if !bytes.Equal(chain.Bytes(), data) {
			t.Fatalf("%q is written as %q", data, chain.Bytes())
		}
		for i := range chain {
			if i > 0 && chain[i].Former.ID() != chain[i-1].Next.ID() || chain[i].Next.Serial != chain[i].Former.Serial+1 {
				t.Fatalf("link %d of %q does not follow the one before", i, data)
			}
		}
	})
}
