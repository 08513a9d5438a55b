// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package main

import (
	"bytes"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

func subcommand(t *testing.T, name string) *cobra.Command {
	t.Helper()
	command, _, err := newCommand().Find([]string{name})
	if err != nil {
		t.Fatal(err)
	}
	return command
}

func TestCommands(t *testing.T) {
	commands := newCommand().Commands()
	names := make([]string, 0, len(commands))
	for _, command := range commands {
		names = append(names, command.Name())
	}
	if want := []string{"agent", "device-plugin", "dra-driver", "install-guard", "installer", "manager", "probe", "version"}; !slices.Equal(names, want) {
		t.Errorf("commands are %v, want %v", names, want)
	}
}

func TestManagerFlagsAreThoseOfKubebuilder(t *testing.T) {
	flags := subcommand(t, "manager").Flags()
	for name, want := range map[string]string{
		"metrics-bind-address": "0", "metrics-secure": "true", "leader-elect": "false",
		"health-probe-bind-address": ":8081", "enable-http2": "false",
		"metrics-cert-path": "", "metrics-cert-name": "tls.crt", "metrics-cert-key": "tls.key",
	} {
		if flag := flags.Lookup(name); flag == nil || flag.DefValue != want {
			t.Errorf("flag --%s is %+v, want the default %q", name, flag, want)
		}
	}
}

func TestDefaultsComeFromTheEnvironment(t *testing.T) {
	t.Setenv("NODE_NAME", "worker-3")
	t.Setenv("POD_NAMESPACE", "operator")
	flags := subcommand(t, "agent").Flags()
	for name, want := range map[string]string{"node-name": "worker-3", "namespace": "operator", "root": "/host", "interval": "0s"} {
		if got := flags.Lookup(name).Value.String(); got != want {
			t.Errorf("--%s is %q, want %q", name, got, want)
		}
	}
	if got := subcommand(t, "manager").Flags().Lookup("namespace").Value.String(); got != "operator" {
		t.Errorf("--namespace of the manager is %q, want operator", got)
	}
}

func TestCommandsSayWhatIsMissing(t *testing.T) {
	t.Setenv("NODE_NAME", "")
	t.Setenv("POD_NAMESPACE", "")
	t.Setenv("KUBECONFIG", "/does/not/exist")
	cases := map[string]struct {
		arguments []string
		want      string
	}{
		"an agent without a node":         {[]string{"agent"}, "set --node-name or the environment variable NODE_NAME"},
		"an agent without a namespace":    {[]string{"agent", "--node-name", "n"}, "set --namespace or the environment variable POD_NAMESPACE"},
		"an agent in a negative interval": {[]string{"agent", "--node-name", "n", "--namespace", "x", "--interval", "-1s"}, "--interval -1s is negative"},
		"an agent without an API server":  {[]string{"agent", "--node-name", "n", "--namespace", "x"}, "finding the API server"},
		"a manager without a namespace":   {[]string{"manager"}, "set --namespace or the environment variable POD_NAMESPACE"},
		"a manager without an API server": {[]string{"manager", "--namespace", "x"}, "finding the API server"},
		"an argument too many":            {[]string{"manager", "now"}, "unknown command \"now\""},
		"an unknown flag":                 {[]string{"manager", "--fast"}, "unknown flag: --fast"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			command := newCommand()
			command.SetArgs(tc.arguments)
			err := command.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q", err, tc.want)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	var out, asked bytes.Buffer
	for argument, to := range map[string]*bytes.Buffer{"--version": &out, "version": &asked} {
		command := newCommand()
		command.SetOut(to)
		command.SetArgs([]string{argument})
		if err := command.Execute(); err != nil || !strings.HasPrefix(to.String(), "lowlatency-operator version ") {
			t.Errorf("%s prints %q, %v", argument, to.String(), err)
		}
	}
	if out.String() != asked.String() {
		t.Errorf("version prints %q, --version %q", asked.String(), out.String())
	}
	if told := (&managerFlags{}).options().Version; told == "" || !strings.Contains(out.String(), " "+told+" ") {
		t.Errorf("the metrics tell version %q, --version prints %q", told, out.String())
	}
}

func TestMetricsOptions(t *testing.T) {
	flags := managerFlags{metricsAddress: ":8443", secureMetrics: true, certPath: "/certs", certName: "a", certKey: "b"}
	secure := flags.metricsOptions()
	if !secure.SecureServing || secure.FilterProvider == nil || secure.BindAddress != ":8443" || secure.CertDir != "/certs" {
		t.Errorf("secure metrics have %+v", secure)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	for _, change := range secure.TLSOpts {
		change(config)
	}
	if !slices.Equal(config.NextProtos, []string{"http/1.1"}) {
		t.Errorf("protocols are %v, want HTTP/1.1 only", config.NextProtos)
	}
	flags.secureMetrics, flags.enableHTTP2 = false, true
	if plain := flags.metricsOptions(); plain.SecureServing || plain.FilterProvider != nil || len(plain.TLSOpts) > 0 {
		t.Errorf("plain metrics have %+v", plain)
	}
}

func TestManagerOptions(t *testing.T) {
	options, err := managerOptions(&managerFlags{leaderElect: true, namespace: "operator", probeAddress: ":1"})
	if err != nil {
		t.Fatal(err)
	}
	if !options.LeaderElection || options.LeaderElectionNamespace != "operator" || !options.LeaderElectionReleaseOnCancel {
		t.Errorf("leader election is %+v", options)
	}
	if *options.RenewDeadline >= *options.LeaseDuration || *options.RetryPeriod >= *options.RenewDeadline || *options.LeaseDuration < time.Minute {
		t.Errorf("lease %s, renew %s, retry %s", options.LeaseDuration, options.RenewDeadline, options.RetryPeriod)
	}
	if options.NewCache == nil || options.Scheme == nil || options.HealthProbeBindAddress != ":1" {
		t.Errorf("options are %+v", options)
	}
}
