// NATS servers that die, freeze, lose their store or do not fit, and credentials that are known.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";

import {
  busWorks,
  cluster,
  complete,
  demo,
  goHome,
  killAll,
  nats,
  oneStream,
  SECRET,
  settings,
  silence,
  streams,
  underLoad,
  write,
} from "./cluster.mjs";
import { ancient, Eavesdropper } from "./eavesdropper.mjs";
import { LONGEST } from "./faults.mjs";
import { eventually, freePort, NATS_SERVER, Node, psql, sleep } from "./processes.mjs";
import { Subscriber } from "./subscriber.mjs";

// Starts a server that belongs to no cluster.
function startAlone(port, ...options) {
  const args = ["--addr", "127.0.0.1", "--port", String(port), ...options];
  const server = spawn(NATS_SERVER, args, { stdio: "ignore" });
  process.on("exit", () => server.kill("SIGKILL"));
  return server;
}

// Returns when the slot begins after the commit of a cursor (a digit, the log, the commit, the index).
async function slotPasses(cursor) {
  const commit = BigInt(`0x${cursor.slice(9, 25)}`);
  const begin = "SELECT confirmed_flush_lsn - '0/0' :: pg_lsn FROM pg_replication_slots";
  await eventually("the slot begins after the cursor", async () => BigInt((await psql(demo, begin))[0]) > commit);
}

const awaySubscriber = () =>
  new Subscriber("a subscriber that was away", () => cluster.nodes, undefined, cluster.bearer);

// Kills all nodes, which have the last changes in memory, and calls `away` before they start again. Returns
// the ids and gaps that a subscriber with this cursor gets at one of them.
async function comeBack(cursor, away) {
  const back = awaySubscriber();
  back.cursor = cursor;
  await underLoad(async () => {
    await killAll(away);
    await eventually("it goes on", () => back.ids.length + back.resyncs.length > 0);
  });
  await complete();
  await eventually("it has the last row", () => back.ids.at(-1) === cluster.written);
  await back.end();
  return back;
}

