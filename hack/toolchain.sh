#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Provides the programs that the project runs and does not import, in a per-user cache that survives a
# fresh clone:
#
#   hack/toolchain.sh [envtest|controller-gen|golangci-lint|kustomize|benchstat|govulncheck|promtool|prometheus|node|controller-manager|kubectl|olm|argocd|cosign]...
#
# Without arguments, all of them but promtool and prometheus, which only make test-alerts and the dashboard need, and the last six, for the lab, make olm, make argocd,
# make docs-test and make test-cosign. Only Go is needed. etcd and kube-apiserver are downloaded with setup-envtest where its index can be reached, and built
# from Go modules where it cannot. "node" is
# what runs a real node beside that API server: the kubelet, the controller manager and the scheduler of the same
# release, and containerd with its shim and ctr; they are downloaded with curl from where Kubernetes releases its
# programs, and built from Go modules where that cannot be reached. "olm" is Operator Lifecycle Manager with its
# server of catalogs, "argocd" is Argo CD; both are built, and so are "cosign" and "krew", beside which its judge of manifests is. Several runs at the same time are safe: they
# take turns, and a program appears in the cache only when it is complete.
#
#   LOWLATENCY_CACHE     the cache (default: $XDG_CACHE_HOME/lowlatency-operator)
#   LOWLATENCY_DOWNLOAD  "never" builds without trying the download; a URL is the index of a mirror of envtest
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=hack/versions.env
source "$here/versions.env"

# Neither a developer's workspace nor flags meant for this project's own build apply to the tools.
export GOWORK=off GOFLAGS="" CGO_ENABLED=0

cache=${LOWLATENCY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lowlatency-operator}
platform=$(go env GOHOSTOS)-$(go env GOHOSTARCH)
store=$cache/k8s/$KUBERNETES_VERSION-$platform
node_store=$cache/node/kubernetes-$KUBERNETES_VERSION-containerd-$CONTAINERD_VERSION-$platform
kubernetes_programs=(kubelet kube-controller-manager kube-scheduler)
containerd_programs=(containerd containerd-shim-runc-v2 ctr)
logs=$cache/log
staging=
child=

cleanup() {
  if [ -n "$child" ]; then kill "$child" 2>/dev/null || true; fi
  if [ -n "$staging" ]; then rm -rf "$staging"; fi
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  printf 'toolchain: %s\n' "$*" >&2
  exit 1
}

# progress TITLE SECONDS shows the time that a step takes: in place on a terminal, else every 15 seconds.
progress() {
  if [ -t 1 ]; then
    printf '\r%s ... %d s' "$1" "$2"
  elif [ $(($2 % 15)) -eq 0 ] && [ "$2" -gt 0 ]; then
    printf '%s ... %d s\n' "$1" "$2"
  fi
}

# attempt TITLE LOG LIMIT COMMAND... runs the command with its output in LOG and returns its status, or 124
# when it took longer than LIMIT seconds.
attempt() {
  local title=$1 log=$2 limit=$3 start=$SECONDS elapsed=0 shown=-1 status=0
  shift 3
  mkdir -p "$logs"
  [ -t 1 ] || printf '%s ...\n' "$title"
  "$@" >"$log" 2>&1 9>&- &
  child=$!
  while kill -0 "$child" 2>/dev/null; do
    elapsed=$((SECONDS - start))
    if [ "$elapsed" -ge "$limit" ]; then
      kill "$child" 2>/dev/null || true
      printf 'no end within %d seconds\n' "$limit" >>"$log"
      status=124
      break
    fi
    if [ "$elapsed" -ne "$shown" ]; then
      progress "$title" "$elapsed"
      shown=$elapsed
    fi
    sleep 0.2
  done
  if [ "$status" -eq 0 ]; then wait "$child" || status=$?; else wait "$child" 2>/dev/null || true; fi
  child=
  elapsed=$((SECONDS - start))
  [ ! -t 1 ] || printf '\r'
  if [ "$status" -eq 0 ]; then
    printf '%s ... done in %d s\n' "$title" "$elapsed"
  else
    printf '%s ... failed after %d s\n' "$title" "$elapsed"
  fi
  return "$status"
}

# build TITLE NAME COMMAND... runs a step that must succeed.
build() {
  local title=$1 name=$2 log=$logs/$2.log
  shift 2
  attempt "$title" "$log" 3600 "$@" && return
  printf '%s\n' "--- the last lines of $log" >&2
  tail -n 20 "$log" >&2
  printf '%s\n' "---" >&2
  fail "$name could not be built, see above; modules come from GOPROXY=$(go env GOPROXY). Run the same command again once the cause is gone."
}

