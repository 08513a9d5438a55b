// SPDX-License-Identifier: Apache-2.0
// Copyright The Low Latency Node Operator Authors.

// Serves the page of a folder, and what is below /api from Prometheus, on one address of this machine:
//
//   node serve.mjs FOLDER PORT PROMETHEUS-PORT
import { createServer, request } from 'node:http';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';

const [folder, port, prometheus] = process.argv.slice(2);
const types = { html: 'text/html', js: 'text/javascript', css: 'text/css', json: 'application/json' };

createServer(async (asked, answer) => {
  if (asked.url.startsWith('/api/')) {
    const passed = request({ host: '127.0.0.1', port: prometheus, path: asked.url, method: asked.method, headers: asked.headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    passed.on('error', (error) => answer.writeHead(502).end(String(error)));
    asked.pipe(passed);
    return;
  }
  const name = basename(new URL(asked.url, 'http://page').pathname) || 'index.html';
  try {
    const content = await readFile(join(folder, name));
    answer.writeHead(200, { 'Content-Type': types[name.split('.').pop()] ?? 'application/octet-stream' }).end(content);
  } catch {
    answer.writeHead(404).end();
  }
}).listen(Number(port), '127.0.0.1');