export const natsSteps = {
  async "one of three NATS servers may die"() {
    for (const server of nats.servers) {
      const longest = await underLoad(async () => {
        const killed = performance.now();
        await server.stop();
        await sleep(1500);
        const longest = await silence(killed);
        await server.start();
        return longest;
      });
      console.log(`  at most ${longest} ms without an event`);
      assert(longest <= LONGEST.died);
      await complete();
    }
    await busWorks();
  },

  async "NATS that is frozen stops nothing"() {
    await underLoad(async () => {
      await sleep(300);
      nats.signal("SIGSTOP");
      const frozen = Date.now();
      await eventually("events go on", () => cluster.subscribers.every((it) => it.last > frozen + 300));
      const took = Date.now() - frozen;
      console.log(`  events went on ${took} ms after the freeze`);
      assert(took <= LONGEST.frozen);
      await sleep(1000);
      nats.signal("SIGCONT");
    });
    await complete();
    await oneStream();
  },

  async "NATS that is killed stops nothing"() {
    await underLoad(async () => {
      await nats.stop();
      await eventually("readiness is degraded", async () => {
        const all = await Promise.all(cluster.nodes.map((it) => it.readiness()));
        return all.every(({ status, checks }) => status === "ready" && checks.bus === "degraded");
      });
      const now = cluster.written;
      await eventually("events go on", () => cluster.subscribers.every((it) => it.ids.length > now));
      await eventually("each node reads", async () => (await streams()).length === cluster.nodes.length);
      await nats.start();
      await oneStream();
    });
    await complete();
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
      await complete();
    }
    await oneStream();
    await busWorks();
  },

  async "a cursor that PostgreSQL no longer has is complete from JetStream, and a gap without it"() {
    const early = awaySubscriber();
    await underLoad(async () => {
      await eventually("it has a cursor", () => early.cursor);
      await early.end();
      await slotPasses(early.cursor);
    });
    const next = early.ids.at(-1) + 1;
    const fromStore = await comeBack(early.cursor);
    assert.deepEqual(fromStore.resyncs, []);
    assert.deepEqual(fromStore.ids, Array.from(fromStore.ids, (_, index) => next + index));
    let fetched = 0;
    for (const node of cluster.nodes) fetched += await node.metric("tidegate_bus_from_store_total");
    assert(fetched > 0, "no node read from JetStream");
    const withoutStore = await comeBack(early.cursor, async () => {
      await nats.stop();
      await nats.forget();
      await nats.start();
    });
    assert.deepEqual(withoutStore.resyncs.map((it) => it.reason), ["expired"]);
    const [first] = withoutStore.ids;
    assert(first > next, `${first}`);
    assert.deepEqual(withoutStore.ids, Array.from(withoutStore.ids, (_, index) => first + index));
    await goHome();
    await busWorks();
    await oneStream();
  },

  async "JetStream without room is said, and events come live"() {
    const problem = "JetStream has no room";
    await underLoad(async () => {
      await nats.startAgain("64MB");
      await eventually("readiness is degraded", async () => {
        const all = await Promise.all(cluster.nodes.map((it) => it.readiness()));
        return all.every(({ status, checks }) => status === "ready" && checks.bus === "degraded");
      });
      await eventually("the problem is said", () =>
        cluster.nodes.every(({ log }) => log.some((line) => line.includes(problem))),
      );
      await oneStream();
    });
    await complete();
    await underLoad(() => nats.startAgain("2GB"));
    await complete();
    await busWorks();
    await oneStream();
  },

  async "nodes with different settings do not change the stream in turn"() {
    const spy = await Eavesdropper.listen(nats.port);
    const requests = (name) => spy.heard.filter(({ subject }) => subject.startsWith(`$JS.API.STREAM.${name}.`));
    const sizes = () => requests("UPDATE").map(({ payload }) => JSON.parse(payload).max_bytes / 2 ** 20);
    // Each node sends a CREATE every 5 seconds.
    const checks = (count) => eventually("the nodes check the stream", () => requests("CREATE").length >= count, 60_000);
    const other = await Node.start(demo, "other", { ...settings, TIDEGATE_BUS_BYTES: "512MiB" });
    await eventually("the larger size is back", () => sizes().includes(1024));
    assert.equal(sizes()[0], 512);
    spy.heard = [];
    // Several nodes may have raised the size at once.
    await checks(4);
    spy.heard = [];
    await checks(12);
    assert.deepEqual(sizes(), []);
    await other.stop("SIGTERM");
    spy.close();
  },

  async "credentials of NATS show no row and make no event"() {
    const spy = await Eavesdropper.listen(nats.port);
    await underLoad(() => sleep(1500));
    await complete();
    const count = (kind) => spy.heard.filter(({ subject }) => subject.endsWith(kind)).length;
    const [live, kept] = [count(".p"), count(".e")];
    // JetStream gets the changes of 200 ms in one message.
    assert(kept > 0 && kept * 2 < live, `${live} live messages and ${kept} kept ones`);
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
    await complete();
    for (const node of cluster.nodes) assert((await node.metric("tidegate_bus_refused_total")) > 0);
    spy.close();
  },

  async "a bus that cannot be used is said, and the node works without"() {
    const old = createServer(ancient).listen(0, "127.0.0.1");
    await once(old, "listening");
    const [plain, single] = [await freePort(), await freePort()];
    const others = [
      startAlone(plain),
      startAlone(single, "--jetstream", "--store_dir", join(demo.folder, "single")),
    ];
    const cases = [
      [`nats://127.0.0.1:${plain}`, "offers no JetStream to this login"],
      [`nats://127.0.0.1:${single},nats://127.0.0.1:${single}`, "JetStream cannot keep 2 copies"],
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
      const alone = new Subscriber(message, () => [node], node, cluster.bearer);
      await eventually("it subscribes", () => alone.isReady);
      await write();
      await eventually("its event", () => alone.ids.at(-1) === cluster.written);
      await alone.end();
      await node.stop("SIGTERM");
    }
    old.close();
    for (const it of others) it.kill();
    await complete();
  },
};
