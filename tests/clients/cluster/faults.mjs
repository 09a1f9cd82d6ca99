// Random faults under load.

import assert from "node:assert/strict";

import {
  cluster,
  complete,
  goHome,
  nats,
  restartPostgresql,
  startNode,
  underLoad,
} from "./cluster.mjs";
import { sleep } from "./processes.mjs";

// The longest time without an event, in milliseconds: after a process died, and after one froze or all of
// NATS died. The subscribers of a node that is killed or frozen itself do not count. The short run is also
// for loaded machines and builds that are not optimised.
export const LONGEST = { died: process.env.CLUSTER_SOAK ? 1000 : 2000, frozen: 5000 };
const limits = {
  kill: LONGEST.died,
  natsServer: LONGEST.died,
  freeze: LONGEST.frozen,
  natsFreeze: LONGEST.frozen,
  nats: LONGEST.frozen,
  store: LONGEST.frozen,
};

// Each returns the node that it hits.
const faults = {
  async kill() {
    const victim = cluster.nodes[Math.floor(Math.random() * cluster.nodes.length)];
    cluster.nodes = cluster.nodes.filter((it) => it !== victim);
    await victim.stop("SIGKILL");
    const again = await startNode(victim.name);
    for (const it of cluster.subscribers) if (it.own === victim) it.own = again;
    return victim;
  },
  async freeze() {
    const victim = cluster.nodes[Math.floor(Math.random() * cluster.nodes.length)];
    victim.signal("SIGSTOP");
    await sleep(Math.random() * 6000);
    victim.signal("SIGCONT");
    return victim;
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

// Causes a number of random faults.
export async function soak(count) {
  const chosen = process.env.CLUSTER_FAULTS?.split(",");
  const names = Object.keys(faults).filter((it) => !chosen || chosen.includes(it));
  // The silences after the faults of each kind.
  const silences = {};
  for (let number = 0; number < count; number += 1) {
    const name = names[Math.floor(Math.random() * names.length)];
    const silence = await underLoad(() => cause(name));
    (silences[name] ??= []).push(silence);
    const began = Date.now();
    await complete(60_000).catch((error) => {
      error.message = `after ${name}, fault ${number + 1}: ${error.message}`;
      throw error;
    });
    console.log(`${number + 1} ${name}: silence of ${silence} ms, complete after ${Date.now() - began} ms`);
    await goHome();
  }
  const late = [];
  for (const [name, all] of Object.entries(silences)) {
    all.sort((one, other) => one - other);
    // A machine that is busy with something else may delay single events.
    const median = all[(all.length - 1) >> 1];
    console.log(`${all.length} ${name}: silence of ${median} ms (median), at most ${all.at(-1)} ms`);
    if (median > limits[name]) late.push(name);
  }
  assert.deepEqual(late, [], "events came late");
}

// Causes a fault. Returns the longest time without an event, in milliseconds.
async function cause(name) {
  await sleep(Math.random() * 1000);
  const homes = new Map(cluster.subscribers.map((it) => [it, it.at()]));
  const began = performance.now();
  const victim = await faults[name]();
  await sleep(1000 + Math.random() * 1000);
  const others = cluster.subscribers.filter((it) => !victim || homes.get(it) !== victim);
  return Math.round(Math.max(...others.map((it) => it.longestSilence(began))));
}
