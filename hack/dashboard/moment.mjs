// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Asks Prometheus when the demo's story began, and when a node was last seen to be wrong in it, and prints both in seconds:
//
//   node moment.mjs PROMETHEUS-PORT
//
// It ends with 3 when a scrape between the two came to nothing.
const [port] = process.argv.slice(2);
const now = Math.floor(Date.now() / 1000);

async function values(query) {
  const asked = new URLSearchParams({ query, start: now - 3600, end: now, step: 1 });
  const answer = await (await fetch(`http://127.0.0.1:${port}/api/v1/query_range?${asked}`)).json();
  return answer.data.result.flatMap((series) => series.values.map(([time, value]) => [time, Number(value)]));
}

// Only the story's own profile: at its end, the demo may have made another, which selects the machine that runs it.
const matched = await values('lowlatency_profile_nodes{profile="trading",state="matched"}');
// Only after the roll-out is a node on which a check fails one that went wrong.
const proven = await values('lowlatency_profile_nodes{profile="trading",state="deJittered"}');
const failed = await values('sum(lowlatency_findings_nodes{profile="trading",outcome="Failed"})');
const all = Math.max(...matched.map(([, value]) => value));
const rolledOut = proven.find(([, value]) => value === all)?.[0];
const wrong = failed.filter(([time, value]) => time > rolledOut && value > 0);
if (wrong.length === 0) {
  console.error('dashboard: Prometheus saw no node go wrong after the roll-out; is this machine too busy for the demo?');
  process.exit(1);
}
const [start, end] = [matched[0][0], wrong[wrong.length - 1][0]];
const missed = (await values('up')).filter(([time, value]) => time > start && time <= end && value === 0);
if (missed.length > 0) {
  console.error(`dashboard: for ${missed.length} of ${end - start} seconds Prometheus got no answer in time`);
  process.exit(3);
}
console.log(start, end);
