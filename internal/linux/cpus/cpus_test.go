// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cpus_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowlatency-dev/lowlatency-operator/internal/linux/cpus"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		list string
		want []int
	}{
		"empty":                    {list: ""},
		"line break only":          {list: "\n"},
		"null of nohz_full":        {list: "(null)\n"},
		"one":                      {list: "7", want: []int{7}},
		"range and single":         {list: "0-3,8\n", want: []int{0, 1, 2, 3, 8}},
		"unsorted and overlapping": {list: "5,1-3,2-4", want: []int{1, 2, 3, 4, 5}},
		"spaces":                   {list: " 1, 3-4 ", want: []int{1, 3, 4}},
		"across a word":            {list: "62-65", want: []int{62, 63, 64, 65}},
		"stride":                   {list: "0-31:2/8", want: []int{0, 1, 8, 9, 16, 17, 24, 25}},
		"stride cut by the range":  {list: "0-9:3/4", want: []int{0, 1, 2, 4, 5, 6, 8, 9}},
		"highest":                  {list: "8191", want: []int{8191}},
		"range of one":             {list: "4-4", want: []int{4}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := cpus.Parse(tc.list)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.IDs(), tc.want) {
				t.Errorf("Parse(%q) = %v, want %v", tc.list, got.IDs(), tc.want)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	cases := map[string]struct{ list, wantMessage string }{
		"word":                  {"all", `"all" is not a CPU number`},
		"empty element":         {"1,,2", `"" is not a CPU number`},
		"negative":              {"-1", `"" is not a CPU number`},
		"sign":                  {"+1", `"+1" is not a CPU number`},
		"backwards":             {"5-3", `range "5-3" runs backwards`},
		"too high":              {"8192", "CPU 8192 is above the largest possible CPU 8191"},
		"too high in a range":   {"0-4294967295", "is not a CPU number"},
		"open range":            {"3-", `"" is not a CPU number`},
		"binary":                {"\x00\x01", "is not a CPU number"},
		"stride without range":  {"3:1/2", "has a stride but no range"},
		"stride without group":  {"0-3:1", "is not of the form used/group"},
		"stride of zero":        {"0-3:0/2", "must satisfy 0 < used <= group"},
		"group of zero":         {"0-3:0/0", "must satisfy 0 < used <= group"},
		"more used than group":  {"0-3:3/2", "must satisfy 0 < used <= group"},
		"stride is no number":   {"0-3:x/2", `"x" is not a CPU number`},
		"group is no number":    {"0-3:1/x", `"x" is not a CPU number`},
		"repeats":               {strings.Repeat("0-8191:1/2,", 5) + "0", "repeats CPUs more often"},
		"long text, abbreviate": {strings.Repeat("x", 500), strings.Repeat("x", 37) + "…"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			set, err := cpus.Parse(tc.list)
			if err == nil {
				t.Fatalf("Parse(%q) = %v, want an error", tc.list, set)
			}
			if !strings.Contains(err.Error(), tc.wantMessage) {
				t.Errorf("message %q lacks %q", err, tc.wantMessage)
			}
			if len(err.Error()) > 200 {
				t.Errorf("message of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestParseMask(t *testing.T) {
	cases := map[string]struct {
		mask string
		want string
	}{
		"one group":          {"000007e0\n", "5-10"},
		"two groups":         {"ff,00000001", "0,32-39"},
		"three groups":       {"1,00000000,80000000", "31,64"},
		"zeros":              {"00000000,00000000", ""},
		"leading zeros":      {"00000000,0000ffff", "0-15"},
		"short groups":       {"1,2", "1,32"},
		"as large as can be": {strings.Repeat("ffffffff,", 255) + "ffffffff", "0-8191"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := cpus.ParseMask(tc.mask)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != tc.want {
				t.Errorf("ParseMask(%q) = %q, want %q", tc.mask, got, tc.want)
			}
		})
	}
}

func TestParseMaskRefuses(t *testing.T) {
	for name, mask := range map[string]string{
		"empty":         "",
		"no number":     "xyz",
		"prefix":        "0xff",
		"33 bits":       "1ffffffff",
		"empty group":   "ff,,ff",
		"sign":          "-1",
		"8193 CPUs":     strings.Repeat("0,", 256) + "1",
		"a list":        "0-3",
		"ends in comma": "ff,",
	} {
		t.Run(name, func(t *testing.T) {
			if set, err := cpus.ParseMask(mask); err == nil {
				t.Errorf("ParseMask(%q) = %v, want an error", mask, set)
			}
		})
	}
}

func TestNotations(t *testing.T) {
	cases := map[string]struct {
		set      cpus.Set
		wantList string
		wantMask string
	}{
		"empty":        {cpus.Set{}, "", "0"},
		"first":        {cpus.Of(0), "0", "1"},
		"pair":         {cpus.Of(1, 0), "0-1", "3"},
		"gaps":         {cpus.Of(0, 2, 3, 9), "0,2-3,9", "20d"},
		"second group": {cpus.Of(0, 32), "0,32", "1,00000001"},
		"third group":  {cpus.Of(64), "64", "1,00000000,00000000"},
		"word edge":    {cpus.Of(63, 64), "63-64", "1,80000000,00000000"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.set.String(); got != tc.wantList {
				t.Errorf("String() = %q, want %q", got, tc.wantList)
			}
			if got := tc.set.Mask(); got != tc.wantMask {
				t.Errorf("Mask() = %q, want %q", got, tc.wantMask)
			}
		})
	}
}

func TestOfLeavesOutImpossibleNumbers(t *testing.T) {
	if got := cpus.Of(-1, 3, 1<<40, cpus.MaxCPU+1); !slices.Equal(got.IDs(), []int{3}) {
		t.Errorf("got %v, want only CPU 3", got.IDs())
	}
}

func TestFirstAndLast(t *testing.T) {
	cases := map[string]struct {
		set                 cpus.Set
		wantFirst, wantLast int
	}{
		"empty": {cpus.Set{}, -1, -1},
		"one":   {cpus.Of(70), 70, 70},
		"many":  {cpus.Of(3, 200, 64), 3, 200},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.set.First() != tc.wantFirst || tc.set.Last() != tc.wantLast {
				t.Errorf("got %d and %d, want %d and %d", tc.set.First(), tc.set.Last(), tc.wantFirst, tc.wantLast)
			}
		})
	}
}

// model is a set as a map, which is slow and hard to get wrong.
type model map[int]bool

func modelOf(s cpus.Set) model {
	m := model{}
	for _, id := range s.IDs() {
		m[id] = true
	}
	return m
}

func (m model) filter(keep func(id int) bool) model {
	kept := model{}
	for id := range m {
		if keep(id) {
			kept[id] = true
		}
	}
	return kept
}

// TestAlgebra compares every operation on pairs of sets with the same operation on maps.
func TestAlgebra(t *testing.T) {
	sets := []cpus.Set{
		{}, cpus.Of(0), cpus.Of(1, 2, 3), cpus.Of(63), cpus.Of(64), cpus.Of(0, 63, 64, 127, 128),
		cpus.Of(500), cpus.Of(1, 500), cpus.Of(128, 129, 130),
	}
	for _, a := range sets {
		for _, b := range sets {
			t.Run(fmt.Sprintf("%v and %v", a, b), func(t *testing.T) { checkPair(t, a, b) })
		}
	}
}

func checkPair(t *testing.T, a, b cpus.Set) {
	t.Helper()
	wantCommon := modelOf(a).filter(b.Contains)
	wantRest := modelOf(a).filter(func(id int) bool { return !b.Contains(id) })
	wantAll := modelOf(b)
	for id := range modelOf(a) {
		wantAll[id] = true
	}
	for name, pair := range map[string]struct {
		got  cpus.Set
		want model
	}{
		"union":        {a.Union(b), wantAll},
		"intersection": {a.Intersection(b), wantCommon},
		"difference":   {a.Difference(b), wantRest},
		"filter":       {a.Filter(b.Contains), wantCommon},
	} {
		if diff := cmp.Diff(pair.want, modelOf(pair.got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if pair.got.Len() != len(pair.want) || pair.got.IsEmpty() != (len(pair.want) == 0) {
			t.Errorf("%s: Len() = %d, IsEmpty() = %t, want %d CPUs", name, pair.got.Len(), pair.got.IsEmpty(), len(pair.want))
		}
	}
	if got, want := a.IsSubsetOf(b), len(wantRest) == 0; got != want {
		t.Errorf("IsSubsetOf = %t, want %t", got, want)
	}
	if got, want := a.Overlaps(b), len(wantCommon) > 0; got != want {
		t.Errorf("Overlaps = %t, want %t", got, want)
	}
	if got, want := a.Equal(b), a.String() == b.String(); got != want {
		t.Errorf("Equal = %t, want %t", got, want)
	}
}

func TestOperationsLeaveTheirOperandsAlone(t *testing.T) {
	a, b := cpus.Of(0, 1, 64), cpus.Of(1, 2, 500)
	a.Union(b)
	a.Intersection(b)
	a.Difference(b)
	a.Filter(func(int) bool { return false })
	if a.String() != "0-1,64" || b.String() != "1-2,500" {
		t.Errorf("the operands became %v and %v", a, b)
	}
}

func TestContainsOfOutlandishNumbers(t *testing.T) {
	set := cpus.Of(0, 63)
	for _, id := range []int{-1, -64, 64, 1 << 40} {
		if set.Contains(id) {
			t.Errorf("%v contains %d", set, id)
		}
	}
}

func TestJSON(t *testing.T) {
	type document struct {
		CPUs cpus.Set `json:"cpus"`
	}
	data, err := json.Marshal(document{cpus.Of(0, 1, 5)})
	if err != nil || string(data) != `{"cpus":"0-1,5"}` {
		t.Fatalf("got %s and %v", data, err)
	}
	var back document
	if err := json.Unmarshal(data, &back); err != nil || !back.CPUs.Equal(cpus.Of(0, 1, 5)) {
		t.Errorf("got %v and %v back", back.CPUs, err)
	}
	for _, bad := range []string{`{"cpus":7}`, `{"cpus":"x"}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}

// FuzzParse checks that what is accepted is bounded and survives being written and read again.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "(null)", "0", "0-3,8", "0-31:2/8", "8191", "0-8191", "0-8191:1/2,1-8191:1/2", "5-3", "1,,2",
		"0-4294967295", "18446744073709551616", " 1 , 2 ", "\x00", "0-1\n",
		"0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40", "0-3:1/0",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		set, err := cpus.Parse(list)
		if err != nil {
			return
		}
		if set.Last() > cpus.MaxCPU || set.First() < -1 {
			t.Fatalf("%q gave impossible CPUs %v", list, set)
		}
		checkWritten(t, set)
	})
}

// FuzzParseMask checks the same for masks.
func FuzzParseMask(f *testing.F) {
	for _, seed := range []string{
		"", "0", "ff,ffffffff", "000007e0", "ffffffff,ffffffff,ffffffff", "1ffffffff", ",", "0x1", "-1",
		strings.Repeat("ffffffff,", 255) + "ffffffff", strings.Repeat("0,", 300) + "1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, mask string) {
		set, err := cpus.ParseMask(mask)
		if err != nil {
			return
		}
		if set.Last() > cpus.MaxCPU {
			t.Fatalf("%q gave impossible CPUs %v", mask, set)
		}
		checkWritten(t, set)
	})
}

// checkWritten reads both notations of a set back.
func checkWritten(t *testing.T, set cpus.Set) {
	t.Helper()
	if back, err := cpus.Parse(set.String()); err != nil || !back.Equal(set) {
		t.Errorf("list %q came back as %v, %v", set, back, err)
	}
	if back, err := cpus.ParseMask(set.Mask()); err != nil || !back.Equal(set) {
		t.Errorf("mask %q came back as %v, %v", set.Mask(), back, err)
	}
	if !cpus.Of(set.IDs()...).Equal(set) {
		t.Errorf("%v differs from the set of its CPUs", set)
	}
}
