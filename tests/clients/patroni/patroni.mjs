// Switchovers and kills of a Patroni cluster: what writers, readers and subscribers of a node see.
// Argument: how many of each.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { eventually, Node, sleep } from "../cluster/processes.mjs";
import { Subscriber, token } from "../cluster/subscriber.mjs";
import { checkGaps, compare, rowsOf } from "./compare.mjs";
import { Reader, Writer } from "./load.mjs";
import { PASSWORD, Patroni } from "./members.mjs";

const count = Number(process.argv[2] ?? 5);
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));
const folder = await mkdtemp(join(process.env.CLIENT_SCRATCH ?? tmpdir(), "patroni-"));
await chmod(folder, 0o755);
const key = join(folder, "master.key");
let cluster, node, slot, writer, reader;
let subscribers = [];
const slowest = { writes: 0, events: 0 };
// The longest time from a promotion until writes succeed, in milliseconds, and what took longer. The
// short run is also for loaded machines.
const LONGEST = count > 5 ? 2000 : 5000;
const late = [];

// Runs a command of the program with this standard input.
function tidegate(args, input = "", settings = {}) {
  const env = {
    ...settings,
    PATH: process.env.PATH,
    TIDEGATE_ADMIN_URL: cluster.url("postgres", PASSWORD, "postgres"),
    TIDEGATE_MASTER_KEY_FILE: key,
  };
  return new Promise((done, failed) => {
    const child = execFile(process.env.TIDEGATE_TEST_BINARY, args, { env }, (error, stdout) =>
      error && !(error.code === 1 && args[0] === "doctor") ? failed(error) : done(stdout),
    );
    child.stdin.end(input);
  });
}

async function newToken() {
  const bearer = await token(node.url);
  for (const it of [writer, reader, ...subscribers]) if (it) it.bearer = bearer;
  return bearer;
}

// Does something to the leader while clients write, read and are subscribed. Waits until a standby is
// promoted, writes succeed and events come. The second subscriber leaves before and comes back with its
// cursor. `mayLose` is whether the new leader may lack commits of which the old one has told.
async function fault(name, { act, afterwards = () => {}, mayLose }) {
  await cluster.whole(slot);
  await newToken();
  const leader = await cluster.leader();
  const withLog = await cluster.withLogOf(slot);
  const began = Date.now();
  subscribers[1].leave();
  await act(leader);
  const next = await eventually(
    "a promotion",
    () => cluster.members.find((it) => it.promoted >= began),
    60_000,
  );
  const { promoted } = next;
  const written = await eventually("a write", () => writer.successAfter(promoted));
  afterwards(leader);
  subscribers[1].comeBack();
  await eventually("events", () => subscribers.every((it) => it.last > written));
  const events = Math.round(Math.max(...subscribers.map((it) => it.firstAfter(promoted))) - promoted);
  const writes = written - promoted;
  slowest.writes = Math.max(slowest.writes, writes);
  slowest.events = Math.max(slowest.events, events);
  const hasLog = withLog.includes(next);
  const { gaps, phantoms } = await check(next);
  console.log(
    `  ${name} of ${leader.name}: after ${promoted - began} ms ${next.name} was promoted` +
      `${hasLog ? "" : ", without the slot's WAL"}; then writes after ${writes} ms, ` +
      `events after ${events} ms; gaps: ${gaps.join(", ") || "none"}`,
  );
  checkGaps(gaps, { phantoms: mayLose ? phantoms : 0, hasLog });
  if (writes > LONGEST) late.push(writes);
}

// Compares answers and events with the rows. Returns the reasons of the gaps since the last check, and the
// number of events of lost commits.
async function check(leader) {
  for (const it of [writer, reader]) assert.deepEqual(it.wrong, []);
  const until = writer.confirmed.at(-1);
  await eventually("the events", () => subscribers.every((it) => it.ids.at(-1) >= until));
  const rows = await rowsOf(leader, writer, until);
  const gaps = subscribers.flatMap((it) => it.resyncs.slice(it.seen).map(({ reason }) => reason));
  let lost = 0;
  for (const it of subscribers) {
    const phantoms = compare(it, rows, until);
    lost += phantoms - it.phantoms;
    Object.assign(it, { phantoms, seen: it.resyncs.length });
  }
  return { gaps, phantoms: lost };
}

