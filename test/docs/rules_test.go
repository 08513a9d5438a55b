// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

package docs

import (
	"regexp"
	"strings"
	"testing"
)

// need says what a command needs.
type need int

const (
	// alone needs this machine only, and runs in every test.
	alone need = iota
	// builds compiles programs, and clusters talks to an API server with a simulated fleet: both run with -all.
	builds
	clusters
	// last needs the same, and is run after everything else: it takes away what the others need.
	last
	// recorded needs the hosts of docs/worked-example.md, which belong to another project; DOCS_HOSTS names a folder from which make
	// example-hosts takes them. make docs-test gets them from GitHub, and says so when it cannot.
	recorded
	// parsed is a command of the plugin that needs another host: the command line reads its words and does nothing. why says what runs it.
	parsed
	// never is run by no test of this package: why says what runs it, or what would have to be here.
	never
)

// rule says how commands are run.
type rule struct {
	// matches is compared with the command's text, and in with its file, unless it is empty.
	matches, in string
	need        need
	// why a command is not run, or why it may end with exits.
	why   string
	exits []int
	// illustrates says why the document shows another output than the command has here.
	illustrates string
	// instead are pairs of what a reader would put something of their own for, or wait for, and what the test puts there.
	instead []string
}

// rules are looked through from above, and the first that matches counts. What none matches is run alone and must succeed.
func rules() []rule {
	return []rule{
		{matches: `^make (demo|test|acceptance|verify|lint|test-alerts|demo-capture)\b|^bash \.ci/run`, need: never, why: ".ci/run and make acceptance are made of these"},
		{matches: `^sudo .*make lab`, need: never, why: "a proof of its own, of minutes to hours in emulated machines: make lab, lab-short, lab-pools"},
		{matches: `^make (scale|faults|mistakes|churn|judge-latency)\b|^go run ./test/scale|^go test ./test/mistakes`, need: never, why: "a proof of its own, of minutes to hours: make scale, faults, mistakes, churn"},
		{matches: `^make (release|test-release|try-release)\b|^go run ./hack/release`, need: never, why: "make test-release runs all of them"},
		{matches: `^make publish-release\b`, need: never, why: "needs a registry; make test-cosign publishes to one on this machine"},
		{matches: `^make packages`, need: never, why: "it installs programs on this machine"},
		{matches: `^make (traffic-)?image PUSH=|^(podman|skopeo|docker|ctr|cosign) `, need: never, why: "needs a registry or a container engine; make lab-pools builds the image and runs it in containerd"},
		{matches: `^base64 -d SHA256SUMS`, need: never, why: "needs a signed release; the tests of hack/release verify one"},
		{matches: `^make (deploy|undeploy|install|uninstall)\b`, need: never, why: "needs an image that a kubelet can pull; the tests of config apply the same output to a real API server"},
		{matches: `^make must-gather`, need: never, why: "needs a container engine and an image of OpenShift; test/report runs what is in the image"},
		{matches: `^helm `, need: never, why: "make test-helm lints the chart and installs it by Helm's own code on a real API server"},
		{matches: `^oc |^sudo `, need: never, why: "needs a node of OpenShift or root"},
		{matches: `port-forward|^curl .*127\.0\.0\.1|^kubectl .*(logs|exec|rollout)`, need: never, why: "needs pods that a kubelet runs: make lab-pools"},

		{matches: `onload_stackdump`, need: never, why: "needs a program on a Solarflare NIC; make lab-pools runs it on a kernel without one"},
		{matches: `^make example-hosts`, need: recorded, instead: []string{"example-hosts", "example-hosts HOSTS_FROM=$DOCS_HOSTS"}},
		{matches: `worker1.tgz`, need: recorded, exits: []int{0, 1}, why: "what is wrong on this host is what the page is about"},
		{matches: `topology .*sno.tgz`, need: recorded},
		{matches: `sno.tgz`, need: recorded, exits: []int{1}, why: "what is wrong on this host is what the page is about"},

		{matches: `^make (help|build-cli)|^make build-installer`, need: builds},
		{matches: `probe jitter`, need: alone, instead: []string{"--cpus 4-7", "--cpus 0 --on-busy=measure --warm-up 100ms", "60s", "200ms", " -o json >", " --duration 200ms -o json >", " -o svg  >", " --duration 200ms -o svg >"}},
		{matches: `probe (pingpong|rate|load)`, need: parsed, why: "needs a server on another host; the tests of internal/cli/probe run both on this one"},
		{matches: `probe recorded`, need: parsed, why: "needs records of TRex or testpmd; the tests of internal/latency/recorded read such"},
		{matches: `kubectl[- ]lowlatency host `, need: never, why: "changes the machine on which it runs; the tests of internal/cli run it with a played guard"},
		{matches: `^kubectl lowlatency signing-key `, need: parsed, why: "the fleet of this test is one of OpenShift, where nothing is signed; the tests of internal/cli rotate keys beside a server"},
		{matches: `^kubectl lowlatency test `, need: parsed, why: "needs nodes that were measured; the tests of internal/cli run each on saved tests and beside a server"},
		{matches: `^kubectl get latencytests .*; kubectl lowlatency test report`, need: never, why: "needs nodes that were measured; the tests of internal/cli report of saved tests"},
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

// ruleOf is the rule that counts for a command, and its place; -1 for none.
func ruleOf(c *command) (rule, int) {
	for i, r := range rules() {
		if (r.in == "" || r.in == c.file) && regexp.MustCompile(r.matches).MatchString(c.text) {
			return r, i
		}
	}
	return rule{}, -1
}

// TestRules fails when a rule is not needed any more, or a command that is not run has no reason.
func TestRules(t *testing.T) {
	used := map[int]bool{}
	for _, c := range allCommands(t) {
		_, place := ruleOf(&c)
		used[place] = true
	}
	targets := read(t, "Makefile")
	for i, r := range rules() {
		if !used[i] {
			t.Errorf("no command matches %s: take the rule away", r.matches)
		}
		if (r.need == never || r.need == parsed || r.exits != nil) && r.why == "" {
			t.Errorf("%s: say why", r.matches)
		}
		for _, named := range regexp.MustCompile(`make ([a-z-]+)`).FindAllStringSubmatch(r.why, -1) {
			if !strings.Contains(targets, "\n"+named[1]+":") {
				t.Errorf("%s: the Makefile has no target %s", r.matches, named[1])
			}
		}
	}
}

// TestCommandsNameTargets finds every target that a command of the documents makes, whether it is run or not.
func TestCommandsNameTargets(t *testing.T) {
	targets, target := read(t, "Makefile"), regexp.MustCompile(`^(?:sudo )?(?:env )?make ([a-z][a-z-]*)`)
	for _, c := range allCommands(t) {
		if made := target.FindStringSubmatch(c.text); made != nil && !strings.Contains(targets, "\n"+made[1]+":") {
			t.Errorf("%s:%d: the Makefile has no target %s", c.file, c.line, made[1])
		}
	}
}
