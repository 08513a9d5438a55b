// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"regexp"
	"testing"
)

// need says what a command needs.
type need int

const (
	// alone needs this machine only, and runs in every test.
	alone need = iota
	// builds compiles programs, and clusters talks to an API server of OpenShift with a simulated fleet: these and all that follow run
	// with -all.
	builds
	clusters
	// last needs the same as clusters, and is run after everything else: it takes away what the others need.
	last
	// pairs measures between two hosts: here, between two programs on this one.
	pairs
	// ordinary talks to an API server without the kinds of OpenShift, with hosts that a guard changes.
	ordinary
	// installs builds images, pushes them to a registry, and installs the operator on an API server that does not have it.
	installs
	// recorded needs the hosts of docs/worked-example.md, which belong to another project; DOCS_HOSTS names a folder from which make
	// example-hosts takes them. make docs-test gets them from GitHub, and says so when it cannot.
	recorded
	// elsewhere is not run here. Each such command has a row in the table of elsewhereFile: what runs it instead, and why.
	elsewhere
)

// rule says how commands are run.
type rule struct {
	// matches is compared with the command's text, and in with its file, unless it is empty.
	matches, in string
	need        need
	// why it may end with exits.
	why   string
	exits []int
	// illustrates says why the document shows another output than the command has here.
	illustrates string
	// prints is a part of what it has to print, whatever it exits with.
	prints string
	// instead are pairs of what a reader would put something of their own for, or wait for, and what the test puts there.
	instead []string
}

// rules are looked through from above, and the first that matches counts. What none matches is run alone and must succeed.
func rules() []rule {
	return []rule{
		{matches: `^make demo PLATFORM`, need: builds, instead: []string{"PLATFORM=kubernetes", "PLATFORM=kubernetes ONESHOT=1"}},
		// The list of packages is made as for the test, which is then not started: all of them are run before a change lands.
		{matches: `^make test-unit`, need: builds, instead: []string{"test-unit", "test-unit GO_TEST=echo"}},
		{matches: `^make scale NODES=1000`, need: builds, instead: []string{"NODES=1000", "NODES=5"}},
		{matches: `^make (demo|test|acceptance|verify|lint|test-[a-z]+|demo-capture|scale|mistakes|churn|release|try-release|publish-release|must-gather)\b|^bash \.ci/run`, need: elsewhere},
		{matches: `^sudo .*make lab|^go run \./(test/scale|hack/release)|^go test \./test/mistakes|^cosign |^base64 -d SHA256SUMS|onload_stackdump`, need: elsewhere},
		{matches: `^tar -xzf must-gather-|^podman (build|push) .*must-gather|^oc adm must-gather|port-forward|^curl .*127\.0\.0\.1|kubectl[- ]lowlatency host |--frames|--timestamps nic|^scp bin/lowlatency-guard |install-guard `, need: elsewhere},

		{matches: `^make packages`, need: alone, instead: []string{"make packages", `PATH="$PWD/` + aptGet + `:$PATH" make packages`}},
		{
			matches: `probe drive`, need: alone, instead: []string{" -- python3 trial.py", " --sniff 1s --search 1s --confirm 2s -- ./trial.sh"},
			prints: "lowest fail  ",
		},
		{
			matches: `probe recorded`, need: alone, exits: []int{0, 3}, why: "a run that is shorter than --confirm confirms no rate, and one that passes at the highest rate ends no search",
			prints: "best pass ",
		},

		{matches: `^make (traffic-)?image PUSH=|^make deploy |^helm install |rollout status`, need: installs},
		{matches: `^oc get performanceprofile`, need: clusters, instead: []string{"oc get", "kubectl get", "> trading.yaml", "> imported.yaml"}},
		{matches: `^oc debug node/`, need: alone, instead: []string{
			"oc debug node/worker-1 -q --image=<registry>/lowlatency-traffic:<tag> -- /kubectl-lowlatency", "kubectl-lowlatency", "--root /host", "--root /", "> snapshots/", "> of-", "> ", "> of-",
		}},
		{matches: `^scp bin/kubectl-lowlatency `, need: alone, instead: []string{"scp bin/kubectl-lowlatency core@worker-1:", "command -v kubectl-lowlatency"}},
		{matches: `^ssh core@worker-1 `, need: alone, instead: []string{"ssh core@worker-1 sudo ./kubectl-lowlatency", "kubectl-lowlatency", "> snapshots/", "> of-"}},
		{matches: `^make example-hosts`, need: recorded, instead: []string{"example-hosts", "example-hosts HOSTS_FROM=$DOCS_HOSTS"}},
		{matches: `worker1.tgz`, need: recorded, exits: []int{0, 1}, why: "what is wrong on this host is what the page is about"},
		{matches: `topology .*sno.tgz`, need: recorded},
		{matches: `sno.tgz`, need: recorded, exits: []int{1}, why: "what is wrong on this host is what the page is about"},

		{matches: `^make (help|build-cli)|^make build-installer`, need: builds},
		{matches: `probe jitter`, need: alone, instead: []string{"--cpus 4-7", "--cpus 0 --on-busy=measure --warm-up 100ms", "60s", "200ms", " -o json >", " --duration 200ms -o json >", " -o svg  >", " --duration 200ms -o svg >", " -o html >", " --duration 200ms -o html >"}},
		{matches: `probe (pingpong|rate|load) --server`, need: pairs, instead: []string{" --cpu 4", ""}},
		{matches: `probe (pingpong|rate|load) --client`, need: pairs, exits: []int{0, 1, 3}, why: "nothing on this machine is tuned, so limits may not be met, or rates not reached", instead: shortProbes()},
		{matches: `signing-key `, need: ordinary, exits: []int{0, 1, 3}, why: "no host trusts the key yet"},
		{
			matches: `test run -f `, need: clusters, exits: []int{0, 1, 3}, why: "simulated figures may be beyond a limit",
			instead: []string{"kubectl lowlatency test run -f", "kubectl delete -f test.yaml --ignore-not-found; kubectl lowlatency test run -f"},
		},
		{matches: `test report -f tests.yaml`, need: clusters, exits: []int{0, 1, 3}, why: "simulated figures may be beyond a limit", illustrates: "another fleet"},
		{
			matches: `lowlatency test |^kubectl get latencytests .*test report`, need: clusters, exits: []int{0, 1, 3}, why: "simulated figures may be beyond a limit",
			instead: []string{"node-1", "worker-1", "node-2", "worker-2"},
		},
		{matches: `^make traffic`, need: builds},
		{matches: `^install bin/`, need: builds, instead: []string{"/usr/local/bin/", "installed-"}},

		{
			matches: `^kubectl wait `, need: clusters, instead: []string{"30m", "5m"},
		},
		{matches: `^kubectl delete (bnp|llnp|latencytests)`, need: last},
		{matches: `xeon-2`, need: clusters, instead: []string{"xeon-2", "worker-1"}, illustrates: "a node with a history"},
		{matches: `get bnp newcomer`, need: clusters, instead: []string{"newcomer", "x2-onload"}, illustrates: "a pool with a conflict"},
		{matches: `--acceleration`, need: clusters, exits: []int{3}, why: "nobody holds a NIC", instead: []string{"pool x2 ", "pool x2-onload "}, illustrates: "programs with NICs"},
		{matches: `pool x2( |$)`, need: clusters, instead: []string{"pool x2", "pool x2-onload"}},
		{matches: `^kubectl get bnp$`, need: clusters, illustrates: "a cluster with two pools"},
		{matches: `^kubectl lowlatency report`, need: clusters, instead: []string{"--directory /must-gather", "--directory ."}},
		// The simulated node of that name has a profile already.
		{matches: `^kubectl (label node|get lln|lowlatency node) worker-1`, in: "docs/quick-start.md", need: clusters, instead: []string{"worker-1", "worker-3"}},
		{matches: `^kubectl (get|apply|describe|explain|delete|label|wait|annotate|patch|-n)|^kubectl lowlatency (node|pool) [^-]`, need: clusters},

		{matches: `.`, in: "docs/troubleshooting.md", need: alone, exits: []int{0, 1, 2, 3}, why: "the page is about what goes wrong, and shows the output"},
		{
			matches: `(plan|render|check|node|pool) .*--root /( |$)|check -f trading.yaml( |$)|node -f trading.yaml( |$)|pool -f pool.yaml --host`, need: alone,
			exits: []int{0, 1, 3}, why: "the machine on which the test runs is not tuned, and may have two cores", instead: []string{"10s", "1s"},
		},
		{matches: `snapshot (--root / )?-o node.tar.gz`, need: alone, instead: []string{"node.tar.gz", "this-machine.tar.gz"}},
		{matches: `pool -f pool.yaml --root a.tar.gz`, need: alone, exits: []int{1}, why: "without --host-ip nobody knows which NIC carries the node's traffic"},
		{matches: `--exit-code`, need: alone, exits: []int{0, 4}, why: "4 says that nodes reboot"},
	}
}

