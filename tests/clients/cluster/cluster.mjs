// One node reads the changes of a database for all, over NATS: what subscribers see while processes
// are killed.

import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";

import { ancient, Eavesdropper } from "./eavesdropper.mjs";
import { eventually, freePort, Nats, Node, place, psql, sleep } from "./processes.mjs";
import { Proxy } from "./proxy.mjs";
import { signIn, Subscriber, token } from "./subscriber.mjs";

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const SECRET = "row-text-that-nobody-may-read";
const demo = await place();
const nats = await Nats.create(demo.folder);
const settings = { TIDEGATE_BUS_URL: nats.url };
let nodes = [];
let written = 0;

async function startNode(name, more = {}) {
  const node = await Node.start(demo, name, { ...settings, ...more });
  nodes.push(node);
  return node;
}

// Each subscriber goes back to its own node. One that is just connecting may still choose another.
async function goHome() {
  for (const it of subscribers) {
    await eventually("it is at home", () => {
      const isHome = it.at() === it.own;
      if (!isHome && it.isReady) it.socket.close();
      return isHome && it.isReady;
    });
  }
}

// Writes rows, each in a transaction of its own unless `together`. Tries again while PostgreSQL is
// down.
async function write(count = 1, together = false) {
  const [first, last] = [written + 1, written + count];
  const insert = (from, to) =>
    `INSERT INTO ticks SELECT id, '${SECRET}' FROM generate_series(${from}, ${to}) id ON CONFLICT DO NOTHING`;
  const each = Array.from({ length: count }, (_, index) => insert(first + index, first + index));
  const sql = together ? insert(first, last) : each.join("; ");
  await eventually("the rows are written", () => psql(demo, sql, !together).then(() => true, () => false));
  written = last;
}

// Writes rows, each in a transaction of its own, within a few seconds.
async function writeFast(count) {
  const loop = `DO $$BEGIN FOR id IN ${written + 1}..${written + count} LOOP
    INSERT INTO ticks VALUES (id, '${SECRET}');\nCOMMIT;\nEND LOOP;\nEND$$`;
  await psql(demo, `SET synchronous_commit = off; ${loop}`, true);
  written += count;
}

