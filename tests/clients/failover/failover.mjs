// Subscribers and a writer behind HAProxy, while each process of a cluster is killed in turn.
// Argument: how often.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { Haproxy } from "../cluster/haproxy.mjs";
import { eventually } from "../cluster/processes.mjs";
import { Subscriber, token } from "../cluster/subscriber.mjs";
import { checkGaps, compare, rowsOf } from "../patroni/compare.mjs";
import { Writer } from "../patroni/load.mjs";
import { shareKey, started, startNode, startServers, writeSettings } from "./machines.mjs";
import { Page } from "./page.mjs";
import { checkSilences, longestSilence, record } from "./silences.mjs";

const rounds = Number(process.argv[2] ?? 1);
const USERS = ["demo", "ann", "bea", "cid", "dora", "eve"];
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const folder = await mkdtemp(join(process.env.CLIENT_SCRATCH ?? tmpdir(), "failover-"));
await chmod(folder, 0o755);
const page = await Page.read(folder);
let servers, balancer, writer, slot;
let nodes = [];
let subscribers = [];

// Runs a command of the program on the first machine with this standard input. Status 1 is no failure of
// the doctor, which ends with it when it finds something.
function tidegate(args, input = "") {
  const [{ name }] = page.machines;
  const env = {
    PATH: process.env.PATH,
    TIDEGATE_CONFIG: join(folder, name, "tidegate.toml"),
    SSL_CERT_FILE: servers.authority,
  };
  return new Promise((done, failed) => {
    const child = execFile(process.env.TIDEGATE_TEST_BINARY, args, { env }, (error, stdout, stderr) =>
      error && !(error.code === 1 && args[0] === "doctor") ? failed(new Error(`${args}: ${stderr}`)) : done(stdout),
    );
    child.stdin.end(input);
  });
}

// Requests may meet a node or a server that was just killed. HAProxy then answers 502 or 503, or the
// connection ends. Whether a write was done is not known.
class ProxiedWriter extends Writer {
  tolerates(answer) {
    return answer.status === undefined || answer.status === 502 || answer.retryAfter !== null;
  }
}

class CountingSubscriber extends Subscriber {
  connections = 0;
  phantoms = 0;
  // How many of its gaps were checked.
  seen = 0;

  listen(node) {
    this.connections += 1;
    return super.listen(node);
  }
}

async function renewTokens() {
  for (const [index, it] of [...subscribers, writer].entries()) {
    const user = subscribers[index] ? USERS[index] : "demo";
    it.bearer = await eventually("a token", () => token(balancer.url, user).catch(() => undefined));
  }
}

// Does something, and waits until each subscriber gets an event that came later. `act` returns the
// time from which events must come, if that is not when it ends. Prints how long the longest of them
// had to wait.
async function fault(kind, what, act) {
  const began = Date.now();
  const struck = (await act()) ?? Date.now();
  await eventually("events go on", () => subscribers.every((it) => it.last > struck + 100), 60_000);
  const silence = Math.max(...subscribers.map((it) => longestSilence(it, began)));
  record(kind, silence);
  console.log(`  ${what}: at most ${silence} ms without an event`);
}

// When PostgreSQL was promoted after `began`, in milliseconds.
async function promotion(began) {
  const { members } = servers.cluster;
  const next = () => members.find((it) => it.promoted >= began);
  return (await eventually("a promotion", next, 60_000)).promoted;
}

// The leader, which answers. Patroni may change it at any time.
function leader() {
  return eventually("a leader that answers", async () => {
    const member = await servers.cluster.leader();
    return member?.sql("SELECT 1").then(() => member, () => undefined);
  });
}

// Compares answers and events with the rows. `mayLose` is whether the primary may lack commits of which
// another has told since the last check.
async function check(mayLose = false) {
  assert.deepEqual(writer.wrong, []);
  const until = writer.confirmed.at(-1);
  await eventually("the events", () => subscribers.every((it) => it.ids.at(-1) >= until));
  const rows = await rowsOf(await leader(), writer, until);
  const gaps = [];
  let lost = 0;
  for (const it of subscribers) {
    const phantoms = compare(it, rows, until);
    lost += phantoms - it.phantoms;
    for (const { reason, after } of it.resyncs.slice(it.seen)) {
      const [last, next] = [it.ids[after - 1], it.ids[after]];
      const skipped = rows.filter((id) => id > last && id < next).length;
      console.log(`  ${it.name}: ${reason} after ${last}, then ${next}; ${skipped} rows skipped, ${phantoms} events of lost commits so far`);
      gaps.push(reason);
    }
    Object.assign(it, { phantoms, seen: it.resyncs.length });
  }
  checkGaps(gaps, { phantoms: mayLose ? lost : 0 });
}

// How many nodes the command shows.
async function countNodes() {
  return (await tidegate(["cluster", "status"])).match(/ s ago/g)?.length;
}

