// The cluster under test: three nodes with a bus, on the PostgreSQL of a demo, and one subscriber of
// each node.

import assert from "node:assert/strict";

import { eventually, Nats, Node, place, psql } from "./processes.mjs";
import { Subscriber, token } from "./subscriber.mjs";

export const SECRET = "row-text-that-nobody-may-read";
export const demo = await place();
export const nats = await Nats.create(demo.folder);
export const settings = { TIDEGATE_BUS_URL: nats.url };

// `written` is the number of rows, whose ids are 1, 2 and so on.
export const cluster = { nodes: [], subscribers: [], written: 0 };

// Starts the nodes, and their subscribers.
export async function start() {
  const table = "CREATE TABLE ticks (id bigint PRIMARY KEY, note text)";
  await psql(demo, `${table}; ALTER TABLE ticks OWNER TO demo`);
  for (const name of ["one", "two", "three"]) await startNode(name);
  cluster.bearer = await token(cluster.nodes[0].url);
  // All nodes capture the table at the same time, because each waits for this transaction.
  const open = psql(demo, "SELECT pg_current_xact_id(), pg_sleep(2)");
  cluster.subscribers = cluster.nodes.map(
    (node) => new Subscriber(`subscriber of ${node.name}`, () => cluster.nodes, node, cluster.bearer),
  );
  await eventually("all subscribe", () => cluster.subscribers.every((it) => it.isReady), 15_000);
  await open;
}

export async function stop() {
  for (const it of cluster.subscribers) await it.end();
  await Promise.all(cluster.nodes.map((it) => it.stop("SIGINT")));
  await nats.stop("SIGTERM");
  await demo.stop();
}

export async function startNode(name, more = {}) {
  const node = await Node.start(demo, name, { ...settings, ...more });
  cluster.nodes.push(node);
  return node;
}

// Kills all nodes, calls `away`, and starts nodes of the same names.
export async function killAll(away = async () => {}) {
  const before = cluster.nodes;
  cluster.nodes = [];
  await Promise.all(before.map((it) => it.stop("SIGKILL")));
  await away();
  for (const { name } of before) await startNode(name);
  for (const it of cluster.subscribers) it.own = cluster.nodes[before.indexOf(it.own)];
}

// Each subscriber goes back to its own node. One that is just connecting may still choose another.
export async function goHome() {
  for (const it of cluster.subscribers) {
    await eventually("it is at home", () => {
      const isHome = it.at() === it.own;
      if (!isHome && it.isReady) it.socket.close();
      return isHome && it.isReady;
    });
  }
}

// Writes rows, each in a transaction of its own unless `together`. Tries again while PostgreSQL is
// down.
export async function write(count = 1, together = false) {
  const [first, last] = [cluster.written + 1, cluster.written + count];
  const insert = (from, to) =>
    `INSERT INTO ticks SELECT id, '${SECRET}' FROM generate_series(${from}, ${to}) id ON CONFLICT DO NOTHING`;
  const each = Array.from({ length: count }, (_, index) => insert(first + index, first + index));
  const sql = together ? insert(first, last) : each.join("; ");
  await eventually("the rows are written", () => psql(demo, sql, !together).then(() => true, () => false));
  cluster.written = last;
}

// Writes rows, each in a transaction of its own, within a few seconds.
export async function writeFast(count) {
  const loop = `DO $$BEGIN FOR id IN ${cluster.written + 1}..${cluster.written + count} LOOP
    INSERT INTO ticks VALUES (id, '${SECRET}');\nCOMMIT;\nEND LOOP;\nEND$$`;
  await psql(demo, `SET synchronous_commit = off; ${loop}`, true);
  cluster.written += count;
}

// Writes small transactions while `during` runs.
export async function underLoad(during) {
  let running = true;
  const writer = (async () => {
    while (running) await write(20);
  })();
  const result = await during();
  running = false;
  await writer;
  return result;
}

// Everybody has been told of each row, once and in order.
export async function complete(ms = 30_000) {
  for (const it of cluster.subscribers) {
    const state = () => `${it.name}: ${it.ids.length} of ${cluster.written}, last ${it.ids.at(-1)}`;
    await eventually("all events", () => it.ids.length >= cluster.written, ms).catch((error) => {
      throw new Error(`${error.message}: ${state()} ${it.errors}`);
    });
    const expected = Array.from({ length: cluster.written }, (_, index) => index + 1);
    assert.deepEqual(it.ids, expected, state());
    assert.deepEqual(it.resyncs, [], it.name);
  }
}

// Waits for another event of each subscriber, so that a silence that lasts until now counts until it ends.
// Returns their longest time without an event since `since` (`performance.now()`), in milliseconds.
export async function silence(since, subscribers = cluster.subscribers) {
  const now = performance.now();
  await eventually("events go on", () => subscribers.every((it) => it.times.at(-1) > now), 60_000);
  return Math.round(Math.max(...subscribers.map((it) => it.longestSilence(since))));
}

export async function reader() {
  return eventually("a node reads", async () => {
    for (const node of cluster.nodes) if (await node.reads().catch(() => false)) return node;
  });
}

export async function busWorks() {
  await eventually("the bus works", async () => {
    const all = await Promise.all(cluster.nodes.map((it) => it.readiness()));
    return all.every(({ checks }) => checks?.bus === "ok");
  });
}

export const streams = () => psql(demo, "SELECT pid FROM pg_stat_replication");
const slots = () => psql(demo, "SELECT slot_name, active FROM pg_replication_slots");

export async function oneStream() {
  await eventually("one stream and one slot", async () => {
    return (await streams()).length === 1 && (await slots()).length === 1;
  });
}