// Writes small transactions while `during` runs.
async function underLoad(during) {
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
async function complete(subscribers, ms = 30_000) {
  for (const it of subscribers) {
    const state = () => `${it.name}: ${it.ids.length} of ${written}, last ${it.ids.at(-1)}`;
    await eventually("all events", () => it.ids.length >= written, ms).catch((error) => {
      throw new Error(`${error.message}: ${state()} ${it.errors}`);
    });
    const expected = Array.from({ length: written }, (_, index) => index + 1);
    assert.deepEqual(it.ids, expected, state());
    assert.deepEqual(it.resyncs, [], it.name);
  }
}

async function reader() {
  return eventually("a node reads", async () => {
    for (const node of nodes) if (await node.reads().catch(() => false)) return node;
  });
}

async function busWorks() {
  await eventually("the bus works", async () => {
    const all = await Promise.all(nodes.map((it) => it.readiness()));
    return all.every(({ checks }) => checks?.bus === "ok");
  });
}

// Proxies between one node and PostgreSQL and the NATS servers, and this node.
let behind;

// Starts the last node again behind proxies.
async function startBehindProxies() {
  const url = new URL(demo.adminUrl);
  const postgresql = await Proxy.start(Number(url.port));
  url.port = postgresql.port;
  const servers = await Promise.all(nats.servers.map((it) => Proxy.start(it.port)));
  const old = nodes.pop();
  await old.stop("SIGTERM");
  const node = await startNode(old.name, {
    TIDEGATE_ADMIN_URL: url.href,
    TIDEGATE_BUS_URL: servers.map((it) => nats.login(it.port)).join(","),
    TIDEGATE_STATEMENT_TIMEOUT: "5s",
  });
  for (const it of subscribers) if (it.own === old) it.own = node;
  await goHome();
  return { node, postgresql, servers };
}

// The node behind proxies becomes the reader, because no other node does anything.
async function readBehindProxies() {
  behind ??= await startBehindProxies();
  const others = nodes.filter((it) => it !== behind.node);
  for (const it of others) it.signal("SIGSTOP");
  await eventually("the node behind proxies reads", () => behind.node.reads());
  for (const it of others) it.signal("SIGCONT");
  await write(20);
  await complete(subscribers);
  await oneStream();
  return behind;
}

// Sends a request to a node. Returns the status, the error and the time that it took.
async function ask(node, path, body) {
  const began = Date.now();
  const answer = await fetch(`${node.url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${bearer}` },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const mayRetry = answer.headers.has("retry-after");
  return { path, status: answer.status, mayRetry, ms: Date.now() - began, text };
}

const streams = () => psql(demo, "SELECT pid FROM pg_stat_replication");
const slots = () => psql(demo, "SELECT slot_name, active FROM pg_replication_slots");

// Restarts PostgreSQL, which the demo starts again. Returns how long it was down.
async function restartPostgresql(signal) {
  const [folder] = await psql(demo, "SHOW data_directory");
  const [pid] = (await readFile(`${folder}/postmaster.pid`, "utf8")).split("\n");
  const began = Date.now();
  process.kill(Number(pid), signal);
  await eventually("PostgreSQL ends", () => {
    try {
      return !process.kill(Number(pid), 0);
    } catch {
      return true;
    }
  });
  await eventually("PostgreSQL is back", () => psql(demo, "SELECT 1").then(() => true, () => false));
  return Date.now() - began;
}

async function oneStream() {
  await eventually("one stream and one slot", async () => {
    return (await streams()).length === 1 && (await slots()).length === 1;
  });
}

const steps = {
  async "three nodes have one stream and one slot"() {
    await oneStream();
    await busWorks();
    const status = async (more) => {
      const { stdout } = await demo.command(["cluster", "status", "--json"], more);
      return JSON.parse(stdout);
    };
    const { readers, bus } = await eventually("three servers have all messages", async () => {
      const now = await status(settings);
      return now.bus.copies === 3 && now;
    });
    assert.equal(readers.length, 1);
    assert.equal(readers[0].database, "demo");
    assert.deepEqual([bus.expected_copies, bus.problem], [3, null]);
    assert.equal((await status({})).bus, null);
    const nowhere = await status({ TIDEGATE_BUS_URL: `nats://127.0.0.1:${await freePort()}` });
    assert.match(nowhere.bus.problem, /no NATS server of bus_url can be reached/);
  },

  async "events come to all nodes, once and in order"() {
    await underLoad(() => sleep(2000));
    await complete(subscribers);
    const own = await reader();
    const first = subscribers.find((it) => it.at() === own);
    for (const it of subscribers.filter((it) => it !== first)) {
      const late = it.times.map((time, index) => time - first.times[index]).sort((a, b) => a - b);
      const at = (part) => late[Math.floor(late.length * part)].toFixed(1);
      console.log(`  over the bus ${at(0.5)} ms later, at most ${at(0.99)} ms for 99 % of ${late.length}`);
    }
    await write(5000, true);
    await complete(subscribers);
  },

  async "a node that is killed while it reads is replaced"() {
    const victim = await reader();
    const silence = await underLoad(async () => {
      await sleep(500);
      nodes = nodes.filter((it) => it !== victim);
      const killed = Date.now();
      await victim.stop("SIGKILL");
      const others = subscribers.filter((it) => it.own !== victim);
      await eventually("the next event", () => others.every((it) => it.last > killed + 100));
      return Date.now() - killed;
    });
    console.log(`  the next event came ${silence} ms after the kill`);
    await complete(subscribers);
    const again = await startNode(victim.name);
    for (const it of subscribers) if (it.own === victim) it.own = again;
    await goHome();
    await oneStream();
  },

  async "a reader that is frozen is replaced, and wakes up without harm"() {
    const victim = await reader();
    const silence = await underLoad(async () => {
      victim.signal("SIGSTOP");
      const frozen = Date.now();
      const others = subscribers.filter((it) => it.at() !== victim);
      assert(others.length > 0);
      await eventually("the next event", () => others.every((it) => it.last > frozen + 300));
      const took = Date.now() - frozen;
      await sleep(1000);
      victim.signal("SIGCONT");
      return took;
    });
    console.log(`  the next event came ${silence} ms after the freeze`);
    await complete(subscribers);
    await oneStream();
  },

  async "one of three NATS servers may die"() {
    for (const server of nats.servers) {
      await underLoad(async () => {
        await server.stop();
        await sleep(1500);
        await server.start();
      });
      await complete(subscribers);
    }
    await busWorks();
  },

  async "NATS that is frozen stops nothing"() {
    await underLoad(async () => {
      await sleep(300);
      nats.signal("SIGSTOP");
      const frozen = Date.now();
      await eventually("events go on", () => subscribers.every((it) => it.last > frozen + 300));
      console.log(`  events went on ${Date.now() - frozen} ms after the freeze`);
      await sleep(1000);
      nats.signal("SIGCONT");
    });
    await complete(subscribers);
    await oneStream();
  },

  async "NATS that is killed stops nothing"() {
    await underLoad(async () => {
      await nats.stop();
      await eventually("readiness is degraded", async () => {
        const all = await Promise.all(nodes.map((it) => it.readiness()));
        return all.every(({ status, checks }) => status === "ready" && checks.bus === "degraded");
      });
      const now = written;
      await eventually("events go on", () => subscribers.every((it) => it.ids.length > now));
      await eventually("each node reads", async () => (await streams()).length === nodes.length);
      await nats.start();
      await oneStream();
    });
    await complete(subscribers);
  },

  async "a store that is deleted makes no gap"() {
    for (let round = 0; round < 2; round += 1) {
      await underLoad(async () => {
        await sleep(300);
        await nats.stop();
        await nats.forget();
        await nats.start();
        await sleep(3000);
      });
      await complete(subscribers);
    }
    await oneStream();
    await busWorks();
  },

  async "JetStream without room is said, and events come live"() {
    const problem = "JetStream has no room";
    await underLoad(async () => {
      await nats.startAgain("64MB");
      await eventually("readiness is degraded", async () => {
        const all = await Promise.all(nodes.map((it) => it.readiness()));
        return all.every(({ status, checks }) => status === "ready" && checks.bus === "degraded");
      });
      await eventually("the problem is said", () =>
        nodes.every(({ log }) => log.some((line) => line.includes(problem))),
      );
      await oneStream();
    });
    await complete(subscribers);
    await underLoad(() => nats.startAgain("2GB"));
    await complete(subscribers);
    await busWorks();
    await oneStream();
  },

  async "credentials of NATS show no row and make no event"() {
    const spy = await Eavesdropper.listen(nats.port);
    await underLoad(() => sleep(1500));
    await complete(subscribers);
    assert(spy.heard.some(({ subject }) => subject.endsWith(".e")), "nothing was heard");
    for (const { subject, payload } of spy.heard) {
      assert(!payload.includes(SECRET.slice(4, 12)) && !subject.includes("demo"), subject);
    }
    const events = spy.heard.filter(({ subject }) => subject.startsWith("tidegate."));
    for (const { subject, payload } of events) {
      spy.publish(subject, payload);
      const forged = Buffer.from(payload);
      forged[forged.length >> 1] ^= 1;
      spy.publish(subject, forged);
      spy.publish(subject.replace(/\.[a-z]$/, ".e"), Buffer.from("B"));
    }
    await underLoad(() => sleep(1000));
    await complete(subscribers);
    for (const node of nodes) assert((await node.metric("tidegate_bus_refused_total")) > 0);
    spy.close();
  },

  async "PostgreSQL that restarts waits for no reader"() {
    await write(20);
    const took = await restartPostgresql("SIGINT");
    console.log(`  PostgreSQL was down for ${took} ms`);
    assert(took < 8000);
    await write(20);
    await complete(subscribers);
    await oneStream();
  },

  // Every node opens its stream again, and captures the table again.
  async "PostgreSQL that restarts while NATS is away makes no gap"() {
    await nats.stop();
    await eventually("each node reads", async () => (await streams()).length === nodes.length);
    await restartPostgresql("SIGQUIT");
    await write(20);
    await eventually("each node reads", async () => (await streams()).length === nodes.length);
    await complete(subscribers);
    await nats.start();
    await oneStream();
    await write(20);
    await complete(subscribers);
  },

  // The first reader begins at the slot, which keeps what was written before.
  async "a subscriber that comes after all nodes were away hears nothing old"() {
    await write(20);
    await complete(subscribers);
    const before = nodes;
    nodes = [];
    for (const node of before) await node.stop("SIGTERM");
    await writeFast(20_000);
    const back = [];
    for (const { name } of before) back.push(await Node.start(demo, name, settings));
    const late = back.map((node) => new Subscriber(`late at ${node.name}`, () => back, node, bearer));
    await eventually("they subscribe", () => late.every((it) => it.isReady));
    const old = written;
    for (const [index, it] of subscribers.entries()) it.own = back[index];
    nodes = back;
    await write(20);
    await goHome();
    await complete(subscribers);
    for (const it of late) {
      await eventually("the new events", () => it.ids.at(-1) === written);
      assert.deepEqual([it.ids.length, it.ids[0]], [20, old + 1], it.name);
      await it.end();
    }
  },

  async "rows that are too large for a message come too"() {
    for (let round = 0; round < 2; round += 1) {
      written += 1;
      await psql(demo, `INSERT INTO ticks VALUES (${written}, repeat('x', 1500000))`);
      await write(5);
    }
    await complete(subscribers);
    await oneStream();
  },

  async "NATS that is slow for the reader delays events"() {
    const { node, servers } = await readBehindProxies();
    const others = subscribers.filter((it) => it.at() !== node);
    const own = subscribers.find((it) => it.at() === node);
    const first = own.ids.length;
    for (const it of servers) it.delay = 100;
    await underLoad(() => sleep(3000));
    await complete(subscribers);
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
      await eventually("events go on", () => subscribers.every((it) => it.last > silent + 300));
      const took = Date.now() - silent;
      console.log(`  events went on ${took} ms after the reader lost NATS`);
      assert(took < 5000);
      await sleep(1000);
      for (const it of servers) it.resume();
    });
    await complete(subscribers);
    await busWorks();
    await oneStream();
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
      const others = subscribers.filter((it) => it.at() !== node);
      await eventually("events go on", () => others.every((it) => it.last > silent + 300));
      const took = Date.now() - silent;
      console.log(`  events went on ${took} ms after the reader lost PostgreSQL`);
      assert(took < 20_000);
      const there = await ask(nodes.find((it) => it !== node), "/api/v4/sql", select);
      assert.equal(there.status, 200, there.text);
      // Statements on open connections end at their deadline. Later requests need new connections.
      const ended = (it) => it.status === 503 || /"(STATEMENT_)?TIMEOUT"/.test(it.text);
      for (const it of await asked) assert(ended(it) && it.ms < 20_000, JSON.stringify(it));
      for (const it of await requests()) assert(it.mayRetry && it.ms < 20_000, JSON.stringify(it));
      const { status, checks } = await node.readiness();
      assert.deepEqual([status, checks.database], ["unavailable", "unavailable"]);
      postgresql.resume();
      await eventually("it is ready again", async () => (await node.readiness()).status === "ready");
    });
    await complete(subscribers);
    await oneStream();
    for (const it of await requests()) assert(it.status < 300, it.text);
  },

  async "a bus that cannot be used is said, and the node works without"() {
    const old = createServer(ancient).listen(0, "127.0.0.1");
    await once(old, "listening");
    const cases = [
      [`nats://127.0.0.1:${await freePort()}`, "no NATS server of bus_url can be reached"],
      [`nats://tidegate:wrong-word@127.0.0.1:${nats.port}`, "refuses the user name or the password"],
      [`nats://127.0.0.1:${old.address().port}`, "the bus needs 2.9.0 or later"],
    ];
    for (const [url, message] of cases) {
      const node = await Node.start(demo, message, { TIDEGATE_BUS_URL: url });
      await eventually(message, () => node.log.some((line) => line.includes(message)));
      assert(!node.log.some((line) => line.includes("wrong-word")));
      const { status, checks } = await node.readiness();
      assert.deepEqual([status, checks.bus], ["ready", "degraded"]);
      const alone = new Subscriber(message, () => [node], node, bearer);
      await eventually("it subscribes", () => alone.isReady);
      await write();
      await eventually("its event", () => alone.ids.at(-1) === written);
      await alone.end();
      await node.stop("SIGTERM");
    }
    old.close();
    await complete(subscribers);
  },
};