// Whether the metrics of a machine have this line.
async function shows(machine, line) {
  const answer = await fetch(`http://127.0.0.1:${page.port(machine, 9464)}/metrics`);
  return (await answer.text()).includes(`\n${line}\n`);
}

async function allReady() {
  await eventually("all nodes are ready, with the bus and the replicas", async () => {
    const all = await Promise.all(nodes.map((it) => it.readiness()));
    const isWhole = ({ bus, replicas }) => bus === "ok" && replicas === "ok";
    return all.every(({ status, checks }) => status === "ready" && isWhole(checks));
  });
}

// Kills everything on a machine at once, as if it had lost power.
async function killMachine(index) {
  const { cluster, nats } = servers;
  await Promise.all([
    nodes[index].stop("SIGKILL"),
    nats.servers[index].stop(),
    cluster.members[index].kill(),
    cluster.etcds[index].stop(),
  ]);
}

async function startMachine(index) {
  const { cluster, nats } = servers;
  cluster.etcds[index].start();
  await nats.servers[index].start();
  cluster.members[index].start();
  await cluster.whole(slot);
  nodes[index] = await startNode(page, page.machines[index], servers.authority);
  await allReady();
}

// The number of a machine whose PostgreSQL is a standby, if possible one whose node reads the changes for
// all.
async function standbyMachine() {
  const primary = await leader();
  const all = servers.cluster.members.flatMap((it, index) => (it === primary ? [] : [index]));
  const line = 'tidegate_bus_reader{database="demo"} 1';
  const read = await Promise.all(all.map((index) => shows(page.machines[index], line)));
  return all[Math.max(0, read.indexOf(true))];
}

const steps = {
  async "the checker finds lost, repeated and swapped events"() {
    const rows = [1, 2, 3, 4, 5];
    const subscriber = (ids, resyncs = []) => ({ name: "one", ids, resyncs });
    compare(subscriber(rows), rows, 5);
    compare(subscriber([1, 2, 9, 4, 5], [{ after: 3 }]), rows, 5);
    const wrong = [[1, 2, 4, 5], [1, 2, 2, 3, 4, 5], [1, 3, 2, 4, 5], [2, 3, 4, 5], [1, 2, 3, 4], [1, 2, 9, 3, 4, 5]];
    for (const ids of wrong) assert.throws(() => compare(subscriber(ids), rows, 5), `${ids}`);
    assert.throws(() => compare(subscriber([1, 2, 9, 2, 3, 4, 5], [{ after: 3 }]), rows, 5));
  },

  async "the checker finds gaps that are none"() {
    checkGaps([], { phantoms: 0 });
    checkGaps(["other_log"], { phantoms: 1 });
    checkGaps(["interrupted", "expired"], { phantoms: 0, hasLog: false });
    assert.throws(() => checkGaps(["other_log"], { phantoms: 0 }));
    assert.throws(() => checkGaps(["other_log"], { phantoms: 0, hasLog: false }));
    for (const reason of ["interrupted", "expired"]) assert.throws(() => checkGaps([reason], { phantoms: 1 }));
  },

  async "three machines are set up as the page says"() {
    servers = await startServers(page);
    const leader = await servers.cluster.leader();
    await leader.sqlOnSocket(page.files.get("administrator.sql"));
    // A standby that lacks the role would refuse the login, and no other server is tried then (PostgreSQL,
    // "Specifying Multiple Hosts").
    for (const member of servers.cluster.members) {
      const role = () => member.sql("SELECT 1 FROM pg_roles WHERE rolname = 'tidegate_admin'").catch(() => []);
      await eventually(`${member.name} has the administrator`, async () => (await role()).length === 1);
    }
    await tidegate(["key", "init", writeSettings(page)]);
    const report = await tidegate(["doctor"]);
    assert(!/MISSING|ALTER SYSTEM/.test(report), report);
    shareKey(page);
    await tidegate(["tenant", "create", "demo", "--password-file", "-"], "demo1234\n");
    for (const user of USERS.slice(1)) {
      await tidegate(["user", "create", "demo", user, "--password-file", "-"], "demo1234\n");
    }
    await tidegate(["client", "create", "demo", "App", "--id", "demo-app", "--public", "--redirect-uri",
      "http://127.0.0.1:5000/callback"]);
    await leader.sql(`CREATE TABLE ticks (id bigint PRIMARY KEY, note text); ALTER TABLE ticks OWNER TO demo;
      SET ROLE demo; GRANT SELECT ON ticks TO "demo/$users"`, "demo");
    for (const machine of page.machines) nodes.push(await startNode(page, machine, servers.authority));
    balancer = await Haproxy.start(folder, nodes);
    await allReady();
    assert.equal(await countNodes(), 3);
    await eventually("the metrics count three nodes", () => shows(page.machines[0], "tidegate_nodes 3"));
  },

  async "Patroni keeps the slot that the doctor prints"() {
    const { cluster } = servers;
    await cluster.patronictl("pause", "shop", "--wait");
    subscribers = USERS.map((user) => new CountingSubscriber(user, () => [balancer], balancer, ""));
    writer = new ProxiedWriter(balancer, "");
    await renewTokens();
    await eventually("they subscribe", () => subscribers.every((it) => it.isReady));
    writer.start();
    slot = await cluster.keepSlots(await tidegate(["doctor"]));
    await cluster.whole(slot);
    await check();
  },
};

