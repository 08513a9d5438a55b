// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package terminal

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRead(t *testing.T) {
	cases := map[string]struct {
		recorded string
		want     []string
	}{
		"lines":                         {"a\r\nb\r\n", []string{"a", "b"}},
		"a table drawn again":           {"head\n1\n2\n\x1b[2A\x1b[J3\n4\n", []string{"head", "3", "4"}},
		"lines erased to the right":     {"head\n1\x1b[K\n2\x1b[K\n\x1b[2A\r3\x1b[K\n4\x1b[K\n\x1b[Jnext\n", []string{"head", "3", "4", "next"}},
		"a synchronized update":         {"1\n\x1b[?2026h\x1b[1A\r2\x1b[K\n\x1b[J\x1b[?2026lnext\n", []string{"2", "next"}},
		"a shorter table":               {"1\n2\n3\n\x1b[3A\r4\x1b[K\n\x1b[Jnext\n", []string{"4", "next"}},
		"further up than there is":      {"1\n\x1b[9A2\n", []string{"2"}},
		"what is below stays otherwise": {"1\n2\n\x1b[2A3\n", []string{"3", "2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := Lines(strings.NewReader(tc.recorded))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPictureIsXML: no sequence of a terminal is left, which no browser would draw.
func TestPictureIsXML(t *testing.T) {
	lines, err := Lines(strings.NewReader("before\n\x1b[1mhead\x1b[0m\n1\x1b[K\n\x1b[1A\r<2>\x1b[K\n\x1b[J"))
	if err != nil {
		t.Fatal(err)
	}
	picture := Draw(Cut(lines, "head", 9))
	if strings.Contains(picture, "before") || !strings.Contains(picture, "&lt;2&gt;") {
		t.Errorf("other lines are drawn:\n%s", picture)
	}
	for decoder := xml.NewDecoder(strings.NewReader(picture)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
	}
}