await psql(demo, "CREATE TABLE ticks (id bigint PRIMARY KEY, note text); ALTER TABLE ticks OWNER TO demo");
for (const name of ["one", "two", "three"]) await startNode(name);
const bearer = await token(nodes[0].url);
const faults = {
  async kill() {
    const victim = nodes[Math.floor(Math.random() * nodes.length)];
    nodes = nodes.filter((it) => it !== victim);
    await victim.stop("SIGKILL");
    const again = await startNode(victim.name);
    for (const it of subscribers) if (it.own === victim) it.own = again;
  },
  async freeze() {
    const victim = nodes[Math.floor(Math.random() * nodes.length)];
    victim.signal("SIGSTOP");
    await sleep(Math.random() * 6000);
    victim.signal("SIGCONT");
  },
  async nats() {
    await nats.stop();
    await sleep(Math.random() * 4000);
    await nats.start();
  },
  async natsServer() {
    const victim = nats.servers[Math.floor(Math.random() * nats.servers.length)];
    await victim.stop();
    await sleep(Math.random() * 4000);
    await victim.start();
  },
  async natsFreeze() {
    nats.signal("SIGSTOP");
    await sleep(Math.random() * 6000);
    nats.signal("SIGCONT");
  },
  async store() {
    await nats.stop();
    await nats.forget();
    await nats.start();
  },
  async postgresql() {
    await restartPostgresql(Math.random() < 0.5 ? "SIGINT" : "SIGQUIT");
  },
};

