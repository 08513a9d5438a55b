// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Draws the page with the dashboard when all of it is there, and fails when the page reports an error:
//
//   node draw.mjs CHROMIUM FOLDER PAGE OUT.png
//
// Chromium is told what to do over two pipes (its DevTools protocol), and asked how far the page is. Its own --screenshot with
// --virtual-time-budget draws after a time instead, and waits for ever on a busy machine: virtual time stands while an answer is under way.
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { join } from 'node:path';

const width = 1280, patience = 300_000, quiet = 1_000;
const [chromium, folder, page, out] = process.argv.slice(2);

const browser = spawn(chromium, [
  '--headless=new', '--no-sandbox', '--disable-gpu', '--hide-scrollbars', '--no-first-run', `--user-data-dir=${join(folder, 'chromium')}`,
  '--remote-debugging-pipe', 'about:blank',
], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] });
const [, , , commands, answers] = browser.stdio;

function fail(why) {
  console.error(`dashboard: ${why}`);
  browser.kill('SIGKILL');
  process.exit(1);
}
browser.on('error', (error) => fail(`Chromium does not start: ${error.message}`));
browser.on('exit', (code, signal) => fail(`Chromium ended with ${code ?? signal} before it had drawn anything`));
setTimeout(() => fail(`the page is not there after ${patience / 1000} s: ${waitingFor}`), patience).unref();

let waitingFor = 'Chromium has not answered';
let asked = 0;
const waiting = new Map();
const underWay = new Set();
let lastAnswer = Date.now();

// Messages end with a null byte.
let rest = '';
answers.setEncoding('utf8');
answers.on('data', (text) => {
  const messages = (rest + text).split('\0');
  rest = messages.pop();
  messages.forEach((message) => receive(JSON.parse(message)));
});

function receive({ id, result, error, method, params }) {
  switch (method) {
    case undefined:
      error ? fail(`Chromium refuses: ${error.message}`) : waiting.get(id)(result);
      waiting.delete(id);
      break;
    case 'Network.requestWillBeSent':
      underWay.add(params.requestId);
      break;
    case 'Network.loadingFinished':
    case 'Network.loadingFailed':
      underWay.delete(params.requestId);
      lastAnswer = Date.now();
      break;
    case 'Runtime.exceptionThrown':
      fail(`the page fails: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
      break;
    case 'Runtime.consoleAPICalled':
      if (params.type === 'error') fail(`the page reports: ${params.args.map((arg) => arg.value ?? arg.description).join(' ')}`);
      break;
  }
}

let sessionId;
function tell(method, params = {}) {
  return new Promise((resolve) => {
    waiting.set(++asked, resolve);
    commands.write(`${JSON.stringify({ id: asked, sessionId, method, params })}\0`);
  });
}

async function evaluate(expression) {
  return (await tell('Runtime.evaluate', { expression, returnByValue: true })).result.value;
}

// allThere waits until each panel stands without a sign of loading, and nothing has been asked for a while.
async function allThere(panels) {
  for (;;) {
    const { shown, loading } = await evaluate(`({
      shown: document.querySelectorAll('[data-testid="panel"]').length,
      loading: document.querySelectorAll('[data-testid="panel"] .MuiSkeleton-root, [role="progressbar"]').length,
    })`);
    waitingFor = `${shown} of ${panels} panels are shown, ${loading} of them are loading, ${underWay.size} answers are under way`;
    if (shown === panels && loading === 0 && underWay.size === 0 && Date.now() - lastAnswer > quiet) return;
    await sleep(200);
  }
}

const board = JSON.parse(await readFile(join(folder, 'page', 'lowlatency.json'), 'utf8'));
const panels = board.rows.flatMap((row) => row.panels).length;
const { targetId } = await tell('Target.createTarget', { url: 'about:blank' });
({ sessionId } = await tell('Target.attachToTarget', { targetId, flatten: true }));
await Promise.all(['Page', 'Runtime', 'Network'].map((domain) => tell(`${domain}.enable`)));
// Panels ask for their data when they are in sight: at first all of them, then as high as they have become.
await tell('Emulation.setDeviceMetricsOverride', { width, height: 10_000, deviceScaleFactor: 1, mobile: false });
await tell('Page.navigate', { url: page });
await allThere(panels);
const height = await evaluate("Math.ceil(document.getElementById('root').getBoundingClientRect().bottom) + 8");
await tell('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
await allThere(panels);
const { data } = await tell('Page.captureScreenshot', { format: 'png' });
await writeFile(out, Buffer.from(data, 'base64'));
browser.removeAllListeners('exit');
await tell('Browser.close');
process.exit(0);
