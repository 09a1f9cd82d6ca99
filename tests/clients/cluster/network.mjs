// A network that delays what one node sends and gets, or swallows it.

import assert from "node:assert/strict";

import {
  busWorks,
  cluster,
  complete,
  demo,
  goHome,
  nats,
  oneStream,
  reader,
  silence,
  startNode,
  streams,
  underLoad,
  write,
} from "./cluster.mjs";
import { LONGEST } from "./faults.mjs";
import { eventually, psql, sleep } from "./processes.mjs";
import { Proxy } from "./proxy.mjs";
import { signIn } from "./subscriber.mjs";

// Proxies between one node and PostgreSQL and the NATS servers, and this node.
let behind;

// Starts the last node again behind proxies.
async function startBehindProxies() {
  const url = new URL(demo.adminUrl);
  const postgresql = await Proxy.start(Number(url.port));
  url.port = postgresql.port;
  const servers = await Promise.all(nats.servers.map((it) => Proxy.start(it.port)));
  const old = cluster.nodes.pop();
  await old.stop("SIGTERM");
  const node = await startNode(old.name, {
    TIDEGATE_ADMIN_URL: url.href,
    TIDEGATE_BUS_URL: servers.map((it) => nats.login(it.port)).join(","),
    TIDEGATE_STATEMENT_TIMEOUT: "5s",
  });
  for (const it of cluster.subscribers) if (it.own === old) it.own = node;
  await goHome();
  return { node, postgresql, servers };
}

// The node behind proxies becomes the reader, because no other node does anything.
async function readBehindProxies() {
  behind ??= await startBehindProxies();
  const others = cluster.nodes.filter((it) => it !== behind.node);
  for (const it of others) it.signal("SIGSTOP");
  await eventually("the node behind proxies reads", () => behind.node.reads());
  for (const it of others) it.signal("SIGCONT");
  await write(20);
  await complete();
  await oneStream();
  return behind;
}

// The node behind proxies follows another node, which reads.
async function followBehindProxies() {
  behind ??= await startBehindProxies();
  const { node } = behind;
  const others = cluster.nodes.filter((it) => it !== node);
  const readers = () => Promise.all(others.map((it) => it.reads()));
  if (await node.reads()) {
    node.signal("SIGSTOP");
    await eventually("another node reads", async () => (await readers()).includes(true));
    node.signal("SIGCONT");
  }
  await eventually("it follows", async () => !(await node.reads()) && (await readers()).includes(true));
  await goHome();
  await write(20);
  await complete();
  await busWorks();
  await oneStream();
  return behind;
}

// The process of PostgreSQL that serves the reader of all nodes.
async function readerProcess() {
  const [pid] = await psql(demo, "SELECT active_pid FROM pg_replication_slots WHERE NOT temporary");
  return pid;
}

// Sends a request to a node. Returns the status, the error and the time that it took.
async function ask(node, path, body) {
  const began = Date.now();
  const answer = await fetch(`${node.url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${cluster.bearer}` },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const mayRetry = answer.headers.has("retry-after");
  return { path, status: answer.status, mayRetry, ms: Date.now() - began, text };
}

