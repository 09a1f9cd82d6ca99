// The processes of a Patroni cluster: etcd, and members with a PostgreSQL each. All end with this
// program.

import { execFile, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { eventually, freePort } from "../cluster/processes.mjs";

const run = promisify(execFile);
// How many lines of a log are kept.
const LOG_LINES = 500;
export const PASSWORD = "patroni-secret";
const POSTGRESQL = "/usr/lib/postgresql";
const [version] = readdirSync(POSTGRESQL).sort((one, other) => other - one);
export const BIN = join(POSTGRESQL, version, "bin");
// PostgreSQL refuses to run as root.
const owner = process.getuid() === 0 ? idsOf("postgres") : {};
// libpq looks for certificates in the home of the user.
const env = { ...process.env, HOME: "/nonexistent" };
const started = new Set();
const members = [];
process.on("exit", () => {
  for (const child of started) child.kill("SIGKILL");
  for (const member of members) member.killPostgresql();
});

function idsOf(user) {
  const id = (flag) => Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

function launch(program, args, log, options = {}) {
  const child = spawn(program, args, { ...owner, env, ...options, stdio: ["ignore", "pipe", "pipe"] });
  started.add(child);
  child.once("exit", () => started.delete(child));
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => log.push(line));
  }
  return child;
}

// Gives a file to the user of PostgreSQL.
export function give(file) {
  if (owner.uid) chownSync(file, owner.uid, owner.gid);
}

// A folder that the user of PostgreSQL can write.
export function ownFolder(...parts) {
  const folder = join(...parts);
  mkdirSync(folder, { recursive: true });
  give(folder);
  chmodSync(folder, 0o700);
  return folder;
}

// The configuration of a member, as JSON, which is YAML.
function settings({ name, port, rest, folder, data }, etcdPort) {
  const parameters = {
    fsync: "off",
    max_wal_size: "256MB",
    log_line_prefix: "%m ",
    log_timezone: "UTC",
    shared_buffers: "32MB",
    unix_socket_directories: folder,
  };
  const login = (username) => ({ username, password: PASSWORD });
  const all = {
    scope: "shop",
    name,
    restapi: { listen: `127.0.0.1:${rest}`, connect_address: `127.0.0.1:${rest}` },
    etcd3: { host: `127.0.0.1:${etcdPort}` },
    bootstrap: {
      dcs: {
        ttl: 5,
        loop_wait: 1,
        retry_timeout: 2,
        synchronous_mode: true,
        postgresql: {
          use_pg_rewind: true,
          parameters: { wal_level: "logical", max_slot_wal_keep_size: "1GB" },
        },
      },
      initdb: [{ encoding: "UTF8" }, { locale: "C" }],
    },
    postgresql: {
      listen: `127.0.0.1:${port}`,
      connect_address: `127.0.0.1:${port}`,
      data_dir: data,
      bin_dir: BIN,
      pgpass: join(folder, "pgpass"),
      basebackup: [{ checkpoint: "fast" }],
      authentication: { superuser: login("postgres"), replication: login("replicator") },
      pg_hba: ["local all all trust", "host all all 127.0.0.1/32 scram-sha-256",
        "host replication all 127.0.0.1/32 scram-sha-256"],
      parameters,
    },
  };
  return JSON.stringify(all, undefined, 2);
}

export class Member {
  log = [];
  // When PostgreSQL was promoted for the last time, in milliseconds.
  promoted = 0;

  // `place` has the name of the member, its ports, the folders `folder` and `data`, and the password
  // of the superuser. `text` is the configuration.
  constructor(place, text) {
    Object.assign(this, place);
    this.config = join(this.folder, "patroni.yml");
    writeFileSync(this.config, text);
    members.push(this);
  }

  start() {
    this.patroni = launch("patroni", [this.config], this, { cwd: this.folder });
  }

