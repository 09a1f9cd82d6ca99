// Standbys of the demo's PostgreSQL. All end with this program.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { eventually, freePort, psql } from "../cluster/processes.mjs";

const run = promisify(execFile);
// How many lines of a log are kept.
const LOG_LINES = 50;
const started = new Set();
process.on("exit", () => started.forEach((standby) => standby.signal("SIGKILL")));

// The programs of the demo's PostgreSQL, and the user as whom it runs.
async function installation(demo) {
  const [data] = await psql(demo, "SHOW data_directory");
  const [pid] = readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
  const { uid, gid } = statSync(data);
  const programs = dirname(readlinkSync(`/proc/${pid}/exe`));
  return { programs, owner: process.getuid() === 0 ? { uid, gid } : {} };
}

export class Standby {
  log = [];

  // Copies the demo's PostgreSQL. The standby replays a commit `delay` after it happened.
  static async create(demo, name, delay) {
    const standby = new Standby();
    Object.assign(standby, { demo, name, delay, ...(await installation(demo)) });
    standby.port = await freePort();
    standby.folder = join(demo.folder, name);
    standby.data = join(standby.folder, "data");
    const url = new URL(demo.adminUrl);
    url.port = standby.port;
    standby.url = url.href;
    await standby.copy();
    await standby.start();
    return standby;
  }

  get address() {
    return new URL(this.url).host;
  }

  async copy() {
    rmSync(this.folder, { recursive: true, force: true });
    mkdirSync(this.folder);
    if (this.owner.uid) chownSync(this.folder, this.owner.uid, this.owner.gid);
    const from = new URL(this.demo.adminUrl);
    const password = decodeURIComponent(from.password);
    const login = [`--host=${from.hostname}`, `--port=${from.port}`, `--username=${from.username}`];
    const options = ["--wal-method=stream", "--checkpoint=fast", "--no-sync", "--write-recovery-conf"];
    const env = { ...process.env, PGPASSWORD: password };
    const args = [...login, ...options, "--pgdata", this.data];
    await run(join(this.programs, "pg_basebackup"), args, { env, cwd: this.folder, ...this.owner });
    const hba = "host all all 127.0.0.1/32 scram-sha-256\n";
    writeFileSync(join(this.data, "pg_hba.conf"), hba);
  }

  async start() {
    const settings = {
      listen_addresses: "127.0.0.1",
      port: this.port,
      unix_socket_directories: this.folder,
      fsync: "off",
      recovery_min_apply_delay: this.delay,
      // The minimum is the primary's number.
      max_connections: 200,
    };
    const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
    const options = { cwd: this.folder, stdio: ["ignore", "ignore", "pipe"], ...this.owner };
    this.child = spawn(join(this.programs, "postgres"), ["-D", this.data, ...args], options);
    started.add(this);
    this.child.once("exit", () => started.delete(this));
    createInterface({ input: this.child.stderr }).on("line", (line) => {
      this.log.push(line);
      if (this.log.length > LOG_LINES) this.log.shift();
    });
    await eventually(`${this.name} answers`, () => this.sql("SELECT 1").then(() => true, () => false));
  }

  // Runs SQL on this server. Returns the rows as lines.
  sql(text) {
    return psql({ database: this.url }, text);
  }

  // Sends a signal to all processes of this server.
  signal(signal) {
    const { pid } = this.child;
    let all = [];
    try {
      all = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    } catch {}
    for (const one of [pid, ...all]) {
      try {
        process.kill(Number(one), signal);
      } catch {}
    }
  }

  // Ends the server: SIGKILL with all processes, SIGINT in order.
  async stop(signal) {
    const { child } = this;
    if (child.exitCode !== null || child.signalCode !== null) return;
    if (signal === "SIGKILL") this.signal(signal);
    else child.kill(signal);
    await once(child, "exit");
  }
}
