// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package licences

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR
ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH
THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

const isc = `Copyright (c) 2026 Somebody Else

Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee is hereby granted, provided that the
above copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY
DAMAGES WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION,
ARISING OUT OF OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
`

// program writes a program that imports a module of another folder, which has the files.
func program(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	all := map[string]string{
		"program/go.mod": "module example.com/program\n\ngo 1.26\n\nrequire example.com/part v1.2.3\n\n" +
			"replace example.com/part v1.2.3 => ../part\n",
		"program/main.go":            "package main\n\nimport _ \"example.com/part/inner/deep\"\n\nfunc main() {}\n",
		"part/go.mod":                "module example.com/part\n\ngo 1.26\n",
		"part/inner/deep/deep.go":    "package deep\n",
		"part/inner/deep/license.go": "package deep\n",
	}
	maps.Copy(all, files)
	for path, text := range all {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(folder, "program")
}

func TestOf(t *testing.T) {
	root := strings.TrimSpace(string(mustRun(t, "go", "env", "GOROOT")))
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		t.Fatal(err)
	}
	library := Module{Path: StandardLibrary, Licences: []string{"BSD-3-Clause"}, Files: []File{{Name: "LICENSE", Text: own}}}
	for _, c := range []struct {
		name  string
		files map[string]string
		want  Module
		error string
	}{
		{
			name:  "at the root, with a notice",
			files: map[string]string{"part/LICENSE": mit, "part/NOTICE.txt": "made by somebody"},
			want: Module{Licences: []string{"MIT"}, Files: []File{
				{Name: "LICENSE", Text: []byte(mit)}, {Name: "NOTICE.txt", Text: []byte("made by somebody")},
			}},
		},
		{
			name:  "the nearest one counts",
			files: map[string]string{"part/LICENSE": mit, "part/inner/COPYING": isc},
			want:  Module{Licences: []string{"ISC"}, Files: []File{{Name: "inner/COPYING", Text: []byte(isc)}}},
		},
		{
			name:  "two in one text",
			files: map[string]string{"part/licence.md": mit + "\n" + isc},
			want:  Module{Licences: []string{"ISC", "MIT"}, Files: []File{{Name: "licence.md", Text: []byte(mit + "\n" + isc)}}},
		},
		{name: "none", error: "example.com/part has no licence file"},
		{name: "beside the module", files: map[string]string{"LICENSE": mit}, error: "example.com/part has no licence file"},
		{
			name:  "terms of somebody's own",
			files: map[string]string{"part/LICENSE": "You may use this on Tuesdays.\n"},
			error: "example.com/part: LICENSE: only 0 % of the text",
		},
		{
			name:  "a known licence and more terms",
			files: map[string]string{"part/LICENSE": isc + strings.Repeat("You may use this on Tuesdays, and never twice in a week.\n", 40)},
			error: "example.com/part: LICENSE: only ",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Of(t.Context(), program(t, c.files), []string{"linux/amd64", "linux/arm64"}, "./...")
			if c.error != "" {
				if err == nil || !strings.Contains(err.Error(), c.error) {
					t.Fatalf("Of gives the error %v, want %q", err, c.error)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			c.want.Path, c.want.Version = "example.com/part", "v1.2.3"
			if diff := cmp.Diff([]Module{c.want, library}, got); diff != "" {
				t.Errorf("Of (-want +got):\n%s", diff)
			}
		})
	}
}

func mustRun(t *testing.T, program string, arguments ...string) []byte {
	t.Helper()
	text, err := exec.Command(program, arguments...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTexts(t *testing.T) {
	got := string(Texts([]Module{
		{Path: "a", Version: "v1", Files: []File{{Name: "LICENSE", Text: []byte("one\n")}, {Name: "b/NOTICE", Text: []byte("two")}}},
		{Path: StandardLibrary, Files: []File{{Name: "LICENSE", Text: []byte("three\n\n")}}},
	}))
	want := "==== a v1 LICENSE\n\none\n\n==== a v1 b/NOTICE\n\ntwo\n\n==== stdlib LICENSE\n\nthree\n\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Texts (-want +got):\n%s", diff)
	}
}
