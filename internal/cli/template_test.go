// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
)

func TestTemplates(t *testing.T) {
	type value struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	values := []value{{"a", 1}, {"b", 20000000}}
	cases := map[string]struct{ format, want, wantError string }{
		"a path":               {format: "jsonpath={[*].name}", want: "a b"},
		"a range":              {format: `jsonpath={range [*]}{.name}={.count}{"\n"}{end}`, want: "a=1\nb=20000000\n"},
		"a missing key":        {format: "jsonpath={[0].none}", want: ""},
		"a Go template":        {format: "go-template={{range .}}{{.name}};{{end}}", want: "a;b;"},
		"a broken path":        {format: "jsonpath={[}", wantError: "parsing the JSONPath template: "},
		"a broken Go template": {format: "go-template={{", wantError: "parsing the Go template: "},
		"another word":         {format: "jsonpath", wantError: "must be one of text, json, yaml, jsonpath=..., go-template=..."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			format := newFormat()
			err := format.Set(tc.format)
			if err == nil {
				err = (&app{Streams: Streams{Out: &out}}).print(format.Value, values, nil)
			}
			if (err == nil) != (tc.wantError == "") || err != nil && !strings.Contains(err.Error(), tc.wantError) {
				t.Errorf("error %v, want %q", err, tc.wantError)
			}
			if out.String() != tc.want {
				t.Errorf("got %q, want %q", out.String(), tc.want)
			}
		})
	}
}

// TestConnectionFlags: who asks, which server and for how long are those of kubectl.
func TestConnectionFlags(t *testing.T) {
	var access clusterAccess
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	access.addFlags(flags)
	err := flags.Parse([]string{
		"--kubeconfig", kubeconfig(t, "https://127.0.0.1:1"), "--as", "eve", "--as-group", "traders", "--as-group", "readers",
		"--server", "https://127.0.0.1:2", "--request-timeout", "7s",
	})
	if err != nil {
		t.Fatal(err)
	}
	config, err := access.config()
	if err != nil {
		t.Fatal(err)
	}
	want := rest.ImpersonationConfig{UserName: "eve", Groups: []string{"traders", "readers"}}
	if diff := cmp.Diff(want, config.Impersonate, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if config.Host != "https://127.0.0.1:2" || config.Timeout != 7*time.Second {
		t.Errorf("it asks %s for at most %s", config.Host, config.Timeout)
	}
	client, err := access.connect()
	if err != nil {
		t.Fatal(err)
	}
	if client.Client.Timeout != 7*time.Second {
		t.Errorf("a request may take %s", client.Client.Timeout)
	}
}