export const networkSteps = {
  async "NATS that is slow for the reader delays events"() {
    const { node, servers } = await readBehindProxies();
    const others = cluster.subscribers.filter((it) => it.at() !== node);
    const own = cluster.subscribers.find((it) => it.at() === node);
    const first = own.ids.length;
    for (const it of servers) it.delay = 100;
    await underLoad(() => sleep(3000));
    await complete();
    for (const it of servers) it.delay = 0;
    for (const it of others) {
      const late = it.times.slice(first).map((time, index) => time - own.times[first + index]);
      late.sort((a, b) => a - b);
      const median = late[late.length >> 1];
      console.log(`  ${median.toFixed(1)} ms later (median of ${late.length}), at most ${late.at(-1).toFixed(1)}`);
      assert(median > 90 && median < 400, `${median}`);
    }
    assert.equal(await reader(), node);
    await oneStream();
    await busWorks();
  },

  async "NATS that the reader cannot reach stops nothing"() {
    const { servers } = await readBehindProxies();
    await underLoad(async () => {
      await sleep(500);
      for (const it of servers) it.silence();
      const silent = Date.now();
      await eventually("events go on", () => cluster.subscribers.every((it) => it.last > silent + 300));
      const took = Date.now() - silent;
      console.log(`  events went on ${took} ms after the reader lost NATS`);
      assert(took < 5000);
      await sleep(1000);
      for (const it of servers) it.resume();
    });
    await complete();
    await busWorks();
    await oneStream();
  },

  async "NATS that another node cannot reach makes that node read on its own"() {
    const { node, servers } = await followBehindProxies();
    const own = cluster.subscribers.filter((it) => it.at() === node);
    const others = cluster.subscribers.filter((it) => it.at() !== node);
    assert.deepEqual([own.length, others.length], [1, 2]);
    const opened = await node.metric("tidegate_bus_from_slot_total");
    const before = await readerProcess();
    await underLoad(async () => {
      await sleep(500);
      const silent = performance.now();
      for (const it of servers) it.silence();
      await eventually("the node is degraded", async () => {
        const { status, checks } = await node.readiness();
        return status === "ready" && checks.bus === "degraded";
      });
      await eventually("two nodes read", async () => (await streams()).length === 2);
      // After this time a node that hears NATS would end a silent reader.
      await sleep(Math.max(0, 4500 - (performance.now() - silent)));
      const [ownSilence, othersSilence] = [await silence(silent, own), await silence(silent, others)];
      console.log(`  at most ${ownSilence} ms without an event there, ${othersSilence} ms elsewhere`);
      assert(ownSilence <= LONGEST.frozen);
      assert(othersSilence <= LONGEST.died);
      assert((await node.metric("tidegate_bus_from_slot_total")) > opened);
      for (const it of servers) it.resume();
      await busWorks();
      await oneStream();
      const cut = performance.now();
      for (const it of servers) it.cut();
      const cutSilence = await silence(cut);
      console.log(`  at most ${cutSilence} ms without an event after its connections were cut`);
      assert(cutSilence <= LONGEST.died);
      await busWorks();
    });
    await complete();
    await oneStream();
    // The node could not hear the reader, and yet did not end it.
    assert.equal(await readerProcess(), before);
    assert(!(await node.reads()));
  },

  async "PostgreSQL that the reader cannot reach stops no other node"() {
    const { node, postgresql } = await readBehindProxies();
    const select = { q: "SELECT 1 AS n" };
    const query = { query: "{ getTicks(limit: 1) { id } }" };
    const requests = () =>
      Promise.all([
        ask(node, "/api/v4/sql", select),
        ask(node, "/api/graphql/schema/public", query),
        ask(node, "/api/v4/oauth", signIn),
      ]);
    await requests();
    await underLoad(async () => {
      await sleep(500);
      postgresql.silence();
      const silent = Date.now();
      const asked = requests();
      const others = cluster.subscribers.filter((it) => it.at() !== node);
      await eventually("events go on", () => others.every((it) => it.last > silent + 300));
      const took = Date.now() - silent;
      console.log(`  events went on ${took} ms after the reader lost PostgreSQL`);
      assert(took <= LONGEST.frozen);
      const takenOver = performance.now();
      const there = await ask(cluster.nodes.find((it) => it !== node), "/api/v4/sql", select);
      assert.equal(there.status, 200, there.text);
      // Statements on open connections end at their deadline. Later requests need new connections,
      // unless their role has another open one.
      const ended = (it) => it.status === 503 || /"(STATEMENT_)?TIMEOUT"/.test(it.text);
      for (const it of await asked) assert(ended(it) && it.ms < 20_000, JSON.stringify(it));
      for (const it of await requests()) {
        assert((it.mayRetry || ended(it)) && it.ms < 20_000, JSON.stringify(it));
      }
      const { status, checks } = await node.readiness();
      assert.deepEqual([status, checks.database], ["unavailable", "unavailable"]);
      const later = await silence(takenOver, others);
      console.log(`  at most ${later} ms without an event after that, until another node is the reader`);
      assert(later <= LONGEST.died);
      postgresql.resume();
      await eventually("it is ready again", async () => (await node.readiness()).status === "ready");
    });
    await complete();
    await oneStream();
    for (const it of await requests()) assert(it.status < 300, it.text);
  },
};