// Random faults under load, with the number of them as the argument of `soak`.
async function soak(count) {
  const chosen = process.env.CLUSTER_FAULTS?.split(",");
  const names = Object.keys(faults).filter((it) => !chosen || chosen.includes(it));
  const done = {};
  for (let number = 0; number < count; number += 1) {
    const name = names[Math.floor(Math.random() * names.length)];
    done[name] = (done[name] ?? 0) + 1;
    await underLoad(async () => {
      await sleep(Math.random() * 1000);
      await faults[name]();
      await sleep(Math.random() * 2000);
    });
    const began = Date.now();
    await complete(subscribers, 60_000).catch((error) => {
      error.message = `after ${name}, fault ${number + 1}: ${error.message}`;
      throw error;
    });
    console.log(`${number + 1} ${name}: complete after ${Date.now() - began} ms`);
    await goHome();
  }
  console.log(JSON.stringify(done));
}

// All nodes capture the table at the same time, because each waits for this transaction.
const open = psql(demo, "SELECT pg_current_xact_id(), pg_sleep(2)");
const subscribers = nodes.map(
  (node) => new Subscriber(`subscriber of ${node.name}`, () => nodes, node, bearer),
);
await eventually("all subscribe", () => subscribers.every((it) => it.isReady), 15_000).catch((error) => {
  fail(error);
});

await open;

function fail(error) {
  for (const node of nodes) console.log(`-- ${node.name}\n${node.log.slice(-12).join("\n")}`);
  for (const it of subscribers) console.log(`-- ${it.name}: ${it.errors.slice(-3)}`);
  console.log(error);
  process.exit(1);
}

const [, , only, count] = process.argv;
if (only === "soak") steps[`soak of ${count} faults`] = () => soak(Number(count));
for (const [name, step] of Object.entries(steps)) {
  if (only && !name.includes(only)) continue;
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`);
    fail(error);
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}
for (const it of subscribers) await it.end();
for (const node of nodes) await node.stop("SIGTERM");
await nats.stop("SIGTERM");
await demo.stop();
console.log(`${Object.keys(steps).length} steps, ${written} events`);
process.exit(0);