# tool_path NAME VERSION is where a tool is kept: another version is another folder.
tool_path() { printf '%s/bin/%s-%s/%s' "$cache" "$1" "$2" "$1"; }

# publish FOLDER gives the finished staging folder its name.
publish() {
  chmod 755 "$staging"
  rm -rf "$1"
  mv "$staging" "$1"
  staging=
}

# install_tool NAME VERSION PACKAGE HINT [PACKAGE...] installs a Go program at its exact version, and others of its module beside it.
install_tool() {
  local name=$1 version=$2 package=$3 hint=$4
  shift 4
  mkdir -p "$cache/bin"
  staging=$(mktemp -d "$cache/bin/.$name.XXXXXX")
  build "building $name $version ($hint; once per machine)" "$name-$version" \
    env GOBIN="$staging" go install "$package@$version" "${@/%/@$version}"
  publish "$(dirname "$(tool_path "$name" "$version")")"
}

# The stamp of the store tells which versions it was made for.
envtest_stamp() { printf 'kubernetes %s etcd %s\n' "$KUBERNETES_VERSION" "$ETCD_VERSION"; }

have_envtest() {
  [ -x "$store/etcd" ] && [ -x "$store/kube-apiserver" ] &&
    [ "$(cat "$store/.stamp" 2>/dev/null)" = "$(envtest_stamp)" ]
}