// shortProbes shorten measurements between this machine and itself.
func shortProbes() []string {
	return []string{
		"/usr/bin/onload --profile=latency ", "", "10.0.0.2", "127.0.0.1", "192.0.2.50", "127.0.0.1", " --cpu 4", "", "--duration 10s", "--duration 1s",
		"--confirm 1h", "--confirm 1s", "99=50us", "50=1s", " --growth-percentile 99", "", "--at-least 200000", "--at-least 2000",
		"probe pingpong", "probe pingpong --maximum-time 200ms --minimum-time 0 --warm-up 10ms --warm-up-messages 10",
		"probe rate", "probe rate --warm-up 10ms --warm-up-messages 10 --quiet-time 100ms",
		"probe load", "probe load --confirm 1s --warm-up 10ms --warm-up-messages 10 --quiet-time 100ms --sniff 200ms --search 1s --highest 20000 --granularity 0.5 --growth-percentile 50",
	}
}

// ruleOf is the rule that counts for a command, and its place; -1 for none.
func ruleOf(c *command) (rule, int) {
	for i, r := range rules() {
		if (r.in == "" || r.in == c.file) && regexp.MustCompile(r.matches).MatchString(c.text) {
			return r, i
		}
	}
	return rule{}, -1
}

// TestRules fails when a rule is not needed any more, or one that lets a command fail has no reason.
func TestRules(t *testing.T) {
	used := map[int]bool{}
	for _, c := range allCommands(t) {
		_, place := ruleOf(&c)
		used[place] = true
	}
	for i, r := range rules() {
		if !used[i] {
			t.Errorf("no command matches %s: take the rule away", r.matches)
		}
		if r.exits != nil && r.why == "" {
			t.Errorf("%s: say why", r.matches)
		}
	}
}
