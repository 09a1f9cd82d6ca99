// A PostgreSQL server of a test, with its folder. All servers end with this program.

import { execFile, execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, readlinkSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

// How many lines of a log are kept.
const LOG_LINES = 500;
// PostgreSQL refuses to run as root.
const owner = process.getuid() === 0 ? idsOf("postgres") : {};
const started = new Set();
const servers = [];
process.on("exit", () => {
  for (const child of started) child.kill("SIGKILL");
  for (const server of servers) server.killPostgresql();
});

function idsOf(user) {
  const id = (flag) => Number(execFileSync("id", [flag, user], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

// Runs a program until it ends. Returns what it prints.
export async function run(program, args, options = {}) {
  const { stdout } = await promisify(execFile)(program, args, { ...owner, ...options });
  return stdout;
}

export function launch(program, args, log, options = {}) {
  const child = spawn(program, args, { ...owner, ...options, stdio: ["ignore", "pipe", "pipe"] });
  started.add(child);
  child.once("exit", () => started.delete(child));
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => log.push(line));
  }
  return child;
}

// A folder that the user of PostgreSQL can write.
export function ownFolder(...parts) {
  const folder = join(...parts);
  mkdirSync(folder);
  if (owner.uid) chownSync(folder, owner.uid, owner.gid);
  chmodSync(folder, 0o700);
  return folder;
}

// Writes a file that the user of PostgreSQL can write. Returns its path.
export function ownFile(path, text) {
  writeFileSync(path, text, { mode: 0o600 });
  if (owner.uid) chownSync(path, owner.uid, owner.gid);
  return path;
}

export class Postgresql {
  log = [];
  // When PostgreSQL was promoted for the last time, in milliseconds.
  promoted = 0;

  constructor(parent, name, port, password) {
    Object.assign(this, { name, port, password });
    this.folder = ownFolder(parent, name);
    this.data = join(this.folder, "data");
    servers.push(this);
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

  // The first process of PostgreSQL, while it runs. A file that a killed one has left may name a process
  // that is not of PostgreSQL.
  postmaster() {
    try {
      const [pid] = readFileSync(join(this.data, "postmaster.pid"), "utf8").split("\n");
      return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(this.data) ? Number(pid) : undefined;
    } catch {
      return undefined;
    }
  }

  // Kills PostgreSQL with all its processes.
  killPostgresql() {
    const pid = this.postmaster();
    if (!pid) return;
    const all = [pid];
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
      // A process that is ending has none, and 0 would be the group of this program.
      all.push(...children.split(" ").map(Number).filter((it) => it > 0));
    } catch {}
    for (const one of all) {
      try {
        process.kill(one, "SIGKILL");
      } catch {}
    }
  }

  url(database = "postgres") {
    return `postgresql://postgres:${this.password}@127.0.0.1:${this.port}/${database}`;
  }

  async sql(text, database) {
    const args = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text, "-d", this.url(database)];
    const { stdout } = await promisify(execFile)("psql", args);
    return stdout.split("\n").filter((line) => line !== "");
  }
}
