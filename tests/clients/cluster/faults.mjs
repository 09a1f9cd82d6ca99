// Random faults under load.

import assert from "node:assert/strict";

import { cluster, complete, goHome, nats, reader, silence, startNode, underLoad } from "./cluster.mjs";
import { sleep } from "./processes.mjs";
import { freezePostgresql, restartPostgresql } from "./server.mjs";

// The longest time without an event, in milliseconds. The subscribers of a node that is killed or frozen
// itself do not count.
export const LONGEST = {
  // After a process died, which ends its connections. The short run is also for loaded machines and
  // builds that are not optimised.
  died: process.env.CLUSTER_SOAK ? 1000 : 2000,
  // After a process froze, which only its silence shows, or while JetStream has no majority and what a node
  // missed comes from PostgreSQL.
  frozen: 5000,
  // From the time when PostgreSQL answers again. Until then nodes retry with growing delays.
  postgresql: 5000,
  // After any fault. A machine that is busy with something else may delay single events.
  ever: 10_000,
};
// In the long run nine of ten silences are at most this many times the limit of their kind.
const MOST = 1.5;
const { died, frozen, postgresql } = LONGEST;

const oneOf = (all) => all[Math.floor(Math.random() * all.length)];

async function kill(victim) {
  cluster.nodes = cluster.nodes.filter((it) => it !== victim);
  await victim.stop("SIGKILL");
  const again = await startNode(victim.name);
  for (const it of cluster.subscribers) if (it.own === victim) it.own = again;
  return { victim };
}

async function freeze(victim, ms) {
  victim.signal("SIGSTOP");
  await sleep(ms);
  victim.signal("SIGCONT");
  return { victim };
}

async function stopNats(servers, ms) {
  await Promise.all(servers.map((it) => it.stop()));
  await sleep(ms);
  await Promise.all(servers.map((it) => it.start()));
}

async function freezeNats(servers, ms) {
  for (const { child } of servers) child.kill("SIGSTOP");
  await sleep(ms);
  for (const { child } of servers) child.kill("SIGCONT");
}

async function deleteStore() {
  await nats.stop();
  await nats.forget();
  await nats.start();
}

async function restart(signal) {
  await restartPostgresql(signal);
  return { since: performance.now() };
}

async function pause() {
  await freezePostgresql(Math.random() * 6000);
  return { since: performance.now() };
}

const oneServer = () => [oneOf(nats.servers)];
const twoServers = () => {
  const other = oneOf(nats.servers);
  return nats.servers.filter((it) => it !== other);
};

// How long a fault lasts that has an end, in milliseconds: every other one of a kind longer than any limit, so
// that events come in time only if something else takes over. The short ones may end while that happens.
const lasts = (isLong) => (isLong ? 8000 + Math.random() * 1000 : Math.random() * 6000);

// Of each kind: how many of 20 faults it is, the limit for the median of the times without an event, and
// what causes it, for a time in milliseconds if it `ends`. That returns the node that was hit, if one was,
// and since when events are awaited, if not from the beginning.
const faults = {
  kill: { share: 1, limit: died, cause: () => kill(oneOf(cluster.nodes)) },
  killReader: { share: 2, limit: died, cause: async () => kill(await reader()) },
  freeze: { share: 1, limit: frozen, ends: true, cause: (ms) => freeze(oneOf(cluster.nodes), ms) },
  freezeReader: { share: 2, limit: frozen, ends: true, cause: async (ms) => freeze(await reader(), ms) },
  natsServer: { share: 2, limit: died, ends: true, cause: (ms) => stopNats(oneServer(), ms) },
  natsMajority: { share: 2, limit: frozen, ends: true, cause: (ms) => stopNats(twoServers(), ms) },
  nats: { share: 1, limit: frozen, ends: true, cause: (ms) => stopNats(nats.servers, ms) },
  natsServerFreeze: { share: 2, limit: frozen, ends: true, cause: (ms) => freezeNats(oneServer(), ms) },
  natsFreeze: { share: 1, limit: frozen, ends: true, cause: (ms) => freezeNats(nats.servers, ms) },
  store: { share: 2, limit: frozen, cause: deleteStore },
  postgresqlStop: { share: 1, limit: postgresql, cause: () => restart("SIGINT") },
  postgresqlQuit: { share: 1, limit: postgresql, cause: () => restart("SIGQUIT") },
  postgresqlKill: { share: 1, limit: postgresql, cause: () => restart("SIGKILL") },
  postgresqlFreeze: { share: 1, limit: postgresql, cause: pause },
};