  // Takes a line of the log.
  push(line) {
    this.log.push(line);
    if (this.log.length > LOG_LINES) this.log.shift();
    this.promotes ||= line.includes("selected new timeline ID");
    const ready = /^(\S+ \S+) UTC LOG: {2}database system is ready to accept connections/.exec(line);
    if (!ready) return;
    if (this.promotes) this.promoted = Date.parse(`${ready[1].replace(" ", "T")}Z`);
    this.promotes = false;
  }

  postmaster() {
    try {
      return Number(readFileSync(join(this.data, "postmaster.pid"), "utf8").split("\n")[0]);
    } catch {
      return undefined;
    }
  }

  // Kills PostgreSQL with all its processes.
  killPostgresql() {
    const pid = this.postmaster();
    if (!pid) return;
    let all = [pid];
    try {
      all.push(...readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").match(/\d+/g) ?? []);
    } catch {}
    for (const one of all) {
      try {
        process.kill(Number(one), "SIGKILL");
      } catch {}
    }
  }

  // Ends everything of the member as if its machine had lost power.
  async kill() {
    const { patroni } = this;
    patroni.kill("SIGKILL");
    this.killPostgresql();
    await once(patroni, "exit");
  }

  async stop() {
    this.patroni.kill("SIGTERM");
    await once(this.patroni, "exit");
  }

  // Runs SQL as the operating system's user of PostgreSQL, over the socket and without a password.
  // Only root can become that user.
  async sqlOnSocket(text) {
    if (!owner.uid) return this.sql(text);
    const args = ["-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", this.folder, "-p", `${this.port}`, "-c", text];
    await run("psql", args, { ...owner, env: { PATH: process.env.PATH }, cwd: this.folder });
  }

  async sql(text, database = "postgres") {
    const args = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, "-d",
      `postgresql://postgres:${this.password}@127.0.0.1:${this.port}/${database}`];
    // A long run writes some hundred thousand rows, whose ids are read at once.
    const { stdout } = await run("psql", args, { maxBuffer: 64 << 20 });
    return stdout.split("\n").filter((line) => line !== "");
  }
}

// A member of etcd.
export class Etcd {
  log = [];

  // `name` is for messages.
  constructor(name, args) {
    Object.assign(this, { name, args });
    this.start();
  }

  start() {
    this.child = launch("etcd", [...this.args, "--unsafe-no-fsync"], this.log);
  }

  async stop() {
    this.child.kill("SIGKILL");
    await once(this.child, "exit");
  }
}

export class Patroni {
  // Of `members`, whose state `etcds` keep.
  constructor(members, etcds) {
    Object.assign(this, { members, etcds });
  }

  // Starts etcd and the first two of three members. Returns when there is a leader.
  static async start(folder) {
    const etcdPort = await freePort();
    const [client, peer] = [etcdPort, await freePort()].map((it) => `http://127.0.0.1:${it}`);
    const args = ["--data-dir", ownFolder(folder, "etcd"), "--listen-client-urls", client,
      "--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-advertise-peer-urls",
      peer, "--initial-cluster", `default=${peer}`];
    const etcd = new Etcd("etcd", args);
    const made = [];
    for (const name of ["pg1", "pg2", "pg3"]) {
      const own = ownFolder(folder, name);
      const place = { name, port: await freePort(), rest: await freePort(), folder: own,
        data: join(own, "data"), password: PASSWORD };
      made.push(new Member(place, settings(place, etcdPort)));
    }
    const cluster = new Patroni(made, [etcd]);
    await cluster.startMembers(2);
    return cluster;
  }

  // Starts the first of the members. Returns when there is a leader.
  async startMembers(count) {
    for (const member of this.members.slice(0, count)) member.start();
    await eventually("a leader", () => this.leader());
  }

  get started() {
    return this.members.filter((it) => it.patroni);
  }

  url(user, password, database) {
    const hosts = this.members.map(({ port }) => `127.0.0.1:${port}`);
    return `postgresql://${user}:${password}@${hosts}/${database}?target_session_attrs=read-write`;
  }

