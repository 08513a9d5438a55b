// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package bootloader

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/lowlatency-dev/lowlatency-operator/internal/node/guard/hostfile"
)

// menuEntry is an entry as systemd-boot sees it.
type menuEntry struct {
	path  string
	state hostfile.State
	// id is the name of its file in small letters.
	id   string
	keys map[string]string
	// left are the starts that it has left until it counts as bad; -1 for an entry that is not counted.
	left int
}

var countedName = regexp.MustCompile(`\+([0-9]+)(-[0-9]+)?\.conf$`)

func newMenuEntry(name string, state hostfile.State) menuEntry {
	e := menuEntry{path: name, state: state, id: strings.ToLower(name[strings.LastIndex(name, "/")+1:]), keys: entryKeys(string(state.Content)), left: -1}
	if counted := countedName.FindStringSubmatch(e.id); counted != nil {
		if left, err := strconv.Atoi(counted[1]); err == nil {
			e.left = left
		}
	}
	return e
}

// compareEntries is the order of systemd-boot since it knows sort-key (boot.c): entries that count as bad go last, those with a sort-key
// stand in front of those without, and newer ones in front of older ones.
func compareEntries(a, b menuEntry) int {
	sortKeyA, sortKeyB := a.keys["sort-key"], b.keys["sort-key"]
	order := cmp.Or(compareBool(a.left == 0, b.left == 0), compareBool(sortKeyA == "", sortKeyB == ""))
	if order == 0 && sortKeyA != "" {
		order = cmp.Or(
			strings.Compare(sortKeyA, sortKeyB),
			strings.Compare(a.keys["machine-id"], b.keys["machine-id"]),
			compareVersions(b.keys["version"], a.keys["version"]),
		)
	}
	return cmp.Or(order, compareVersions(b.id, a.id), cmp.Compare(b.left, a.left))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// compareVersions is the order of versions of the Boot Loader Specification, from old to new. A tilde stands in front of what comes before a
// release; else the longer one is newer, then come "-", "^" and "." between parts; a number is newer than letters.
func compareVersions(a, b string) int {
	for {
		a, b = strings.TrimLeftFunc(a, isNoVersion), strings.TrimLeftFunc(b, isNoVersion)
		if order := cutMark(&a, &b, "~"); order != 0 {
			return order
		}
		if a == "" || b == "" {
			return cmp.Compare(len(a), len(b))
		}
		for _, mark := range []string{"-", "^", "."} {
			if order := cutMark(&a, &b, mark); order != 0 {
				return order
			}
		}
		if order := cutPart(&a, &b); order != 0 {
			return order
		}
	}
}

// cutMark takes a mark off both. What begins with it is older than what does not.
func cutMark(a, b *string, mark string) int {
	restA, hasA := strings.CutPrefix(*a, mark)
	restB, hasB := strings.CutPrefix(*b, mark)
	if hasA && hasB {
		*a, *b = restA, restB
	}
	return compareBool(hasB, hasA)
}

// cutPart takes the number or the letters off that both begin with, and compares them.
func cutPart(a, b *string) int {
	is := isLetter
	if startsWith(*a, isDigit) || startsWith(*b, isDigit) {
		is = isDigit
	}
	restA, restB := strings.TrimLeftFunc(*a, is), strings.TrimLeftFunc(*b, is)
	partA, partB := strings.TrimSuffix(*a, restA), strings.TrimSuffix(*b, restB)
	*a, *b = restA, restB
	if startsWith(partA+partB, isDigit) {
		isThere := compareBool(partA != "", partB != "")
		partA, partB = strings.TrimLeft(partA, "0"), strings.TrimLeft(partB, "0")
		return cmp.Or(isThere, cmp.Compare(len(partA), len(partB)), strings.Compare(partA, partB))
	}
	// Longer words are newer where one begins with the other, which is their usual order.
	return strings.Compare(partA, partB)
}

func startsWith(text string, is func(rune) bool) bool {
	return text != "" && is(rune(text[0]))
}

func isDigit(r rune) bool  { return r >= '0' && r <= '9' }
func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }
func isNoVersion(r rune) bool {
	return !isDigit(r) && !isLetter(r) && !slices.Contains([]rune("~-^."), r)
}
