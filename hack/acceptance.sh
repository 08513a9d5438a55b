#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Runs every proof that takes too long for each change, one make target after the other, and prints one table at the end. A
# target that fails does not keep the others from running, and one that says "left out: ..." in its log has passed without that. The logs
# are in dist/acceptance/.
#
#   hack/acceptance.sh [target ...]
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What is proven, by the name of its target.
proofs() {
  cat <<'EOF'
demo-capture  the demo in terminals of 80x24 and 120x40
docs-test     every command of the documents
test-alerts   every alert, raised by promtool
dashboard   every query of the dashboard, answered by Prometheus from the demo's metrics
faults      seeded faults and harmless variations on simulated machines
test-fuzz   what parsers do with inputs that nobody thought of
test-hwloc  topologies as another judge sees them
judge-latency measurements over the network, beside sockperf and qperf, and against injected faults
judge-jitter the jitter probe beside oslat, in turns
test-testpmd what is read of a real testpmd's counts, against the kernel's counters
mutate      single changes of the code that the tests must notice
bench       benchmarks
mistakes    mistakes of users and faults of the API server
scale       the manager with large fleets
churn       an hour of flapping nodes, edited profiles and restarted agents
test-upgrade versions of definitions, manager and agents mixed, forth and back
olm         installed, upgraded and removed by Operator Lifecycle Manager
test-uninstall installed by make deploy and by kubectl, and removed: no object is left
argocd      synced, changed, rolled back, pruned and removed by Argo CD
argocd-olm  installed by a Subscription that Argo CD syncs, upgraded without drift, removed
image-twice one digest for two builds of each image
test-docker-build the images that a container engine builds of the Dockerfiles, the same as those of make image
test-must-gather a report gathered as oc adm must-gather does, on a base of Debian's packages
test-release a release that is complete, installs, and is the same when it is made again
test-cosign signatures and provenance of images, judged by cosign
lab         real kernels against their plans
lab-pools   NIC pools on a real kubelet
lab-latency LatencyTests of each kind on a real kubelet, from kubectl apply to verdict and report
lab-netem   what measurements over the network count, against the kernel's network emulator
lab-judges  measurements over the network beside sockperf and qperf, between two emulated machines
lab-stamps  stamps of messages by emulated NICs, and what is said where there are none
lab-onload  verdicts about a real Onload, on AF_XDP
lab-enact   ordinary hosts with GRUB changed by the guard, and by the operator on a real control plane
jitter-pair a CPU of an emulated machine before and after its plan
EOF
}

targets=("$@")
[ "${#targets[@]}" -gt 0 ] || mapfile -t targets < <(proofs | cut -d' ' -f1)
for target in "${targets[@]}"; do
  proofs | grep -q "^$target " || {
    printf 'acceptance: there is no proof %s; there are: %s\n' "$target" "$(proofs | cut -d' ' -f1 | tr '\n' ' ')" >&2
    exit 2
  }
done

# A program that is missing is told now, and not after hours.
hack/packages.sh check "${targets[@]}" || exit 1

mkdir -p dist/acceptance
# rows has target, result, seconds and proof of each, with tabs between them.
rows=()
row() { rows+=("$(printf '%s\t' "$@")"); }
row TARGET RESULT SECONDS PROOF
failed=0
for target in "${targets[@]}"; do
  log=dist/acceptance/$target.log
  printf 'acceptance: make %s (log in %s)\n' "$target" "$log" >&2
  started=$SECONDS
  if make --no-print-directory "$target" >"$log" 2>&1 </dev/null; then
    result=passed
    left_out=$(sed -n 's/^[a-z-]*: left out: //p' "$log" | paste -s -d , -)
    [ -z "$left_out" ] || result="passed, without $left_out"
  else
    result=FAILED
    failed=1
    tail -n 20 "$log" >&2
  fi
  row "$target" "$result" $((SECONDS - started)) "$(proofs | sed -n "s/^$target  *//p")"
done

# The column of results is as wide as the longest one.
wide=6
for line in "${rows[@]}"; do
  IFS=$'\t' read -r _ result _ <<<"$line"
  [ "${#result}" -le "$wide" ] || wide=${#result}
done
for line in "${rows[@]}"; do
  IFS=$'\t' read -r target result seconds proof <<<"$line"
  printf "%-16s %-${wide}s %8s  %s\n" "$target" "$result" "$seconds" "$proof"
done | tee dist/acceptance/table.txt
exit $failed