// A subscriber that can leave.
class Follower extends Subscriber {
  phantoms = 0;
  // How many of its gaps were checked.
  seen = 0;

  constructor(name, bearer) {
    const at = [node];
    super(name, () => at, node, bearer);
    this.nodesToUse = at;
  }

  leave() {
    this.nodesToUse.length = 0;
    this.socket.close();
  }

  comeBack() {
    this.nodesToUse.push(node);
  }

  // When the first event after `time` came, in milliseconds.
  firstAfter(time) {
    const own = time - performance.timeOrigin;
    return performance.timeOrigin + this.times.find((it) => it > own);
  }
}

const steps = {
  async "a tenant is made through the URL of three members, of which two run"() {
    cluster = await Patroni.start(folder);
    await tidegate(["key", "init", key]);
    await tidegate(["tenant", "create", "demo", "--password-file", "-"], "demo1234\n");
    await tidegate(["client", "create", "demo", "App", "--id", "demo-app", "--public", "--redirect-uri",
      "http://127.0.0.1:5000/callback"]);
    const leader = await cluster.leader();
    await leader.sql("CREATE TABLE ticks (id bigint, note text); ALTER TABLE ticks OWNER TO demo", "demo");
    const adminUrl = cluster.url("postgres", PASSWORD, "postgres");
    node = await Node.start({ adminUrl, key }, "node", {});
    const bearer = await newToken();
    // Patroni drops slots that it does not know, unless it is paused.
    await cluster.patronictl("pause", "shop", "--wait");
    subscribers = ["stays", "comes back"].map((name) => new Follower(name, bearer));
    await eventually("they subscribe", () => subscribers.every((it) => it.isReady));
    writer = new Writer(node, bearer).start();
    reader = new Reader(writer).start();
  },

  async "Patroni keeps the slot that the doctor prints, also on a member that joins"() {
    const report = await tidegate(["doctor"], "", { TIDEGATE_NODES: "50" });
    assert(report.includes("patronictl edit-config shop --pg max_connections=1020"), report);
    assert(!report.includes("ALTER SYSTEM"), report);
    slot = await cluster.keepSlots(await tidegate(["doctor"]));
    cluster.members[2].start();
    await cluster.whole(slot);
  },

  async "the slot survives a restart"() {
    const leader = await cluster.leader();
    await cluster.patronictl("restart", "shop", leader.name, "--force");
    await cluster.whole(slot);
    checkGaps((await check(leader)).gaps, { phantoms: 0 });
  },

  async [`${count} switchovers`]() {
    for (let round = 0; round < count; round += 1) {
      await fault("switchover", { act: (leader) => cluster.switchover(leader), mayLose: false });
    }
  },

  async [`${count} kills`]() {
    const kill = {
      act: (leader) => leader.kill(),
      afterwards: (leader) => leader.start(),
      mayLose: true,
    };
    for (let round = 0; round < count; round += 1) await fault("kill", kill);
  },
};

for (const [name, step] of Object.entries(steps)) {
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`, error);
    const quiet = /Lock owner|Watchdog|no action|bootstrap from leader|accepting connections|request failed|::access/;
    const logs = [...(cluster?.members ?? []), node].filter((it) => it);
    for (const { name, log } of logs) {
      const lines = log.filter((line) => !quiet.test(line)).slice(-60);
      console.log(`-- ${name}\n${lines.join("\n")}`);
    }
    for (const it of subscribers) console.log(`-- ${it.name}: ${it.ids.length}, ready ${it.isReady}, ${JSON.stringify(it.resyncs)} ${it.errors.slice(-3)}`);
    process.exit(1);
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}
for (const it of [writer, reader, ...subscribers]) await it.end();
await node.stop("SIGTERM");
await cluster.stop();
await rm(folder, { recursive: true, force: true });
console.log(`writes ${JSON.stringify(writer.statuses)}, reads ${JSON.stringify(reader.statuses)}`);
console.log(`longest request: ${Math.max(writer.longest, reader.longest)} ms`);
for (const it of subscribers) {
  console.log(`${it.name}: ${it.ids.length} events, ${it.resyncs.length} gaps, ${it.phantoms} events of lost commits`);
}
console.log(`longest after a promotion: ${slowest.writes} ms until a write, ${slowest.events} ms until an event`);
assert.deepEqual(late, [], "writes came late");
process.exit(0);