  // What Patroni says of its members.
  async state() {
    for (const { rest } of this.members) {
      const answer = await fetch(`http://127.0.0.1:${rest}/cluster`).catch(() => undefined);
      if (answer?.ok) return answer.json();
    }
    return { members: [] };
  }

  async leader() {
    const { members } = await this.state();
    const leader = members.find((it) => it.role === "leader" && it.state === "running");
    return this.members.find((it) => it.name === leader?.name);
  }

  // Whether each member runs, and the leader has a synchronous standby.
  async isWhole() {
    const { members } = await this.state();
    const count = (role) => members.filter((it) => it.role === role).length;
    return (
      members.length === this.started.length &&
      members.every((it) => ["running", "streaming"].includes(it.state)) &&
      new Set(members.map((it) => it.timeline)).size === 1 &&
      count("leader") === 1 &&
      count("sync_standby") === 1
    );
  }

  // Whether each member has the slot, with the rows of the catalogs that it needs.
  async keeps(slot) {
    const leader = await this.leader();
    if (!leader) return false;
    const kept = `SELECT slot_name, catalog_xmin FROM pg_replication_slots WHERE NOT temporary`;
    const onLeader = new Map((await leader.sql(kept)).map((line) => line.split("|")));
    for (const member of this.started.filter((it) => it !== leader)) {
      const copy = new Map((await member.sql(kept)).map((line) => line.split("|"))).get(slot);
      const standby = onLeader.get(member.name);
      if (!copy || !standby || Number(standby) > Number(copy)) return false;
    }
    return onLeader.has(slot);
  }

  // The members that have the WAL with which the slot begins. A base backup contains none that is
  // older than itself.
  async withLogOf(slot) {
    const files = `SELECT EXISTS (SELECT FROM pg_replication_slots, pg_ls_waldir() WHERE slot_name = '${slot}'
      AND right(name, 16) = upper(lpad(to_hex((restart_lsn - '0/0') :: bigint >> 32), 8, '0')
        || lpad(to_hex(((restart_lsn - '0/0') :: bigint >> 24) & 255), 8, '0')))`;
    const has = await Promise.all(this.started.map(async (it) => (await it.sql(files))[0] === "t"));
    return this.started.filter((_, index) => has[index]);
  }

  // Lets Patroni keep the slots that the doctor prints, and ends a pause. Returns the name of the
  // first slot.
  async keepSlots(report) {
    const lines = report.split("\n");
    const first = lines.findIndex((line) => line.trim() === "slots:");
    if (first < 0) throw new Error(report);
    const indent = lines[first].search(/\S/);
    const end = lines.findIndex((line, index) => index > first && line.search(/\S/) <= indent);
    const yaml = lines.slice(first, end < 0 ? undefined : end).map((line) => line.slice(indent));
    const file = join(this.members[0].folder, "slots.yaml");
    writeFileSync(file, yaml.join("\n"));
    await this.patronictl("edit-config", "--apply", file, "--force");
    await this.patronictl("resume", "shop", "--wait");
    return /^ {2}(\w+):$/.exec(yaml[1])[1];
  }

  whole(slot) {
    return eventually(
      "all members run and keep the slot",
      async () => (await this.isWhole()) && (!slot || (await this.keeps(slot).catch(() => false))),
      90_000,
    );
  }

  async switchover(leader) {
    const answer = await fetch(`http://127.0.0.1:${leader.rest}/switchover`, {
      method: "POST",
      body: JSON.stringify({ leader: leader.name }),
    });
    if (!answer.ok) throw new Error(`switchover: ${answer.status} ${await answer.text()}`);
  }

  patronictl(...args) {
    return run("patronictl", ["-c", this.members[0].config, ...args], {
      env: { PATH: process.env.PATH, LC_ALL: "C.UTF-8", LANG: "C.UTF-8", PAGER: "cat" },
    });
  }

  async stop() {
    for (const member of this.members) await member.stop();
    for (const etcd of this.etcds) await etcd.stop();
  }
}
