// Three nodes read from two standbys that are 200 ms behind: no read shows less than it must, none fails
// while standbys die, and what is revoked on the primary is revoked everywhere.
// Argument: how many pairs of a write and a read.

import assert from "node:assert/strict";

import { eventually, Node, place, psql, sleep } from "../cluster/processes.mjs";
import { Pairs, post, Results, signIn } from "./pairs.mjs";
import { ALL, LIMIT, revoke } from "./revoked.mjs";
import { Standby } from "./standby.mjs";

const count = Number(process.argv[2] ?? 10_000);
const [, , , only] = process.argv;
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
// Writers at each node.
const WRITERS = 16;
// How far the standbys are behind, in milliseconds.
const DELAY = 200;
const demo = await place();
// A checkpoint removes no WAL that a backup, or a standby that is stopped, still needs.
await psql(demo, "ALTER SYSTEM SET wal_keep_size = '1GB'; SELECT pg_reload_conf()", true);
const standbys = await Promise.all(["east", "west"].map((name) => Standby.create(demo, name, `${DELAY}ms`)));
const settings = { TIDEGATE_REPLICA_URLS: standbys.map((it) => it.url).join(",") };
const nodes = [];
for (const name of ["one", "two", "three"]) nodes.push(await Node.start(demo, name, settings));
const owner = await signIn(nodes[0]);
const writers = [];

async function metric(node, name, standby) {
  return node.metric(`tidegate_replica_${name}{replica="${standby.address}"}`);
}

// The sum of a metric over nodes and standbys.
async function total(name, of = standbys) {
  let sum = 0;
  for (const node of nodes) for (const standby of of) sum += await metric(node, name, standby);
  return sum;
}

async function used(...expected) {
  await eventually(`used: ${expected.map((it) => it.name)}`, async () => {
    const others = standbys.filter((it) => !expected.includes(it));
    const all = (await total("used", expected)) === expected.length * nodes.length;
    return all && (await total("used", others)) === 0;
  });
}

// Runs pairs until `enough` says so.
async function pairs(enough) {
  const results = new Results();
  for (const writer of writers) writer.results = results;
  await Promise.all(writers.map((it) => it.run(() => enough(results))));
  assert.deepEqual(results.failed, [], "a read failed");
  assert.deepEqual(results.stale, [], "a read was stale");
  return results;
}

// Runs pairs while `during` runs. `more` waits for some more of them.
async function underLoad(during) {
  let ended = false;
  let results;
  const running = pairs((now) => {
    results = now;
    return ended;
  });
  const more = async () => {
    const until = (results?.pairs ?? 0) + 300;
    await eventually("pairs go on", () => results?.pairs >= until);
  };
  await Promise.all([
    running,
    (async () => {
      await more();
      await during(more).finally(() => (ended = true));
    })(),
  ]);
  console.log(`  ${results.pairs} pairs, the longest read took ${Math.round(results.longest)} ms`);
}

// Takes rights away, right after `before`.
async function check(names, before) {
  const times = await revoke({ demo, nodes, owner }, names, before);
  console.log(`  ms until no read showed the row: ${JSON.stringify(times)}`);
  for (const [name, ms] of Object.entries(times)) assert(ms <= LIMIT, `${name}: ${ms} ms`);
}

