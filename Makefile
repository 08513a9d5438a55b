# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.

# Tool versions, shared with hack/toolchain.sh and the tests.
include hack/versions.env

# What is deployed: make deploy IMG=registry/name:tag CONFIG=openshift
IMG ?= lowlatency-operator:latest
# The image that LatencyTests run which measure over the network, as docker-build names it.
TRAFFIC_IMG ?= lowlatency-traffic:latest
CONFIG ?= default
# Components of config/ that are added to it, such as prometheus-cert-manager and enactment.
COMPONENTS ?=
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
# The commit and its time, for builds that see no repository.
COMMIT ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%H$$(git diff --quiet HEAD || echo -dirty),%cd 2>/dev/null)
PLATFORMS ?= linux/amd64,linux/arm64
CONTAINER_TOOL ?= docker
KUBECTL ?= kubectl

# How long each fuzz target runs, and how often each benchmark.
FUZZTIME ?= 30s
BENCHCOUNT ?= 1
# The least part of internal/ that the tests must execute, in percent.
COVERAGE_MINIMUM ?= 85

# Where hack/toolchain.sh keeps programs, by the same rule.
CACHE := $(or $(LOWLATENCY_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lowlatency-operator)
CONTROLLER_GEN := $(CACHE)/bin/controller-gen-$(CONTROLLER_TOOLS_VERSION)/controller-gen
GOLANGCI_LINT := $(CACHE)/bin/golangci-lint-$(GOLANGCI_LINT_VERSION)/golangci-lint
KUSTOMIZE := $(CACHE)/bin/kustomize-$(KUSTOMIZE_VERSION)/kustomize
KUBECTL_HERE := $(CACHE)/bin/kubectl-$(KUBERNETES_VERSION)/kubectl
PROMTOOL := $(CACHE)/bin/promtool-$(PROMETHEUS_VERSION)/promtool
PROMETHEUS := $(CACHE)/bin/prometheus-$(PROMETHEUS_VERSION)/prometheus
BENCHSTAT := $(CACHE)/bin/benchstat-$(BENCHSTAT_VERSION)/benchstat
COSIGN := $(CACHE)/bin/cosign-$(COSIGN_VERSION)/cosign
KREW := $(CACHE)/bin/krew-$(KREW_VERSION)/krew
GOVULNCHECK := $(CACHE)/bin/govulncheck-$(GOVULNCHECK_VERSION)/govulncheck

# One binary without C code, reproducible from the source alone.
export CGO_ENABLED ?= 0
GO_BUILD := go build -trimpath -ldflags "-s -w -X main.release=$(VERSION)"
BOILERPLATE := hack/boilerplate.go.txt

# Host trees and etcd's files go to memory where there is room; what Go builds stays on disk. Tests would take GOTMPDIR for
# their own files, too.
FAST_TMP = GOTMPDIR=$${TMPDIR:-/tmp} TMPDIR=$$($(CURDIR)/hack/fast-tmp.sh)
GO_TEST = $(FAST_TMP) go test -exec 'env -u GOTMPDIR'

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

##@ General

.PHONY: help
help: ## Show this text.
	@awk 'BEGIN {FS = ":.*##"; printf "Usage: make <target>\n"} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-zA-Z_-]+:.*?##/ {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Watch the operator tune and prove a simulated fleet; PLATFORM=kubernetes has one of ordinary hosts, ONESHOT=1 judges the end.
	@hack/demo.sh $(if $(PLATFORM),--platform=$(PLATFORM)) $(if $(filter-out 0,$(ONESHOT)),--oneshot)

.PHONY: demo-capture
demo-capture: ## Run the demo in terminals of 80x24 and 120x40, and look at every picture; the screens are in dist/demo-*.txt. PLATFORM=kubernetes has that of ordinary hosts.
	@mkdir -p dist
	LOWLATENCY_DEMO_TMP=$$($(CURDIR)/hack/fast-tmp.sh) go test -tags capture -count=1 -timeout 40m -v ./test/demo -output $(CURDIR)/dist $(if $(PLATFORM),-platform $(PLATFORM))

.PHONY: pictures
pictures: ## Draw the pictures of the documents anew, from the code and from what was recorded.
	go run ./hack/pictures docs/images
	go run ./test/scale -draw

.PHONY: demo-picture
demo-picture: programs-demo-picture ## Record the demo anew, and draw docs/images/demo.svg from it.
	@mkdir -p dist
	script -qec 'stty cols 80 rows 50 && make demo ONESHOT=1' dist/demo.txt
	go run ./hack/pictures -demo dist/demo.txt docs/images

.PHONY: jitter-pair
jitter-pair: programs-jitter-pair ## Measure a CPU of an emulated machine before and after it boots as planned; the results are in dist/jitter. DOCUMENT=1 puts them into docs.
	hack/jitter/pair.sh dist/jitter
ifneq ($(filter-out 0,$(DOCUMENT)),)
	cp dist/jitter/before.json hack/pictures/recorded/jitter-before.json
	cp dist/jitter/after.json hack/pictures/recorded/jitter-after.json
	go run ./hack/pictures docs/images
endif

.PHONY: jitter-picture
jitter-picture: ## Measure a CPU of this machine for ten seconds, and draw docs/images/jitter.svg from it.
	@mkdir -p dist
	go run ./cmd/kubectl-lowlatency probe jitter --cpus 0 --duration 10s --on-busy measure -o json > dist/jitter.json
	cp dist/jitter.json hack/pictures/recorded/jitter.json
	go run ./hack/pictures docs/images

.PHONY: latency-pictures
latency-pictures: programs-latency-pictures ## Measure the samples of LatencyTests between two network namespaces of this machine (needs root), and draw docs/images/latency-*.svg from it.
	go test -tags capture -count=1 -timeout 40m -run TestRecord -v ./test/traffic
	go run ./hack/pictures docs/images

.PHONY: dashboard-picture
dashboard-picture: programs-dashboard-picture envtest $(PROMETHEUS) ## Let a real Prometheus scrape the demo, and draw docs/images/dashboard.png from it (needs Chromium and npm).
	CGO_ENABLED=0 go build -trimpath -o bin/demo ./hack/demo
	TMPDIR=$$(hack/fast-tmp.sh) hack/dashboard/picture.sh $(PROMETHEUS) docs/images/dashboard.png

.PHONY: all-pictures
all-pictures: demo-picture jitter-picture latency-pictures dashboard-picture ## Record anew on this machine what the pictures show, and draw all; jitter-pair and scale with DOCUMENT=1 take longer and are left as recorded.
	$(MAKE) --no-print-directory pictures

##@ Development

.PHONY: manifests
manifests: $(CONTROLLER_GEN) ## Generate CRDs and the manager's role from the markers in the code, and the Helm chart from config/.
	$(CONTROLLER_GEN) crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	go run ./hack/crdschemas config/crd/bases config/crd/schemas
	$(CONTROLLER_GEN) rbac:roleName=manager-role paths=./controllers/... output:rbac:artifacts:config=config/rbac
	go run ./hack/helm

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep copies, and the references in docs/: checks, API, command line, modules.
	$(CONTROLLER_GEN) object:headerFile=$(BOILERPLATE) paths=./api/v1alpha1
	go run ./hack/checksdoc > docs/checks.md.new && mv docs/checks.md.new docs/checks.md
	go run ./hack/apidoc > docs/api.md.new && mv docs/api.md.new docs/api.md
	go run ./hack/clidoc > docs/cli-reference.md.new && mv docs/cli-reference.md.new docs/cli-reference.md
	go -C hack/image run ./thirdparty $(CURDIR) > docs/third-party.md.new && mv docs/third-party.md.new docs/third-party.md

# The image of bundles without its tag, and the folders of bundles that were released before, the oldest first.
BUNDLE_IMG ?= ghcr.io/lowlatency-dev/lowlatency-operator-bundle
OLDER_BUNDLES ?=

.PHONY: bundle
bundle: ## Make bundle/ for Operator Lifecycle Manager from config/, and what its installer installs.
	go run ./hack/bundle -installer internal/platform/installer

.PHONY: catalog
catalog: ## Make bundle/, and catalog/ with it and OLDER_BUNDLES.
	go run ./hack/bundle -installer internal/platform/installer -catalog catalog -bundle-image $(BUNDLE_IMG) $(OLDER_BUNDLES)

.PHONY: helm
helm: ## Make the templates of the Helm chart in config/helm from config/.
	go run ./hack/helm

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the code.
	$(GOLANGCI_LINT) fmt

.PHONY: vet
vet: ## Run go vet.
	go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run the linters.
	$(GOLANGCI_LINT) run
	cd test/kubelet && $(GOLANGCI_LINT) run
	cd hack/image && $(GOLANGCI_LINT) run
	cd test/olm && $(GOLANGCI_LINT) run
	cd test/gitops && $(GOLANGCI_LINT) run
	cd test/helm && $(GOLANGCI_LINT) run

.PHONY: lint-fix
lint-fix: $(GOLANGCI_LINT) ## Run the linters and repair what they can.
	$(GOLANGCI_LINT) run --fix

.PHONY: verify
verify: vulncheck ## Fail when something generated is not what its source says, or the programs have a known vulnerability (VULNDB).
	hack/verify.sh

# A mirror of the database, file:///FOLDER with its OSV files, or "none".
VULNDB ?= https://vuln.go.dev

.PHONY: vulncheck
vulncheck: $(if $(filter none,$(VULNDB)),,$(GOVULNCHECK)) ## Fail when the programs call code with a known vulnerability of the database VULNDB.
ifeq ($(VULNDB),none)
	@echo 'vulncheck: not looked for known vulnerabilities, as VULNDB=none says'
else
	@$(GOVULNCHECK) -db $(VULNDB) ./cmd/... || { echo 'vulncheck: see above; VULNDB names another database, or "none"' >&2; exit 1; }
endif

##@ Test

.PHONY: test
test: programs-test envtest ## Run every test, with a real API server and the real kubelet's validation; fail below 85 % of internal/.
	FAULTS=all $(GO_TEST) -timeout 40m -coverprofile=cover.out ./...
	hack/coverage.sh cover.out internal/ $(COVERAGE_MINIMUM)
	$(MAKE) --no-print-directory test-kubelet test-image test-olm test-gitops test-helm

.PHONY: test-unit
test-unit: ## Run the tests that need no API server.
	$(GO_TEST) $$(hack/unit-packages.sh)

.PHONY: faults
faults: ## Break simulated machines in every way we know, and print what the checks say; the tables are in dist/faults.txt.
	@mkdir -p dist && rm -f dist/faults.txt
	FAULTS=all FAULT_TABLES=$(CURDIR)/dist/faults.txt $(GO_TEST) -count=1 ./test/faults; result=$$?; cat dist/faults.txt; exit $$result

# How many histories of random mistakes and how many faults of the API server "make mistakes" makes, and for how long "make churn"
# stirs.
MISTAKES ?= 45
SERVER_FAULTS ?= 200
CHURN ?= 1h
.PHONY: mistakes
mistakes: envtest ## Make users' mistakes and let the API server fail, and print what it costs nodes; the tables are in dist/mistakes.txt.
	@mkdir -p dist && rm -f dist/mistakes.txt
	$(GO_TEST) -count=1 -timeout 60m ./test/mistakes -run '^TestNamedMistakes$$' -all -table $(CURDIR)/dist/mistakes.txt
	$(GO_TEST) -count=1 -timeout 120m ./test/mistakes -run '^TestRandomMistakes$$' -histories $(MISTAKES) -table $(CURDIR)/dist/mistakes.txt
	$(GO_TEST) -count=1 -timeout 120m ./test/mistakes -run '^TestServerFaults$$' -histories $(SERVER_FAULTS) -table $(CURDIR)/dist/mistakes.txt
	@cat dist/mistakes.txt

.PHONY: churn
churn: envtest ## Let nodes flap and profiles change for CHURN; fail when manager, agent or device plugin grow. The series is dist/churn.csv.
	@mkdir -p dist && rm -f dist/churn.txt
	$(GO_TEST) -count=1 -timeout 0 ./test/mistakes -run '^TestChurn$$' -churn $(CHURN) -series $(CURDIR)/dist/churn.csv -table $(CURDIR)/dist/churn.txt
	@cat dist/churn.txt

# The commit that stands for the version before, until there is a release: the state of 23 November 2026, after which nothing that is
# rendered has changed. With a release, it is its tag.
PREVIOUS ?= 848e40fb4914574ffae9b5d462ba19e237a6cf46
# Puts the source of that commit into dist/previous.
EXTRACT_PREVIOUS = rm -rf dist/previous && mkdir -p dist/previous && git archive $(PREVIOUS) | tar -x -C dist/previous
# The bundle of that commit, as the version before: make bundle-fixture keeps it in test/olm, and make olm upgrades from what is kept.
PREVIOUS_BUNDLE := test/olm/testdata/v0.0.1
MAKE_PREVIOUS_BUNDLE = cd dist/previous && go run ./hack/bundle -version 0.0.1 -image ghcr.io/lowlatency-dev/lowlatency-operator:v0.0.1 -output
# Fails when what is kept is not that.
CHECK_PREVIOUS_BUNDLE = ($(MAKE_PREVIOUS_BUNDLE) $(CURDIR)/dist/previous-bundle) && diff -r $(PREVIOUS_BUNDLE) dist/previous-bundle && rm -rf dist/previous-bundle
.PHONY: bundle-fixture
bundle-fixture: programs-bundle-fixture ## Make the bundle of the commit PREVIOUS anew in test/olm, from which upgrades are judged and made.
	$(EXTRACT_PREVIOUS)
	rm -rf $(PREVIOUS_BUNDLE)
	$(MAKE_PREVIOUS_BUNDLE) $(CURDIR)/$(PREVIOUS_BUNDLE)
	@rm -rf dist/previous
	{ echo '# Made by make bundle-fixture from this commit.'; echo $(PREVIOUS); cd $(PREVIOUS_BUNDLE) && find . -type f | LC_ALL=C sort | xargs sha256sum; } > $(PREVIOUS_BUNDLE).txt

.PHONY: test-upgrade
test-upgrade: programs-test-upgrade envtest ## Mix definitions, manager and agents of the commit PREVIOUS with those of now; the table is in dist/upgrade.txt.
	@rm -f dist/upgrade.txt
	$(EXTRACT_PREVIOUS)
	cd dist/previous && go test -c -o mistakes.test ./test/mistakes
	$(GO_TEST) -count=1 -timeout 60m ./test/mistakes -run '^TestUpgrade$$' -previous $(CURDIR)/dist/previous -table $(CURDIR)/dist/upgrade.txt
	@rm -rf dist/previous

.PHONY: test-kubelet
test-kubelet: ## Put rendered kubelet configurations before the kubelet's own validation.
	cd test/kubelet && go test ./...

.PHONY: test-image
test-image: ## Build images of small programs without a container engine, twice, and look into them; run what the Dockerfiles do for licences.
	cd hack/image && go test -count=1 ./...

.PHONY: test-olm
test-olm: ## Put bundle/ and catalog/ before the validators of operator-sdk and opm.
	cd test/olm && go test -count=1 ./...

.PHONY: test-gitops
test-gitops: ## Try the health checks of Argo CD on every recorded state, and compare them with kstatus.
	cd test/gitops && go test -count=1 ./...

.PHONY: test-helm
test-helm: envtest ## Lint the Helm chart, compare it with what kustomize builds, install it on a real API server.
	cd test/helm && $(GO_TEST) -count=1 ./...

# Where make example-hosts gets the hosts: a checkout of openshift/cluster-node-tuning-operator, or GitHub.
HOSTS_FROM ?=
.PHONY: example-hosts
example-hosts: programs-example-hosts ## Get the two hosts of docs/worked-example.md into this folder.
	@HOSTS_FROM="$(HOSTS_FROM)" hack/example-hosts.sh .

.PHONY: docs-test
docs-test: programs-docs-test envtest $(KUBECTL_HERE) ## Run the commands of the documents, also those that build something or need a cluster, with the real kubectl.
	@HOSTS_FROM="$(HOSTS_FROM)" hack/example-hosts.sh dist/hosts || { rm -rf dist/hosts; printf 'docs-test: left out: the worked example\n' >&2; }
	DOCS_HOSTS=$(if $(DOCS_HOSTS),$(DOCS_HOSTS),$$([ ! -d dist/hosts ] || echo $(CURDIR)/dist/hosts)) DOCS_KUBECTL=$(KUBECTL_HERE) $(GO_TEST) -count=1 -timeout 60m ./test/docs -all

.PHONY: test-alerts
test-alerts: $(PROMTOOL) ## Raise every alert of config/prometheus with promtool.
	PROMTOOL=$(PROMTOOL) go test -tags promtool -count=1 -v -run '^TestAlerts$$' ./test/alerts

.PHONY: dashboard
dashboard: envtest $(PROMTOOL) ## Run the demo, and let the engine of Prometheus answer every query of the dashboard from its metrics; the table is in dist/dashboard.txt.
	@rm -rf dist/scrapes && mkdir -p dist/scrapes
	hack/demo.sh -oneshot -scrapes $(CURDIR)/dist/scrapes >/dev/null
	DEMO_SCRAPES=$(CURDIR)/dist/scrapes PROMTOOL=$(PROMTOOL) go test -tags promtool -count=1 -v -run '^TestDashboard$$' ./test/alerts | tee dist/dashboard.txt

.PHONY: test-hwloc
test-hwloc: programs-test-hwloc ## Compare the topology with lstopo's (needs Debian's hwloc).
	$(GO_TEST) -count=1 ./test/hwloc/...

.PHONY: judge-latency
judge-latency: programs-judge-latency ## Judge the measurements over the network beside sockperf, qperf and injected faults (needs root); the table is in dist/latency.txt.
	@mkdir -p dist
	go run ./test/latency | tee dist/latency.txt

.PHONY: judge-jitter
judge-jitter: programs-judge-jitter ## Judge the jitter probe beside oslat on CPU 1 of this machine (needs root); the table is in dist/judge-jitter.txt.
	@mkdir -p dist
	go build -o bin/lowlatency-operator ./cmd/lowlatency-operator
	go run ./test/jitter --cpu 1 --rounds 5 --duration 10s | tee dist/judge-jitter.txt

.PHONY: judges
judges: judge-latency judge-jitter ## Judge every measurement on this machine, over the network and of jitter; both tables are in dist/judges.txt.
	cat dist/latency.txt dist/judge-jitter.txt >dist/judges.txt

# A folder that takes what testpmd printed; internal/latency/recorded/testdata has such texts.
TESTPMD_RECORD ?=
.PHONY: test-testpmd
test-testpmd: programs-test-testpmd ## Read what the real testpmd of DPDK printed, and compare every count with the kernel's counters (needs root); TESTPMD_RECORD=FOLDER keeps the texts.
	TESTPMD_RECORD=$(abspath $(TESTPMD_RECORD)) go test -tags testpmd -count=1 -timeout 15m -v ./test/testpmd

.PHONY: lab
lab: programs-lab envtest ## Compare real kernels in emulated machines with their plans (needs root, QEMU and mmdebstrap; see docs/lab.md).
	go test -tags lab -count=1 -timeout 60m -v -run '^(TestNodeTruth|TestTunedBeforeKubelet)$$' ./test/lab

.PHONY: lab-short
lab-short: programs-lab-short ## The same on one machine, with few scenarios.
	LAB=short go test -tags lab -count=1 -timeout 60m -v -run '^TestNodeTruth$$' ./test/lab

.PHONY: lab-pools
lab-pools: programs-lab-pools ## Show BypassNICPools on a real node: PREEMPT_RT kernel, kubelet and containerd in an emulated machine.
	go test -tags lab -count=1 -timeout 180m -v -run '^TestPools$$' ./test/lab/pools

.PHONY: lab-latency
lab-latency: programs-lab-latency ## Let LatencyTests measure a real node: jitter, a neighbour that must be named, messages between two pods.
	go test -tags lab -count=1 -timeout 240m -v -run '^TestLatencyTests$$' ./test/lab/pools

.PHONY: lab-netem
lab-netem: programs-lab-netem ## Judge what measurements over the network count, against netem in an emulated machine; the table is in dist/netem.txt.
	@mkdir -p dist
	LAB_TABLE=$(CURDIR)/dist/netem.txt go test -tags lab -count=1 -timeout 60m -v -run '^TestNetem$$' ./test/lab/judges

.PHONY: lab-judges
lab-judges: programs-lab-judges ## Judge the measurements over the network beside sockperf and qperf between two emulated machines; the table is in dist/lab-judges.txt.
	@mkdir -p dist
	LAB_TABLE=$(CURDIR)/dist/lab-judges.txt go test -tags lab -count=1 -timeout 60m -v -run '^TestBetweenMachines$$' ./test/lab/judges

.PHONY: lab-stamps
lab-stamps: programs-lab-stamps ## Show what stamps of messages emulated NICs give, and that what the command says of them is true; the table is in dist/lab-stamps.txt.
	@mkdir -p dist
	LAB_TABLE=$(CURDIR)/dist/lab-stamps.txt go test -tags lab -count=1 -timeout 60m -v -run '^TestStampsOfNICs$$' ./test/lab/judges

.PHONY: lab-onload
lab-onload: programs-lab-onload ## Judge a real Onload on AF_XDP: its modules in an emulated machine, and containers with the device plugin's answer.
	go test -tags lab -count=1 -timeout 90m -v ./test/lab/onload

# The tests of lab-enact, the one first that shows most: each has a time of its own, so that one which hangs takes no other with it.
ENACT_TESTS := TestFleet TestFleetStops TestDisturbed TestPowerCuts TestHost TestTrialsThatFail TestEnact TestKilled

.PHONY: lab-enact
lab-enact: programs-lab-enact ## Change ordinary hosts, with GRUB on their own disks, by the guard and by the operator on a real control plane, and print one table; it is in dist/lab-enact.txt, too.
	@mkdir -p dist
	@printf 'TEST\tOUTCOME\tSECONDS\tWHAT\n' >dist/lab-enact.txt
	status=0; for test in $(or $(TESTS),$(ENACT_TESTS)); do \
		LAB_TABLE=$(CURDIR)/dist/lab-enact.txt go test -tags lab -count=1 -timeout 180m -v -run "^$$test$$" ./test/lab/enact || status=1; done; \
		awk -F '\t' '{ printf "%-18s %-30s %7s  %s\n", $$1, $$2, $$3, $$4 }' dist/lab-enact.txt; exit $$status

.PHONY: lab-image
lab-image: programs-lab-image ## Build the lab's image into the per-user cache only.
	go test -tags lab -count=1 -timeout 60m -v -run '^TestImage$$' ./test/lab

.PHONY: olm
olm: programs-olm envtest ## Install, upgrade and remove the operator by the real Operator Lifecycle Manager, on OpenShift and on ordinary Kubernetes; the tables are in dist/olm.txt and dist/olm-ordinary.txt.
	hack/toolchain.sh controller-manager olm kubectl
	$(EXTRACT_PREVIOUS)
	$(CHECK_PREVIOUS_BUNDLE)
	$(GO_TEST) -tags lab -count=1 -timeout 60m ./test/real -run '^TestOLM(Ordinary)?$$' -previous $(CURDIR)/dist/previous
	@rm -rf dist/previous

.PHONY: test-uninstall
test-uninstall: envtest $(KUSTOMIZE) ## Install the operator by make deploy and by kubectl, bring a profile and a pool into force, and remove all of it; the table is in dist/uninstall.txt.
	hack/toolchain.sh controller-manager kubectl
	$(GO_TEST) -tags lab -count=1 -timeout 60m -run '^TestUninstall$$' ./test/real

.PHONY: argocd
argocd: programs-argocd envtest $(KUSTOMIZE) ## Sync, change, roll back, prune and remove the operator by the real Argo CD; the table is in dist/argocd.txt.
	hack/toolchain.sh controller-manager argocd
	cd test/gitops && go test -tags argocd -count=1 -v -run '^TestArgoCDItself$$' . -argocd $(CACHE)/bin/argocd-$(ARGOCD_VERSION)/argocd
	$(GO_TEST) -tags lab -count=1 -timeout 60m -run '^TestArgoCD$$' ./test/real

.PHONY: argocd-olm
argocd-olm: programs-argocd-olm envtest $(KUSTOMIZE) ## Let the real Argo CD sync a Subscription, and the real Operator Lifecycle Manager install it; the table is in dist/argocd-olm.txt.
	hack/toolchain.sh controller-manager olm argocd
	$(EXTRACT_PREVIOUS)
	$(CHECK_PREVIOUS_BUNDLE)
	$(GO_TEST) -tags lab -count=1 -timeout 60m ./test/real -run '^TestArgoCDWithOLM$$' -previous $(CURDIR)/dist/previous
	@rm -rf dist/previous

.PHONY: test-fuzz
test-fuzz: ## Run each fuzz target for FUZZTIME.
	hack/fuzz.sh $(FUZZTIME)

SEED ?= 1
COUNT ?= 40
MUTATED ?= internal/verify internal/plan internal/fleet internal/fleet/status internal/fleet/gate internal/bypass
.PHONY: mutate
mutate: ## Change the code in COUNT places of each of the packages MUTATED, drawn with SEED, and fail when the tests miss more than 5 %.
	TMPDIR=$$($(CURDIR)/hack/fast-tmp.sh) go run ./hack/mutate -seed $(SEED) -count $(COUNT) $(MUTATED)

.PHONY: acceptance
acceptance: ## Run every long proof and print one table: make acceptance PROOFS="faults lab" runs some of them.
	hack/acceptance.sh $(PROOFS)

.PHONY: bench
bench: programs-bench envtest ## Run the benchmarks, and the generator of messages beside sockperf's (needs root); the results are in dist/bench.txt and dist/generator.txt.
	@mkdir -p dist
	$(GO_TEST) -run '^$$' -bench . -benchmem -count $(BENCHCOUNT) \
		$$(hack/packages-with.sh '^func Benchmark') | tee dist/bench.txt
	go run ./test/latency -only generator | tee dist/generator.txt

.PHONY: bench-compare
bench-compare: $(BENCHSTAT) ## Compare dist/bench.txt with an older result: make bench-compare OLD=file.
	$(BENCHSTAT) $(or $(OLD),$(error OLD must name an older result of make bench)) dist/bench.txt

NODES ?= 500 1000 2000 5000
.PHONY: scale
scale: envtest ## Measure the manager with fleets of NODES nodes; the results are in dist/scale.json. DOCUMENT=1 puts figures and curves into docs.
	$(FAST_TMP) go run ./test/scale -nodes "$(NODES)" $(if $(filter-out 0,$(DOCUMENT)),-document)

.PHONY: scale-peer
scale-peer: envtest ## Measure the Node Tuning Operator with the same fleets; PEER is a checkout of its repository.
	$(FAST_TMP) go run ./test/scale -nodes "$(NODES)" -peer $(or $(PEER),$(error PEER must name a checkout of openshift/cluster-node-tuning-operator))

##@ Build

.PHONY: build
build: build-cli ## Build the operator, its agent, the guard of hosts and the command line into bin/.
	$(GO_BUILD) -o bin/ ./cmd/lowlatency-operator ./cmd/lowlatency-agent ./cmd/lowlatency-guard

.PHONY: build-cli
build-cli: ## Build kubectl-lowlatency into bin/.
	$(GO_BUILD) -o bin/kubectl-lowlatency ./cmd/kubectl-lowlatency

.PHONY: traffic
traffic: ## Build lowlatency-traffic, the C program that sends and answers the messages of measurements, into bin/ (needs gcc).
	@mkdir -p bin
	install -m 755 "$$(hack/traffic.sh)" bin/lowlatency-traffic

.PHONY: run
run: ## Run the manager on this machine against the current kubeconfig's cluster.
	go run ./cmd/lowlatency-operator manager

RELEASE_KEY ?=
# Programs that run in the folder of another module are given the path from the root.
KEY_PATH = $(if $(RELEASE_KEY),$(abspath $(RELEASE_KEY)))

.PHONY: image
image: ## Build the image for PLATFORMS without a container engine or registry into dist/image.tar; PUSH=registry/name:tag pushes it, RELEASE_KEY=file.pem signs it there.
	go run -C hack/image . -source $(CURDIR) -output $(CURDIR)/dist -name $(IMG) -platforms $(PLATFORMS) -version $(VERSION) -push "$(PUSH)" -key "$(KEY_PATH)"

.PHONY: traffic-image
traffic-image: programs-traffic-image ## Build the image that measures over the network, with Debian's C library, into dist/traffic-image.tar; PUSH as with image.
	go run -C hack/image . -image lowlatency-traffic -source $(CURDIR) -output $(CURDIR)/dist -platforms $(PLATFORMS) -version $(VERSION) -push "$(PUSH)" -key "$(KEY_PATH)"

.PHONY: image-twice
image-twice: programs-image-twice ## Build both images of the commit from two clones in different folders, and fail when the digests differ.
	@rm -rf dist/twice && mkdir -p dist/twice/a dist/twice/another/folder
	git clone -q . dist/twice/a/source && git clone -q . dist/twice/another/folder/source
	for image in lowlatency-operator lowlatency-traffic; do \
		go run -C hack/image . -image $$image -source $(CURDIR)/dist/twice/a/source -output $(CURDIR)/dist/twice/a -platforms $(PLATFORMS) -version $(VERSION) | tee -a dist/twice/first; \
		go run -C hack/image . -image $$image -source $(CURDIR)/dist/twice/another/folder/source -output $(CURDIR)/dist/twice/another -platforms $(PLATFORMS) -version $(VERSION) | tee -a dist/twice/second; \
	done
	cmp dist/twice/first dist/twice/second && cmp dist/twice/a/image.tar dist/twice/another/image.tar
	cmp dist/twice/a/traffic-image.tar dist/twice/another/traffic-image.tar && rm -rf dist/twice
	@printf 'image: two builds, one digest, and the same bytes in the archives\n'

.PHONY: release
release: programs-release ## Make everything of a release in dist/release: make release VERSION=0.1.0; RELEASE_KEY=file.pem signs it, and OLDER_BUNDLES are in its catalog, too.
	go run ./hack/release -version $(VERSION:v%=%) -key "$(RELEASE_KEY)" -output dist/release $(OLDER_BUNDLES)

.PHONY: publish-release
publish-release: ## Push the images in dist/release to where they are named, or to REGISTRY; RELEASE_KEY=file.pem signs them and attaches their provenance.
	go run ./hack/release -check dist/release
	go run -C hack/image . -publish $(CURDIR)/dist/release -registry "$(REGISTRY)" -key "$(KEY_PATH)"

.PHONY: sign-image
sign-image: ## Sign the image IMG, which a registry has, with RELEASE_KEY=file.pem: that for must-gather, a bundle's, a catalog's.
	go run -C hack/image . -sign "$(IMG)" -key "$(or $(KEY_PATH),$(error RELEASE_KEY must name the file of a private key))"

.PHONY: test-cosign
test-cosign: $(COSIGN) ## Push images to a registry on this machine, that of dist/release among them where there is one, and have the real cosign judge their signatures.
	cd hack/image && COSIGN=$(COSIGN) RELEASE=$(if $(wildcard dist/release/image.tar),$(CURDIR)/dist/release) go test -count=1 -v -run '^TestCosign$$' .

.PHONY: test-release
test-release: programs-test-release envtest $(KUBECTL_HERE) $(KREW) ## Make a release twice, fail when they differ in one byte, install it on a real API server, run its plugin.
	go run ./hack/release -version 0.1.0 -output dist/release
	go run ./hack/release -version 0.1.0 -output dist/release-again
	diff -r dist/release dist/release-again && rm -rf dist/release-again
	go run ./hack/release -check dist/release && printf 'release: %s files, checksums match, two runs give the same bytes\n' "$$(ls dist/release | wc -l)"
	$(MAKE) --no-print-directory try-release

.PHONY: try-release
try-release: envtest $(KUBECTL_HERE) $(KREW) ## Install the release in dist/release on a real API server by kubectl and Helm, its plugin by krew, and run it.
	RELEASE=$(CURDIR)/dist/release KUBECTL=$(KUBECTL_HERE) KREW=$(KREW) \
		$(GO_TEST) -tags release -count=1 -v ./test/release
	cd test/helm && CHART=$$(echo $(CURDIR)/dist/release/lowlatency-operator-*.tgz) IMAGE=$$(cat $(CURDIR)/dist/release/image-digest.txt) \
		$(GO_TEST) -count=1 -v -run '^TestRelease$$' ./...

BUILD_ARGS = --build-arg VERSION=$(VERSION) --build-arg COMMIT=$(COMMIT)
.PHONY: docker-build
docker-build: ## Build the images IMG and TRAFFIC_IMG, which measures over the network, for this machine's architecture.
	$(CONTAINER_TOOL) build $(BUILD_ARGS) -t $(IMG) .
	$(CONTAINER_TOOL) build $(BUILD_ARGS) -f traffic.Dockerfile -t $(TRAFFIC_IMG) .

.PHONY: test-docker-build
test-docker-build: programs-test-docker-build ## Build all images by make docker-build and make must-gather with buildah, and compare their files with those of make image (needs root).
	cd hack/image && $(GO_TEST) -tags engine -count=1 -timeout 60m -v -run '^TestEngine$$' .

.PHONY: docker-push
docker-push: ## Push both images.
	$(CONTAINER_TOOL) push $(IMG)
	$(CONTAINER_TOOL) push $(TRAFFIC_IMG)

.PHONY: docker-buildx
docker-buildx: ## Build and push both images for PLATFORMS.
	$(CONTAINER_TOOL) buildx build --push --platform=$(PLATFORMS) $(BUILD_ARGS) -t $(IMG) .
	$(CONTAINER_TOOL) buildx build --push --platform=$(PLATFORMS) $(BUILD_ARGS) -f traffic.Dockerfile -t $(TRAFFIC_IMG) .

.PHONY: must-gather
must-gather: ## Build the image IMG for oc adm must-gather on BASE_IMAGE, which has bash, procps, util-linux and rsync.
	$(CONTAINER_TOOL) build -f config/must-gather/Dockerfile $(BUILD_ARGS) -t $(IMG) \
		--build-arg BASE_IMAGE=$(or $(BASE_IMAGE),$(error BASE_IMAGE must name an image by its digest, such as oc adm release info --image-for=must-gather prints)) .

.PHONY: test-must-gather
test-must-gather: programs-test-must-gather envtest ## Put what that image has onto a base of Debian's packages, and gather there as oc does (needs root).
	$(GO_TEST) -tags lab -count=1 -v -run '^TestMustGatherImage$$' ./test/report

.PHONY: build-installer
build-installer: $(KUSTOMIZE) ## Write everything that make deploy applies into dist/install.yaml.
	@mkdir -p dist
	hack/kustomize-build.sh $(KUSTOMIZE) $(CONFIG) $(IMG) $(TRAFFIC_IMG) $(COMPONENTS) > dist/install.yaml

##@ Deployment

.PHONY: install
install: $(KUSTOMIZE) ## Install the CRDs into the current kubeconfig's cluster.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) apply --server-side -f -

.PHONY: uninstall
uninstall: $(KUSTOMIZE) ## Remove the CRDs and with them every profile.
	$(KUSTOMIZE) build config/crd | $(KUBECTL) delete --ignore-not-found -f -

.PHONY: deploy
deploy: $(KUSTOMIZE) ## Deploy the operator with the images IMG and TRAFFIC_IMG.
	hack/kustomize-build.sh $(KUSTOMIZE) $(CONFIG) $(IMG) $(TRAFFIC_IMG) $(COMPONENTS) | $(KUBECTL) apply --server-side -f -

.PHONY: undeploy
undeploy: $(KUSTOMIZE) ## Remove the operator; delete the profiles first, so that it can give the nodes back.
	hack/kustomize-build.sh $(KUSTOMIZE) $(CONFIG) $(IMG) $(TRAFFIC_IMG) $(COMPONENTS) | $(KUBECTL) delete --ignore-not-found -f -

##@ Tools

# Looked for before a target, and before what is built for it.
programs-%:
	@hack/packages.sh check $*

.PHONY: packages
packages: ## Install the Debian packages of the programs that targets run: of all, or of those in TARGETS.
	@hack/packages.sh install $(TARGETS)

.PHONY: toolchain
toolchain: ## Provide every tool in the per-user cache: download where possible, else build.
	hack/toolchain.sh

.PHONY: envtest
envtest: ## Provide etcd and kube-apiserver only.
	@hack/toolchain.sh envtest

$(CONTROLLER_GEN):
	@hack/toolchain.sh controller-gen

$(GOLANGCI_LINT):
	@hack/toolchain.sh golangci-lint

$(KUSTOMIZE):
	@hack/toolchain.sh kustomize

$(KUBECTL_HERE):
	@hack/toolchain.sh kubectl

$(PROMTOOL):
	@hack/toolchain.sh promtool

$(PROMETHEUS):
	@hack/toolchain.sh prometheus

$(BENCHSTAT):
	@hack/toolchain.sh benchstat

$(COSIGN):
	@hack/toolchain.sh cosign

$(KREW):
	@hack/toolchain.sh krew

$(GOVULNCHECK):
	@hack/toolchain.sh govulncheck