# download_envtest DIR downloads into DIR when the index can be reached and has the version.
download_envtest() {
  local dir=$1 log=$logs/setup-envtest.log setup=$1/setup/setup-envtest
  local options=(--bin-dir "$1")
  case ${LOWLATENCY_DOWNLOAD:-} in
  never) return 1 ;;
  ?*) options+=(--index "$LOWLATENCY_DOWNLOAD") ;;
  esac
  attempt "building setup-envtest $SETUP_ENVTEST_VERSION (a few seconds)" "$log" 120 env GOBIN="$dir/setup" \
    go install "sigs.k8s.io/controller-runtime/tools/setup-envtest@$SETUP_ENVTEST_VERSION" || return 1
  if ! attempt "looking for a download of etcd and kube-apiserver $KUBERNETES_VERSION" "$log" 10 \
    "$setup" list "${options[@]}" "$KUBERNETES_VERSION"; then
    printf 'no download can be reached (%s); building from Go modules instead\n' "$log"
    return 1
  fi
  if ! grep -q "$KUBERNETES_VERSION" "$log"; then
    printf 'no download of %s is offered; building from Go modules instead\n' "$KUBERNETES_VERSION"
    return 1
  fi
  if ! attempt "downloading etcd and kube-apiserver $KUBERNETES_VERSION" "$log" 300 \
    "$setup" use "${options[@]}" "$KUBERNETES_VERSION"; then
    printf 'the download failed (%s); building from Go modules instead\n' "$log"
    return 1
  fi
  mv "$dir/k8s/$KUBERNETES_VERSION-$platform"/* "$dir/"
}

# go_build MODULE OUTPUT LDFLAGS PACKAGE builds in a module of its own below hack/. It replaces the shell, so
# that an interrupted run ends the compiler as well: run it through build only.
go_build() { cd "$here/$1" && exec go build -trimpath -ldflags "$3" -o "$2" "$4"; }

# kubernetes_flags are the linker's, so that programs say which release they are.
kubernetes_flags() {
  local version=k8s.io/component-base/version minor=${KUBERNETES_VERSION#*.}
  printf -- '-s -w -X %s.gitVersion=v%s -X %s.gitMajor=%s -X %s.gitMinor=%s' "$version" "$KUBERNETES_VERSION" \
    "$version" "${KUBERNETES_VERSION%%.*}" "$version" "${minor%%.*}"
}

build_envtest() {
  local dir=$1
  build "building etcd $ETCD_VERSION from source (about 1 minute on 2 cores; once per machine)" \
    "etcd-$ETCD_VERSION" go_build etcd "$dir/etcd" "-s -w" .
  build "building kube-apiserver $KUBERNETES_VERSION from source (about 4 minutes on 2 cores; once per machine)" \
    "kube-apiserver-$KUBERNETES_VERSION" go_build kubernetes "$dir/kube-apiserver" "$(kubernetes_flags)" \
    k8s.io/kubernetes/cmd/kube-apiserver
}

install_envtest() {
  mkdir -p "$cache/k8s"
  staging=$(mktemp -d "$cache/k8s/.$KUBERNETES_VERSION.XXXXXX")
  download_envtest "$staging" || build_envtest "$staging"
  rm -rf "$staging/k8s" "$staging/setup"
  envtest_stamp >"$staging/.stamp"
  publish "$store"
}

# fetch_program DIR NAME downloads a program of the Kubernetes release and compares it with its published sum. It is
# one command for attempt, which runs it in a shell of its own.
fetch_program() {
  local url=https://dl.k8s.io/release/v$KUBERNETES_VERSION/bin/${platform/-//}/$2
  curl -fsSL --connect-timeout 5 -o "$1/$2" "$url" || return
  local sum
  sum=$(curl -fsSL --connect-timeout 5 "$url.sha256") || return
  printf '%s  %s\n' "$sum" "$1/$2" | sha256sum --check --quiet && chmod 755 "$1/$2"
}

download_kubernetes() {
  local dir=$1 name
  [ "${LOWLATENCY_DOWNLOAD:-}" != never ] && command -v curl >/dev/null || return 1
  for name in "${kubernetes_programs[@]}"; do
    attempt "downloading $name $KUBERNETES_VERSION" "$logs/download-$name.log" 300 fetch_program "$dir" "$name" && continue
    printf 'no download can be reached (%s); building from Go modules instead\n' "$logs/download-$name.log"
    return 1
  done
}

build_kubernetes() {
  local dir=$1 name
  for name in "${kubernetes_programs[@]}"; do
    build "building $name $KUBERNETES_VERSION from source (3 to 6 minutes on 2 cores; once per machine)" \
      "$name-$KUBERNETES_VERSION" go_build kubernetes "$dir/$name" "$(kubernetes_flags)" "k8s.io/kubernetes/cmd/$name"
  done
}

install_node() {
  local name
  mkdir -p "$cache/node"
  staging=$(mktemp -d "$cache/node/.staging.XXXXXX")
  download_kubernetes "$staging" || build_kubernetes "$staging"
  for name in "${containerd_programs[@]}"; do
    build "building $name $CONTAINERD_VERSION (about 1 minute on 2 cores; once per machine)" "$name-$CONTAINERD_VERSION" \
      env GOBIN="$staging" go install -trimpath \
      -ldflags "-s -w -X github.com/containerd/containerd/v2/version.Version=$CONTAINERD_VERSION" \
      "github.com/containerd/containerd/v2/cmd/$name@$CONTAINERD_VERSION"
  done
  publish "$node_store"
}

# install_program NAME installs a program of the Kubernetes release for tests that have no node.
install_program() {
  local path name=$1
  path=$(tool_path "$name" "$KUBERNETES_VERSION")
  mkdir -p "$cache/bin"
  staging=$(mktemp -d "$cache/bin/.$name.XXXXXX")
  if [ "${LOWLATENCY_DOWNLOAD:-}" = never ] || ! command -v curl >/dev/null ||
    ! attempt "downloading $name $KUBERNETES_VERSION" "$logs/download-$name.log" 300 fetch_program "$staging" "$name"; then
    build "building $name $KUBERNETES_VERSION from source (3 to 6 minutes on 2 cores; once per machine)" \
      "$name-$KUBERNETES_VERSION" go_build kubernetes "$staging/$name" "$(kubernetes_flags)" "k8s.io/kubernetes/cmd/$name"
  fi
  publish "$(dirname "$path")"
}

# install_from MODULE NAME VERSION TAGS HINT PACKAGE... builds programs in a module of its own below hack/ into the folder of a tool.
install_from() {
  local module=$1 name=$2 version=$3 tags=$4 hint=$5
  shift 5
  mkdir -p "$cache/bin"
  staging=$(mktemp -d "$cache/bin/.$name.XXXXXX")
  build "building $name $version from source ($hint; once per machine)" "$name-$version" \
    build_programs "$module" "$tags" "$staging" "$@"
  # A command of several programs is named after its folder.
  if [ -e "$staging/cmd" ]; then mv "$staging/cmd" "$staging/$name"; fi
  publish "$(dirname "$(tool_path "$name" "$version")")"
}

# build_programs replaces the shell, as go_build does.
build_programs() {
  local module=$1 tags=$2 folder=$3
  shift 3
  cd "$here/$module" && exec go build -trimpath -ldflags "-s -w" -tags "$tags" -o "$folder/" "$@"
}

# present TOOL succeeds when the cache holds the tool at its version.
present() {
  case $1 in
  envtest) have_envtest ;;
  controller-gen) [ -x "$(tool_path controller-gen "$CONTROLLER_TOOLS_VERSION")" ] ;;
  golangci-lint) [ -x "$(tool_path golangci-lint "$GOLANGCI_LINT_VERSION")" ] ;;
  kustomize) [ -x "$(tool_path kustomize "$KUSTOMIZE_VERSION")" ] ;;
  benchstat) [ -x "$(tool_path benchstat "$BENCHSTAT_VERSION")" ] ;;
  govulncheck) [ -x "$(tool_path govulncheck "$GOVULNCHECK_VERSION")" ] ;;
  promtool | prometheus) [ -x "$(tool_path "$1" "$PROMETHEUS_VERSION")" ] ;;
  node) [ -d "$node_store" ] ;;
  kubectl) [ -x "$(tool_path kubectl "$KUBERNETES_VERSION")" ] ;;
  controller-manager) [ -x "$(tool_path kube-controller-manager "$KUBERNETES_VERSION")" ] ;;
  olm) [ -x "$(tool_path olm "$OLM_VERSION")" ] ;;
  argocd) [ -x "$(tool_path argocd "$ARGOCD_VERSION")" ] ;;
  cosign) [ -x "$(tool_path cosign "$COSIGN_VERSION")" ] ;;
  krew) [ -x "$(tool_path krew "$KREW_VERSION")" ] ;;
  *) fail "unknown tool $1: known are envtest, controller-gen, golangci-lint, kustomize, benchstat, govulncheck, promtool, prometheus, node, controller-manager, kubectl, olm, argocd, cosign and krew" ;;
  esac
}

install() {
  case $1 in
  envtest) install_envtest ;;
  controller-gen) install_tool controller-gen "$CONTROLLER_TOOLS_VERSION" \
    sigs.k8s.io/controller-tools/cmd/controller-gen "about 30 seconds on 2 cores" ;;
  golangci-lint) install_tool golangci-lint "$GOLANGCI_LINT_VERSION" \
    github.com/golangci/golangci-lint/v2/cmd/golangci-lint "about 4 minutes on 2 cores" ;;
  kustomize) install_tool kustomize "$KUSTOMIZE_VERSION" \
    sigs.k8s.io/kustomize/kustomize/v5 "about 30 seconds on 2 cores" ;;
  benchstat) install_tool benchstat "$BENCHSTAT_VERSION" \
    golang.org/x/perf/cmd/benchstat "about 10 seconds on 2 cores" ;;
  govulncheck) install_tool govulncheck "$GOVULNCHECK_VERSION" \
    golang.org/x/vuln/cmd/govulncheck "about 20 seconds on 2 cores" ;;
  # Without the libraries of clouds in which Prometheus could look for what it is to scrape.
  promtool | prometheus) GOFLAGS=-tags=remove_all_sd install_tool "$1" "$PROMETHEUS_VERSION" \
    "github.com/prometheus/prometheus/cmd/$1" "about 2 minutes on 2 cores" ;;
  node) install_node ;;
  controller-manager) install_program kube-controller-manager ;;
  kubectl) install_program kubectl ;;
  olm) install_from olm olm "$OLM_VERSION" \
    json1,containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper "about 6 minutes on 2 cores" \
    github.com/operator-framework/operator-lifecycle-manager/cmd/{olm,catalog} github.com/operator-framework/operator-registry/cmd/opm ;;
  argocd) install_from argocd argocd "$ARGOCD_VERSION" "" "about 6 minutes on 2 cores" \
    github.com/argoproj/argo-cd/v3/cmd ./redis ;;
  cosign) install_tool cosign "$COSIGN_VERSION" \
    github.com/sigstore/cosign/v3/cmd/cosign "many minutes on 2 cores" ;;
  krew) install_tool krew "$KREW_VERSION" \
    sigs.k8s.io/krew/cmd/krew "about 20 seconds on 2 cores" sigs.k8s.io/krew/cmd/validate-krew-manifest ;;
  esac
}

take_turn() {
  command -v flock >/dev/null || return 0
  exec 9>"$cache/.lock"
  flock -n 9 && return
  printf 'waiting for another run of hack/toolchain.sh on this machine to finish\n'
  flock 9
}

main() {
  command -v go >/dev/null || fail "go is not on the PATH: install Go $(awk '$1 == "go" {print $2; exit}' "$here/../go.mod") or newer"
  mkdir -p "$cache" || fail "the cache folder $cache cannot be made: set LOWLATENCY_CACHE to a folder that you may write"
  [ $# -gt 0 ] || set -- envtest controller-gen golangci-lint kustomize benchstat govulncheck
  local tool missing=0
  for tool in "$@"; do present "$tool" || missing=1; done
  [ "$missing" -eq 1 ] || return 0
  take_turn
  for tool in "$@"; do present "$tool" || install "$tool"; done
}

main "$@"
