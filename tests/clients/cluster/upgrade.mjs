// Nodes behind HAProxy: who serves a person, and what clients see of an upgrade, node after node.

import assert from "node:assert/strict";

import WebSocket from "ws";

import { nodeOf, Sleeper, Writer } from "./caller.mjs";
import { cluster, complete, demo, goHome, oneStream, settings, underLoad } from "./cluster.mjs";
import { Haproxy } from "./haproxy.mjs";
import { eventually, freePort, Node, psql, sleep } from "./processes.mjs";
import { Subscriber, token } from "./subscriber.mjs";

const USERS = ["ann", "bea", "cleo", "dora", "emma", "fay", "gina", "hope", "ida"];
const SOCKETS = 30;
// HAProxy notices within the first half of this time that a node will stop. An empty UPGRADE_DELAY
// shows what happens without: requests fail.
const DELAY = process.env.UPGRADE_DELAY ?? "5s";

let haproxy;
const bearers = {};

// Starts the nodes again with addresses that they keep, and HAProxy in front of them, once.
async function startBehind() {
  if (haproxy) return;
  for (const [index, old] of cluster.nodes.entries()) {
    await old.stop("SIGTERM");
    const own = {
      ...settings,
      TIDEGATE_LISTEN: `127.0.0.1:${await freePort()}`,
      TIDEGATE_TRUSTED_PROXIES: "127.0.0.1",
      ...(DELAY && { TIDEGATE_SHUTDOWN_DELAY: DELAY }),
    };
    replace(index, await Node.start(demo, old.name, own));
  }
  await goHome();
  haproxy = await Haproxy.start(demo.folder, cluster.nodes);
  await signUp();
}

// A new process in the place of one that ended.
function replace(index, node) {
  for (const it of cluster.subscribers) if (it.own === cluster.nodes[index]) it.own = node;
  cluster.nodes[index] = node;
}

async function signUp() {
  await psql(demo, "CREATE TABLE marks (id text PRIMARY KEY)");
  await psql(demo, "ALTER TABLE marks OWNER TO demo; GRANT ALL ON marks TO PUBLIC; GRANT ALL ON ticks TO PUBLIC");
  const owner = await token(haproxy.url);
  const answer = await fetch(`${haproxy.url}/api/v4/users`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${owner}` },
    body: JSON.stringify(USERS.map((name) => ({ name, password: "demo1234" }))),
  });
  assert.equal(answer.status, 201, await answer.text());
  for (const name of USERS) bearers[name] = await token(haproxy.url, name);
}

// The node that answers a request, or that opens a socket.
async function served(path, headers = {}) {
  const answer = await fetch(`${haproxy.url}${path}`, { headers });
  await answer.text();
  return nodeOf(answer.headers);
}

function opened(bearer) {
  return new Promise((done, failed) => {
    const socket = new WebSocket(`ws://127.0.0.1:${haproxy.port}/?token=${bearer}`);
    socket.on("upgrade", ({ headers }) => done(nodeOf(new Headers(headers))));
    socket.on("open", () => socket.close());
    socket.on("error", failed);
  });
}

// Stops each node as a service manager does, and starts it again, while `during` runs.
async function upgradeAll() {
  for (const [index, old] of cluster.nodes.entries()) {
    const began = Date.now();
    await old.stop("SIGTERM");
    const took = Date.now() - began;
    const again = await Node.start(demo, old.name, old.settings);
    replace(index, again);
    await eventually("HAProxy sends requests to it", () => haproxy.sendsTo(cluster.nodes.length));
    console.log(`  ${old.name} stopped in ${took} ms, and got requests after ${Date.now() - began} ms`);
    await sleep(500);
  }
}

function checkRequests(callers) {
  const failures = callers.flatMap((it) => it.failures.map((text) => `${it.name}: ${text}`));
  const answers = callers.reduce((sum, it) => sum + it.answers, 0);
  console.log(`  ${answers} requests, ${failures.length} failed`);
  assert.deepEqual(failures.slice(0, 5), []);
  assert(answers > 500, `only ${answers} requests`);
}

async function checkRows(writers) {
  const rows = new Set(await psql(demo, "SELECT id FROM marks"));
  const confirmed = writers.flatMap((it) => it.confirmed);
  assert.deepEqual(confirmed.filter((id) => !rows.has(id)), []);
  assert.equal(rows.size, confirmed.length);
}

// The events come once and in order, and a socket ended for nothing but the stop of its node.
function checkSockets(sockets) {
  const codes = {};
  for (const it of sockets) {
    for (const code of it.codes) codes[code] = (codes[code] ?? 0) + 1;
    const [first] = it.ids;
    assert.deepEqual(it.ids, Array.from(it.ids, (_, index) => first + index), it.name);
    assert.equal(it.ids.at(-1), cluster.written, it.name);
    assert.deepEqual([it.resyncs, it.errors], [[], []], it.name);
  }
  const events = sockets.reduce((sum, it) => sum + it.ids.length, 0);
  console.log(`  ${events} events on ${sockets.length} sockets, closed with ${JSON.stringify(codes)}`);
  assert.deepEqual(Object.keys(codes), ["1001"]);
}

export const upgradeSteps = {
  async "HAProxy keeps a person on one node"() {
    await startBehind();
    const nodes = new Set();
    for (const name of USERS) {
      const node = await served("/api/v4/users", { Authorization: `Bearer ${bearers[name]}` });
      nodes.add(node);
      const other = await token(haproxy.url, name);
      assert.notEqual(other, bearers[name]);
      assert.equal(await served("/api/v4/users", { Authorization: `Bearer ${other}` }), node, name);
      assert.equal(await opened(bearers[name]), node, name);
      assert.equal(await opened(other), node, name);
    }
    assert.equal(nodes.size, cluster.nodes.length, "each node has people");
    const cookies = Array.from({ length: 20 }, (_, index) => `__Host-tidegate=${index}`);
    const pages = new Set();
    for (const cookie of cookies) {
      const node = await served("/ping", { Cookie: cookie });
      assert.equal(await served("/ping", { Cookie: cookie }), node);
      pages.add(node);
    }
    assert.equal(pages.size, cluster.nodes.length);
    assert.equal(await served("/ping"), await served("/ping"));
    const metrics = await fetch(`${haproxy.url}/metrics`);
    assert.equal(metrics.status, 404);
  },

  async "an upgrade of one node after the other fails no request and loses no event"() {
    await startBehind();
    const names = (index) => USERS[index % USERS.length];
    const writers = USERS.map((name) => new Writer(haproxy.url, name, bearers[name]));
    const sleepers = USERS.slice(0, 3).map((name) => new Sleeper(haproxy.url, name, bearers[name]));
    const sockets = Array.from({ length: SOCKETS }, (_, index) => {
      const name = names(index);
      return new Subscriber(`socket ${index} of ${name}`, () => [haproxy], undefined, bearers[name]);
    });
    await eventually("all sockets subscribe", () => sockets.every((it) => it.isReady));
    const callers = [...writers, ...sleepers];
    await underLoad(async () => {
      for (const it of callers) it.start();
      await sleep(1000);
      await upgradeAll();
      await sleep(1000);
      await Promise.all(callers.map((it) => it.end()));
    });
    checkRequests(callers);
    await checkRows(writers);
    await eventually("all events", () => sockets.every((it) => it.ids.at(-1) === cluster.written));
    checkSockets(sockets);
    for (const it of sockets) await it.end();
    await complete();
    await oneStream();
  },
};
