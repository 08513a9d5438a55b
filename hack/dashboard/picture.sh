#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Copyright The Low Latency Node Operator Authors.
#
# Lets a real Prometheus, with the shipped rules, scrape the operator of the demo, and draws config/dashboard/lowlatency.json from it at the
# moment when a node is wrong:
#
#   hack/dashboard/picture.sh PROMETHEUS OUT.png
#
# What draws are the components of Perses, in which the console of OpenShift draws dashboards, too, in a headless Chromium. The
# program bin/demo must be there. npm installs what package-lock.json names into the cache, without running its scripts.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
prometheus=$(realpath "${1:?usage: picture.sh PROMETHEUS OUT.png}")
out=$(realpath -m "${2:?usage: picture.sh PROMETHEUS OUT.png}")
cache=${LOWLATENCY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/lowlatency-operator}
metrics=19580 api=19590 page=19591
work=$(mktemp -d)
children=()
cleanup() {
  [ "${#children[@]}" -eq 0 ] || kill "${children[@]}" 2>/dev/null || true
  wait
  rm -rf "$work"
}
trap cleanup EXIT

fail() {
  printf 'dashboard: %s\n' "$*" >&2
  exit 1
}

# installed is the folder with the packages of this package-lock.json; it appears only when it is complete.
packages=$cache/dashboard-$(sha256sum "$here/package-lock.json" | cut -c1-16)
if [ ! -d "$packages" ]; then
  printf 'dashboard: installing the packages that draw (once)\n' >&2
  mkdir -p "$work/packages"
  cp "$here/package.json" "$here/package-lock.json" "$work/packages/"
  npm --prefix "$work/packages" ci --ignore-scripts --no-audit --no-fund --legacy-peer-deps >"$work/npm.log" 2>&1 ||
    fail "npm ci fails: $(tail -n 5 "$work/npm.log")"
  mkdir -p "$cache"
  mv -T "$work/packages" "$packages"
fi

mkdir "$work/page"
cp "$here"/page.jsx "$here"/convert.mjs "$work/"
ln -s "$packages/node_modules" "$work/node_modules"
# One copy of each library: React and react-query keep state in the module.
"$packages/node_modules/.bin/esbuild" "$work/page.jsx" --bundle --minify --format=esm --outfile="$work/page/page.js" --log-level=error \
  --main-fields=module,main --alias:@tanstack/react-query="$work/node_modules/@tanstack/react-query/build/lib/index.mjs" \
  '--define:process.env.NODE_ENV="production"' --define:global=globalThis --loader:.woff=dataurl --loader:.woff2=dataurl
cp "$here/index.html" "$root/config/dashboard/lowlatency.json" "$work/page/"

sed -e '1,/^spec:/d' -e 's/^  //' "$root/config/prometheus/alerts.yaml" >"$work/rules.yaml"
# story INTERVAL lets Prometheus scrape the demo so often, and says in moment what is to be drawn; it fails when a scrape came to nothing.
story() {
  rm -rf "$work/prometheus"
  cat >"$work/prometheus.yaml" <<EOF
global: {scrape_interval: $1, scrape_timeout: $1, evaluation_interval: $1}
rule_files: [rules.yaml]
scrape_configs:
- job_name: lowlatency-operator
  static_configs: [{targets: ["127.0.0.1:$metrics"]}]
EOF
  "$prometheus" --config.file="$work/prometheus.yaml" --storage.tsdb.path="$work/prometheus" --web.listen-address="127.0.0.1:$api" >"$work/prometheus.log" 2>&1 &
  children+=($!)
  "$root/bin/demo" -oneshot -metrics "127.0.0.1:$metrics" >"$work/demo.log" 2>&1 || fail "the demo fails: $(tail -n 20 "$work/demo.log")"
  kill -0 "${children[@]}" 2>/dev/null || fail "Prometheus or the page's server ended: $(tail -n 5 "$work/prometheus.log")"
  local status=0
  moment=$(node "$here/moment.mjs" "$api") || status=$?
  [ "$status" -ne 0 ] || return 0
  [ "$status" -eq 3 ] || exit 1
  kill "${children[-1]}"
  wait "${children[-1]}" || true
  unset 'children[-1]'
  return 1
}

node "$here/serve.mjs" "$work/page" "$page" "$api" &
children+=($!)
moment=
# On a busy machine an answer takes longer than between two scrapes, which would leave gaps in the curves.
story 1s || story 3s || story 10s || fail 'this machine is too busy for a picture without gaps'
node "$here/draw.mjs" "$(command -v chromium)" "$work" "http://127.0.0.1:$page/?start=${moment% *}&end=${moment#* }" "$work/dashboard.png" || exit 1
mkdir -p "$(dirname "$out")"
# What was drawn from: a test of the documents compares.
(cd "$root" && sha256sum config/dashboard/lowlatency.json config/prometheus/alerts.yaml hack/dashboard/{convert.mjs,index.html,package-lock.json,page.jsx} >hack/dashboard/drawn.sha256)
mv "$work/dashboard.png" "$out"
printf 'dashboard: %s shows the time from %s to %s\n' "$out" "$(date -u -d "@${moment% *}" +%FT%TZ)" "$(date -u -d "@${moment#* }" +%FT%TZ)" >&2
