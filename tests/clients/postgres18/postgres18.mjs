// Failovers of PostgreSQL 18 with slots that standbys copy: what subscribers of two nodes see.
// Argument: how many.

import assert from "node:assert/strict";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { eventually, Nats, Node, sleep } from "../cluster/processes.mjs";
import { token } from "../cluster/subscriber.mjs";
import { Writer } from "../patroni/load.mjs";
import { Follower } from "./follower.mjs";
import { Servers } from "./servers.mjs";
import { createTenant } from "./tenant.mjs";

const count = Number(process.argv[2] ?? 5);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const folder = await mkdtemp(join(process.env.CLIENT_SCRATCH ?? tmpdir(), "postgres18-"));
await chmod(folder, 0o755);
// How long the standbys get nothing before the primary dies, in milliseconds.
const BEHIND = 500;
const slowest = { writes: 0, events: 0 };
let place, servers, nats, nodes, writer, lost, late;
let subscribers = [];

async function newToken() {
  const bearer = await token(nodes[0].url);
  for (const it of [writer, ...subscribers]) if (it) it.bearer = bearer;
  return bearer;
}

// Kills the primary while clients write and are subscribed. In every other round the standbys lack
// the last commits, which are lost. Of each node the second subscriber leaves before, and comes back
// with its cursor. One more leaves before a failover and comes back after the next, at a node that
// was not there before. Both times the slots begin after its cursor before the primary is killed, so
// the node has the missed events of both former primaries only from JetStream.
async function failover(round) {
  const start = Date.now();
  if (round % 2 === 0 && round + 1 < count) {
    await eventually("an event", () => late.cursor);
    late.leave();
  }
  if (servers.standbys.length === 0) await servers.rebuild();
  await servers.whole();
  if (late.isAway) await servers.passed(late.cursor);
  const copied = Date.now() - start;
  await newToken();
  const leaving = subscribers.filter((it) => it.leaves);
  for (const it of leaving) it.leave();
  if (round % 2 === 0) {
    await servers.leaveBehind();
    await sleep(BEHIND);
  }
  const began = Date.now();
  await servers.failOver();
  const { promoted } = await eventually("the promotion", () => servers.primary.promoted >= began && servers.primary);
  const written = await eventually("a write", () => writer.successAfter(promoted));
  for (const it of leaving) it.comeBack();
  const staying = subscribers.filter((it) => it !== late);
  await eventually("events", () => staying.every((it) => it.last > written));
  const events = Math.round(Math.max(...staying.map((it) => it.firstAfter(promoted))) - promoted);
  const writes = written - promoted;
  slowest.writes = Math.max(slowest.writes, writes);
  slowest.events = Math.max(slowest.events, events);
  await servers.follow();
  const before = lost ?? 0;
  await check();
  console.log(`  ${round + 1}: copied after ${copied} ms; ${servers.primary.name} was promoted after ${promoted - began} ms ` +
    `without ${lost - before} commits; then writes after ${writes} ms, events after ${events} ms`);
  if (late.isAway && round % 2 === 1) await comeLate();
}

async function comeLate() {
  const third = await Node.start(place, "three", settings());
  late.comeBack(third);
  await check();
  assert(await third.metric("tidegate_bus_from_store_total") > 0, "JetStream was not read");
  late.leave();
  late.comeBack(nodes[1]);
  await third.stop("SIGTERM");
}

function settings() {
  return { TIDEGATE_BUS_URL: nats.url };
}

// Each subscriber has the rows of the primary, each once and in order, and nothing else.
async function check() {
  assert.deepEqual(writer.wrong, []);
  const until = writer.confirmed.at(-1);
  const present = subscribers.filter((it) => !it.isAway);
  await eventually("the events", () => present.every((it) => it.ids.at(-1) >= until));
  const rows = (await servers.primary.sql("SELECT id FROM ticks ORDER BY id", "demo")).map(Number);
  const ids = new Set(rows);
  assert.equal(ids.size, rows.length, "a row is there twice");
  lost = writer.confirmed.filter((id) => id <= until && !ids.has(id)).length;
  for (const it of present) {
    assert.deepEqual(it.resyncs, [], it.name);
    const told = it.ids.filter((id) => id <= until);
    const phantoms = told.filter((id) => !ids.has(id));
    assert.deepEqual(phantoms, [], `${it.name}: events of no rows`);
    assert.deepEqual(told, rows.filter((id) => id <= until), it.name);
  }
}

const steps = {
  async "two nodes with a bus, on a primary and its standbys"() {
    servers = await Servers.start(folder);
    assert.match((await servers.primary.sql("SHOW server_version"))[0], /^18\./);
    place = { adminUrl: servers.adminUrl, key: join(folder, "master.key") };
    await createTenant(place, servers.primary);
    nats = await Nats.create(folder);
    nodes = [await Node.start(place, "one", settings()), await Node.start(place, "two", settings())];
    const bearer = await newToken();
    for (const node of nodes) {
      const [stays, leaves] = ["stays", "comes back"].map((what) => new Follower(`${node.name} ${what}`, node, bearer));
      leaves.leaves = true;
      subscribers.push(stays, leaves);
    }
    late = new Follower("comes back late", nodes[1], bearer);
    subscribers.push(late);
    await eventually("they subscribe", () => subscribers.every((it) => it.isReady));
    writer = new Writer(nodes[0], bearer).start();
  },

  async [`${count} failovers`]() {
    for (let round = 0; round < count; round += 1) await failover(round);
    assert(lost > 0, "no round lost a commit, so no event of one could come");
  },
};

for (const [name, step] of Object.entries(steps)) {
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`, error);
    for (const { name, log } of [...(servers?.all ?? []), ...(nodes ?? [])]) {
      console.log(`-- ${name}\n${log.slice(-60).join("\n")}`);
    }
    for (const it of subscribers) {
      console.log(`-- ${it.name}: ${it.ids.length}, ready ${it.isReady}, ${JSON.stringify(it.resyncs)} ${it.errors.slice(-3)}`);
    }
    process.exit(1);
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}
for (const it of [writer, ...subscribers]) await it.end();
for (const node of nodes) await node.stop("SIGTERM");
await nats.stop("SIGTERM");
await servers.stop();
await rm(folder, { recursive: true, force: true });
console.log(`writes ${JSON.stringify(writer.statuses)}, of which ${lost} commits were lost; longest ${writer.longest} ms`);
for (const it of subscribers) console.log(`${it.name}: ${it.ids.length} events`);
console.log(`longest after a promotion: ${slowest.writes} ms until a write, ${slowest.events} ms until an event`);
process.exit(0);