for (let round = 1; round <= rounds; round += 1) {
  steps[`round ${round}: each node is killed`] = async () => {
    await renewTokens();
    const before = subscribers.map((it) => it.connections);
    for (const [index, machine] of page.machines.entries()) {
      await fault("node", `node ${machine.name} killed`, () => nodes[index].stop("SIGKILL"));
      await eventually("two nodes are left", async () => (await countNodes()) === 2);
      nodes[index] = await startNode(page, machine, servers.authority);
      await allReady();
      await check();
    }
    const moved = subscribers.filter((it, index) => it.connections > before[index]);
    assert(moved.length > 0, "all subscribers were at one node and stayed");
  };

  steps[`round ${round}: each NATS server is killed`] = async () => {
    for (const [index, server] of servers.nats.servers.entries()) {
      const { name } = page.machines[index];
      await fault("NATS server", `NATS server ${name} killed`, () => server.stop());
      await server.start();
      await allReady();
      await check();
    }
  };

  steps[`round ${round}: each etcd is killed`] = async () => {
    for (const etcd of servers.cluster.etcds) {
      await fault("etcd", `${etcd.name} killed`, () => etcd.stop());
      etcd.start();
      await servers.cluster.whole(slot);
    }
    await check();
  };

  steps[`round ${round}: two etcds are killed`] = async () => {
    const { cluster } = servers;
    const two = cluster.etcds.slice(1);
    await fault("two etcds", "two etcds killed", async () => {
      await Promise.all(two.map((it) => it.stop()));
      const refused = writer.statuses[503] ?? 0;
      await eventually("writes get 503", () => (writer.statuses[503] ?? 0) > refused);
      for (const it of two) it.start();
    });
    await cluster.whole(slot);
    await allReady();
    await check(true);
  };

  steps[`round ${round}: HAProxy is killed`] = async () => {
    await fault("HAProxy", "HAProxy killed", async () => {
      await balancer.stop("SIGKILL");
      await balancer.run();
    });
    await check();
  };

  steps[`round ${round}: a standby is killed`] = async () => {
    const { cluster } = servers;
    const leader = await cluster.leader();
    const standby = cluster.members.find((it) => it !== leader);
    await fault("standby", `standby ${standby.name} killed`, async () => {
      await standby.kill();
      await eventually("the replicas are degraded", async () => {
        const all = await Promise.all(nodes.map((it) => it.readiness()));
        return all.every(({ status, checks }) => status === "ready" && checks.replicas === "degraded");
      });
    });
    standby.start();
    await check();
  };

  steps[`round ${round}: the primary is killed`] = async () => {
    const { cluster } = servers;
    await cluster.whole(slot);
    const leader = await cluster.leader();
    await fault("primary", `primary ${leader.name} killed`, async () => {
      const began = Date.now();
      await leader.kill();
      return promotion(began);
    });
    leader.start();
    await cluster.whole(slot);
    await allReady();
    await check(true);
  };

  steps[`round ${round}: a standby's machine dies`] = async () => {
    await servers.cluster.whole(slot);
    const index = await standbyMachine();
    await fault("standby's machine", `machine ${page.machines[index].name} killed`, () => killMachine(index));
    await eventually("two nodes are left", async () => (await countNodes()) === 2);
    await check();
    await startMachine(index);
    await check();
  };

  steps[`round ${round}: the primary's machine dies`] = async () => {
    const { cluster } = servers;
    await cluster.whole(slot);
    const index = cluster.members.indexOf(await leader());
    await fault("primary's machine", `machine ${page.machines[index].name} killed`, async () => {
      const began = Date.now();
      await killMachine(index);
      return promotion(began);
    });
    await check(true);
    await startMachine(index);
    await check(true);
  };

  steps[`round ${round}: the primary is switched`] = async () => {
    const { cluster } = servers;
    await cluster.whole(slot);
    const leader = await cluster.leader();
    await fault("switchover", `switchover of ${leader.name}`, async () => {
      const began = Date.now();
      await cluster.switchover(leader);
      return promotion(began);
    });
    await check();
  };
}

for (const [name, step] of Object.entries(steps)) {
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`, error);
    for (const { name, log } of [...started, ...nodes]) {
      console.log(`-- ${name}\n${log.slice(-40).join("\n")}`);
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
await balancer.stop();
await servers.nats.stop("SIGTERM");
await servers.cluster.stop();
await rm(folder, { recursive: true, force: true });
console.log(`writes ${JSON.stringify(writer.statuses)}, the longest took ${writer.longest} ms`);
for (const it of subscribers) console.log(`${it.name}: ${it.ids.length} events, ${it.resyncs.length} gaps, ${it.connections} connections`);
checkSilences();
process.exit(0);
