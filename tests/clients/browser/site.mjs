// A node of the demo's service at a host name. Browsers allow no passkeys at the demo's IP address.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { join } from 'node:path';
import { PATIENCE } from './chromium.mjs';

const { CLIENT_SCRATCH, DATABASE_URL, TIDEGATE_TEST_BINARY } = process.env;

/** A server at a free port, which answers each request with `page`. */
export async function serve(page) {
  const server = http.createServer((_, answer) => {
    answer.setHeader('content-type', 'text/html');
    answer.end(page);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { port: server.address().port, stop: () => server.close() };
}

const free = await serve('');
free.stop();
export const home = `http://localhost:${free.port}`;

const admin = new URL(DATABASE_URL);
admin.pathname = '/postgres';
const settings = {
  PATH: process.env.PATH,
  TIDEGATE_LISTEN: `127.0.0.1:${free.port}`,
  TIDEGATE_PUBLIC_URL: home,
  TIDEGATE_ADMIN_URL: admin.href,
  TIDEGATE_CONTROL_DATABASE: 'tidegate',
  TIDEGATE_MASTER_KEY_FILE: join(CLIENT_SCRATCH, '../demo/master.key'),
};

function run(command, input) {
  const stdio = ['pipe', 'ignore', 'inherit'];
  const child = spawn(TIDEGATE_TEST_BINARY, command, { env: settings, stdio });
  // Also when the client fails: nothing else would end it.
  process.on('exit', () => child.kill());
  child.stdin.end(input);
  return child;
}

const node = run(['serve'], '');

export async function start() {
  for (const late = Date.now() + PATIENCE; ;) {
    assert.equal(node.exitCode, null, 'the node ended');
    if (await fetch(`${home}/readyz`).then((answer) => answer.ok, () => false)) return;
    assert.ok(Date.now() < late, 'the node is not ready');
  }
}

export async function stop() {
  node.kill();
  await once(node, 'exit');
}

/** Makes a tenant whose owner has this password. */
export async function makeTenant(name, password) {
  const made = run(['tenant', 'create', '--password-file', '-', name], `${password}\n`);
  const [status] = await once(made, 'exit');
  assert.equal(status, 0, `tenant create ${name}`);
}

/** Requests as the owner of the demo. */
export async function owner() {
  const answer = await fetch(`${home}/api/v4/oauth`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'password', username: 'demo', password: 'demo1234', client_id: 'demo-app',
    }),
  });
  const tokens = await answer.json();
  assert.equal(answer.status, 200, JSON.stringify(tokens));
  return async (method, path, body) => {
    const reply = await fetch(home + path, {
      method,
      headers: {
        'content-type': 'application/json', authorization: `Bearer ${tokens.access_token}`,
      },
      body: body && JSON.stringify(body),
    });
    const text = await reply.text();
    assert.ok(reply.ok, `${method} ${path}: ${reply.status} ${text}`);
    return text && JSON.parse(text);
  };
}