const [east, west] = standbys;
const steps = {
  async [`${count} pairs of a write and a read`]() {
    const answered = await total("reads_total");
    const began = Date.now();
    const results = await pairs((now) => now.pairs >= count);
    const { free, counts, longest } = results;
    const rate = Math.round((results.pairs * 1000) / (Date.now() - began));
    const there = (await total("reads_total")) - answered;
    console.log(`  ${JSON.stringify(counts)}, ${rate} pairs a second; the standbys answered ${there} reads`);
    console.log(`  ${free.older} of ${free.all} other reads were older; the longest took ${Math.round(longest)} ms`);
    assert(free.older > free.all / 10, "the standbys are not behind");
    assert(there > count / 10, "the standbys answer few reads");
    for (const standby of standbys) assert((await total("reads_total", [standby])) > 0, standby.name);
  },

  async "a read that no standby can answer yet does not wait for one"() {
    const [writer] = writers;
    writer.results = new Results();
    const all = [];
    for (let round = 0; round < 100; round += 1) all.push(await writer.readAtOnce());
    assert.deepEqual(writer.results.stale, [], "a read was stale");
    for (const [index, kind] of ["position", "session"].entries()) {
      const times = all.map((it) => it[index]).sort((one, other) => one - other);
      const median = times[times.length >> 1];
      console.log(`  by ${kind}: ${median.toFixed(1)} ms (median), at most ${times.at(-1).toFixed(1)} ms`);
      assert(median < DELAY / 2, `${kind}: a read took ${median} ms`);
    }
  },

  async "a standby that is killed fails no read"() {
    await underLoad(async (more) => {
      await east.stop("SIGKILL");
      await used(west);
      await more();
      await east.start();
      await used(east, west);
      await more();
    });
  },

  async "a standby that is frozen fails no read"() {
    await underLoad(async (more) => {
      west.signal("SIGSTOP");
      await used(east);
      await more();
      west.signal("SIGCONT");
      await used(east, west);
      await more();
    });
  },

  async "both standbys that restart fail no read"() {
    await underLoad(async (more) => {
      for (const standby of standbys) await standby.stop("SIGINT");
      await used();
      await more();
      for (const standby of standbys) await standby.start();
      await used(east, west);
      await more();
    });
  },

  async "a standby that is promoted by mistake is not used"() {
    await underLoad(async (more) => {
      assert.deepEqual(await east.sql("SELECT pg_promote()"), ["t"]);
      await used(west);
      await more();
      await east.stop("SIGINT");
      await east.copy();
      await east.start();
      await used(east, west);
      await more();
    });
  },

  async "what is revoked holds everywhere within a second"() {
    await check(ALL);
  },

  async "what is revoked holds within a second while the standbys stand still"() {
    const all = (sql) => Promise.all(standbys.map((it) => it.sql(sql)));
    // PostgreSQL tells the nodes of everything but memberships.
    for (const names of [ALL, ["membership"], ["membership"], ["membership"]]) {
      await check(names, () => all("SELECT pg_wal_replay_pause()"));
      await all("SELECT pg_wal_replay_resume()");
      await used(east, west);
    }
  },
};

async function prepare() {
  const rows = `INSERT INTO pairs SELECT id, 0 FROM generate_series(1, ${nodes.length * WRITERS}) id`;
  await psql(demo, `CREATE TABLE pairs (id int PRIMARY KEY, number int); ${rows}; ALTER TABLE pairs OWNER TO demo`);
  for (const [method, q] of Object.entries({
    setNumber: "UPDATE pairs SET number = :number WHERE id = :id",
    numberOf: "SELECT number FROM pairs WHERE id = :id",
  })) {
    await post(nodes[0], "/api/v4/methods", owner, { method, q });
  }
  await used(east, west);
  const reader = await signIn(nodes[0]);
  for (let id = 1; id <= nodes.length * WRITERS; id += 1) {
    const from = id % nodes.length;
    const turned = [...nodes.slice(from), ...nodes.slice(0, from)];
    writers.push(await new Pairs(turned, id, reader).open());
  }
  // The standbys have all of this.
  await sleep(500);
}

await prepare();
for (const [name, step] of Object.entries(steps)) {
  if (only && !name.includes(only)) continue;
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`, error);
    for (const { name, log } of [...nodes, ...standbys]) console.log(`-- ${name}\n${log.slice(-12).join("\n")}`);
    process.exit(1);
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}
for (const it of writers) it.end();
for (const node of nodes) await node.stop("SIGTERM");
for (const standby of standbys) await standby.stop("SIGINT");
await demo.stop();
process.exit(0);