// The kinds of this many faults, in a random order. How often each kind comes is not left to chance.
function choose(count) {
  const names = process.env.CLUSTER_FAULTS?.split(",") ?? Object.keys(faults);
  const unknown = names.filter((it) => !faults[it]);
  assert.deepEqual(unknown, [], `CLUSTER_FAULTS: the kinds are ${Object.keys(faults)}`);
  const shares = names.flatMap((it) => Array(faults[it].share).fill(it));
  if (!process.env.CLUSTER_FAULTS) assert.equal(shares.length, 20);
  const kinds = Array.from({ length: count }, (_, index) => shares[index % shares.length]);
  for (let left = kinds.length; left > 1; left -= 1) {
    const index = Math.floor(Math.random() * left);
    [kinds[index], kinds[left - 1]] = [kinds[left - 1], kinds[index]];
  }
  return kinds;
}

// Causes a number of random faults.
export async function soak(count) {
  // The silences after the faults of each kind.
  const silences = {};
  for (const [index, name] of choose(count).entries()) {
    const all = (silences[name] ??= []);
    const isLong = all.length % 2 === 0;
    const longest = await underLoad(() => cause(name, lasts(isLong)));
    all.push({ longest, isMeasured: isLong || !faults[name].ends });
    const began = Date.now();
    await complete(60_000).catch((error) => {
      error.message = `after ${name}, fault ${index + 1}: ${error.message}`;
      throw error;
    });
    console.log(`${index + 1} ${name}: silence of ${longest} ms, complete after ${Date.now() - began} ms`);
    await goHome();
  }
  checkSilences(silences);
}

function checkSilences(silences) {
  const late = [];
  for (const [name, all] of Object.entries(silences)) {
    const { limit } = faults[name];
    assert.equal(typeof limit, "number", name);
    const longest = Math.max(...all.map((it) => it.longest));
    const measured = all.filter((it) => it.isMeasured).map((it) => it.longest);
    measured.sort((one, other) => one - other);
    const at = (part) => measured[Math.ceil(measured.length * part) - 1];
    const [median, most] = [at(0.5), at(0.9)];
    const text = `silence of ${median} ms (median, of ${limit}), ${most} ms (90 %), at most ${longest} ms`;
    console.log(`${all.length} ${name}: ${text}`);
    // In the short run a kind comes once or twice, and 90 % are all of them.
    const isLate = process.env.CLUSTER_SOAK && most > limit * MOST;
    if (!(median <= limit && longest <= LONGEST.ever) || isLate) late.push(name);
  }
  assert.deepEqual(late, [], "events came late");
}

// Causes a fault, which lasts `ms` if it ends. Returns the longest time without an event, in milliseconds.
async function cause(name, ms) {
  await sleep(Math.random() * 1000);
  const homes = new Map(cluster.subscribers.map((it) => [it, it.at()]));
  const began = performance.now();
  const { victim, since = began } = (await faults[name].cause(ms)) ?? {};
  await sleep(1000 + Math.random() * 1000);
  const others = cluster.subscribers.filter((it) => !victim || homes.get(it) !== victim);
  return silence(since, others).catch((error) => {
    error.message = `after ${name}: ${error.message}`;
    throw error;
  });
}
