// Nodes that are killed, frozen and stopped, and what subscribers see of it.

import assert from "node:assert/strict";

import {
  busWorks,
  cluster,
  complete,
  demo,
  goHome,
  oneStream,
  reader,
  settings,
  startNode,
  underLoad,
  write,
  writeFast,
} from "./cluster.mjs";
import { LONGEST } from "./faults.mjs";
import { eventually, freePort, Node, psql, sleep } from "./processes.mjs";
import { Subscriber } from "./subscriber.mjs";

// The state of the cluster that an operator sees.
async function status(more = settings) {
  const { stdout } = await demo.command(["cluster", "status", "--json"], more);
  return JSON.parse(stdout);
}

// The bytes of WAL that the reader has not confirmed, and up to where it has confirmed.
async function unconfirmed() {
  const lag = "pg_wal_lsn_diff(pg_current_wal_flush_lsn(), confirmed_flush_lsn)";
  const [line] = await psql(demo, `SELECT ${lag}, confirmed_flush_lsn FROM pg_replication_slots`);
  const [bytes, confirmed] = line.split("|");
  return { bytes: Number(bytes), confirmed };
}

// Kills the node that reads. Returns how long subscribers of the others got no event, in milliseconds.
async function killReader() {
  const victim = await reader();
  const others = cluster.subscribers.filter((it) => it.own !== victim);
  const [{ node: id }] = (await status()).readers;
  const silence = await underLoad(async () => {
    await sleep(500);
    cluster.nodes = cluster.nodes.filter((it) => it !== victim);
    const [killed, at] = [Date.now(), performance.now()];
    await victim.stop("SIGKILL");
    await eventually("the next event", () => others.every((it) => it.last > killed + 100));
    return Math.round(Math.max(...others.map((it) => it.longestSilence(at))));
  });
  console.log(`  the next event came ${silence} ms after the kill`);
  await complete();
  await eventually(`the status shows another reader than ${id}, which is gone`, async () => {
    const { nodes, readers } = await status();
    const ids = nodes.map((it) => it.id);
    return !ids.includes(id) && readers.length === 1 && ids.includes(readers[0].node);
  });
  const again = await startNode(victim.name);
  for (const it of cluster.subscribers) if (it.own === victim) it.own = again;
  await goHome();
  await oneStream();
  return silence;
}

export const nodesSteps = {
  async "three nodes have one stream and one slot"() {
    await oneStream();
    await busWorks();
    const { nodes, readers, bus } = await eventually("three servers have all messages", async () => {
      const now = await status();
      return now.bus.copies === 3 && now;
    });
    assert.equal(readers.length, 1);
    assert.equal(readers[0].database, "demo");
    assert(nodes.some((it) => it.id === readers[0].node), JSON.stringify(readers));
    assert.deepEqual([bus.expected_copies, bus.problem], [3, null]);
    assert.equal((await status({})).bus, null);
    const nowhere = await status({ TIDEGATE_BUS_URL: `nats://127.0.0.1:${await freePort()}` });
    assert.match(nowhere.bus.problem, /no NATS server of bus_url can be reached/);
  },

  async "the status shows how far the reader is behind"() {
    await write(200);
    await eventually("a measurement between two confirmations", async () => {
      const least = await unconfirmed();
      const [{ lag_bytes: lag }] = (await status()).readers;
      const most = await unconfirmed();
      if (least.confirmed !== most.confirmed) return false;
      assert(lag >= least.bytes && lag <= most.bytes, `${lag}, expected ${least.bytes} to ${most.bytes}`);
      // The reader confirms a row ten seconds after it was written, or later.
      assert(lag > 10_000, `${lag}`);
      return true;
    });
    await complete();
  },

  async "events come to all nodes, once and in order"() {
    await underLoad(() => sleep(2000));
    await complete();
    const own = await reader();
    const first = cluster.subscribers.find((it) => it.at() === own);
    for (const it of cluster.subscribers.filter((it) => it !== first)) {
      const late = it.times.map((time, index) => time - first.times[index]).sort((a, b) => a - b);
      const at = (part) => late[Math.floor(late.length * part)].toFixed(1);
      console.log(`  over the bus ${at(0.5)} ms later, at most ${at(0.99)} ms for 99 % of ${late.length}`);
    }
    await write(5000, true);
    await complete();
  },

  async "a node that is killed while it reads is replaced"() {
    // A machine that is busy with something else may delay an event once.
    let silence = Infinity;
    for (let round = 0; round < 3 && silence > LONGEST.died; round += 1) {
      silence = Math.min(silence, await killReader());
    }
    assert(silence <= LONGEST.died);
  },

  async "a reader that is frozen is replaced, and wakes up without harm"() {
    const victim = await reader();
    const silence = await underLoad(async () => {
      victim.signal("SIGSTOP");
      const frozen = Date.now();
      const others = cluster.subscribers.filter((it) => it.at() !== victim);
      assert(others.length > 0);
      await eventually("the next event", () => others.every((it) => it.last > frozen + 300));
      const took = Date.now() - frozen;
      await sleep(1000);
      victim.signal("SIGCONT");
      return took;
    });
    console.log(`  the next event came ${silence} ms after the freeze`);
    assert(silence <= LONGEST.frozen);
    await complete();
    await oneStream();
  },

  // The first reader begins at the slot, which keeps what was written before.
  async "a subscriber that comes after all nodes were away hears nothing old"() {
    await write(20);
    await complete();
    const before = cluster.nodes;
    cluster.nodes = [];
    for (const node of before) await node.stop("SIGTERM");
    await writeFast(20_000);
    const back = [];
    for (const { name } of before) back.push(await Node.start(demo, name, settings));
    const late = back.map((node) => new Subscriber(`late at ${node.name}`, () => back, node, cluster.bearer));
    await eventually("they subscribe", () => late.every((it) => it.isReady));
    const old = cluster.written;
    for (const [index, it] of cluster.subscribers.entries()) it.own = back[index];
    cluster.nodes = back;
    await write(20);
    await goHome();
    await complete();
    for (const it of late) {
      await eventually("the new events", () => it.ids.at(-1) === cluster.written);
      assert.deepEqual([it.ids.length, it.ids[0]], [20, old + 1], it.name);
      await it.end();
    }
  },

  async "rows that are too large for a message come too"() {
    for (let round = 0; round < 2; round += 1) {
      cluster.written += 1;
      await psql(demo, `INSERT INTO ticks VALUES (${cluster.written}, repeat('x', 1500000))`);
      await write(5);
    }
    await complete();
    await oneStream();
  },
};
