// The processes of the cluster: nodes and NATS servers. All end with this program.

import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, chmod, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

export const USER = "tidegate";
export const PASSWORD = "bus-secret";
// The program of the NATS servers.
export const NATS_SERVER = process.env.NATS_SERVER || "nats-server";
const binary = process.env.TIDEGATE_TEST_BINARY;
const children = new Set();
process.on("exit", () => children.forEach((child) => child.kill("SIGKILL")));

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

// Waits until a condition holds.
export async function eventually(what, condition, ms = 30_000) {
  const until = Date.now() + ms;
  let last;
  while (Date.now() < until) {
    last = await condition();
    if (last) return last;
    await sleep(50);
  }
  throw new Error(`${what} did not happen in ${ms} ms`);
}

export function launch(program, args, env, log) {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  child.once("exit", () => children.delete(child));
  child.stdout.resume();
  createInterface({ input: child.stderr }).on("line", (line) => log.push(line));
  return child;
}

// Ends a process that may have ended already.
export async function end(child, signal) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "exit");
}

export async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

// One NATS server of a cluster.
export class NatsServer {
  log = [];
  // The maximum size of its JetStream.
  room = "2GB";

  // `place` has the port, the folder `store` of its JetStream, the file `config`, and the function
  // `text` that makes the configuration for a size.
  constructor(place) {
    Object.assign(this, place);
  }

  async start() {
    await writeFile(this.config, this.text(this.room));
    const from = this.log.length;
    this.child = launch(NATS_SERVER, ["-c", this.config], process.env, this.log);
    await eventually("nats-server is ready", () =>
      this.log.slice(from).some((line) => line.includes("Server is ready")),
    );
  }

  // The version that the running program says it has.
  get version() {
    return this.log.map((line) => / Version: +(\S+)/.exec(line)?.[1]).findLast(Boolean);
  }

  stop(signal = "SIGKILL") {
    return end(this.child, signal);
  }
}

// The configuration of a server without TLS.
function configuration(store, number, ports, routes) {
  return (room) => `server_name: nats${number}
     listen: "127.0.0.1:${ports[number]}"
     jetstream { store_dir: "${store}", max_file_store: ${room} }
     authorization { users = [{ user: "${USER}", password: "${PASSWORD}" }] }
     cluster {
       name: tidegate
       listen: "127.0.0.1:${routes[number]}"
       routes: [${routes.map((port) => `"nats://127.0.0.1:${port}"`)}]
     }`;
}

// Three NATS servers, each of which keeps a copy.
export class Nats {
  constructor(servers) {
    this.servers = servers;
  }

  static async create(folder) {
    const ports = [await freePort(), await freePort(), await freePort()];
    const routes = [await freePort(), await freePort(), await freePort()];
    const servers = ports.map((port, number) => {
      const store = join(folder, `store${number}`);
      const text = configuration(store, number, ports, routes);
      return new NatsServer({ port, store, text, config: join(folder, `nats${number}.conf`) });
    });
    const nats = new Nats(servers);
    await nats.start();
    return nats;
  }

  get port() {
    return this.servers[0].port;
  }

  // The URL of a server, or of a proxy in front of it.
  login(port) {
    return `nats://${USER}:${PASSWORD}@127.0.0.1:${port}`;
  }

  get url() {
    return this.servers.map(({ port }) => this.login(port)).join(",");
  }

  start() {
    return Promise.all(this.servers.map((it) => it.start()));
  }

  stop(signal) {
    return Promise.all(this.servers.map((it) => it.stop(signal)));
  }

  signal(signal) {
    for (const { child } of this.servers) child.kill(signal);
  }

  forget() {
    const options = { recursive: true, force: true };
    return Promise.all(this.servers.map((it) => rm(it.store, options)));
  }

  // Starts servers without messages, and with this maximum size of their JetStream.
  async startAgain(room) {
    await this.stop();
    await this.forget();
    for (const it of this.servers) it.room = room;
    await this.start();
  }
}

export class Node {
  log = [];

  // `place` has the address of PostgreSQL and the file of the master key, or a file with all
  // settings, `config`.
  static async start(place, name, settings) {
    const node = new Node();
    Object.assign(node, { name, settings });
    const own = {
      TIDEGATE_ADMIN_URL: place.adminUrl,
      TIDEGATE_MASTER_KEY_FILE: place.key,
      TIDEGATE_LISTEN: "127.0.0.1:0",
      TIDEGATE_PUBLIC_URL: "http://api.localhost",
      TIDEGATE_INSECURE_HTTP: "true",
    };
    const env = {
      PATH: process.env.PATH,
      ...(place.config ? { TIDEGATE_CONFIG: place.config } : own),
      TIDEGATE_LOG_LEVEL: process.env.CLUSTER_LOG ?? "info",
      ...settings,
    };
    node.child = launch(binary, ["serve"], env, node.log);
    const listening = await eventually(`${name} listens`, () =>
      node.log.find((line) => line.includes('"listening"') || / listening (?!for metrics)/.test(line)),
    );
    node.url = `http://127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(listening)[1]}`;
    await eventually(`${name} is ready`, () => node.readiness().then((it) => it.status === "ready"));
    return node;
  }

  async readiness() {
    const answer = await fetch(`${this.url}/readyz`).catch(() => undefined);
    return answer ? answer.json() : {};
  }

  // The value of a metric, with its labels.
  async metric(name) {
    const answer = await fetch(`${this.url}/metrics`);
    const line = (await answer.text()).split("\n").find((it) => it.startsWith(`${name} `));
    return line === undefined ? undefined : Number(line.slice(name.length + 1));
  }

  reads() {
    return this.metric('tidegate_bus_reader{database="demo"}').then((it) => it === 1);
  }

  signal(signal) {
    this.child.kill(signal);
  }

  stop(signal) {
    return end(this.child, signal);
  }
}

// A demo, whose PostgreSQL and master key the nodes use.
export async function place() {
  const folder = await mkdtemp(join(tmpdir(), "tidegate-cluster-"));
  await chmod(folder, 0o755);
  const data = join(folder, "demo");
  const log = [];
  const child = spawn(binary, ["demo", "--listen", "127.0.0.1:0", "--data-dir", data], {
    env: { ...process.env, TIDEGATE_URL: "" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.on("exit", () => child.kill());
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    log.push(line);
    if (line.startsWith("Ctrl-C")) break;
  }
  child.stdout.resume();
  const env = await readFile(join(data, "demo.env"), "utf8");
  const value = (name) => new RegExp(`^${name}=(.*)$`, "m").exec(env)[1].replaceAll(/["']/g, "");
  const database = value("DATABASE_URL");
  const admin = new URL(database);
  admin.pathname = "/postgres";
  return {
    folder,
    key: join(data, "master.key"),
    url: value("TIDEGATE_URL"),
    database,
    adminUrl: admin.href,
    // Runs a command of the program, with settings.
    command(args, settings) {
      const env = {
        ...settings,
        PATH: process.env.PATH,
        TIDEGATE_ADMIN_URL: admin.href,
        TIDEGATE_MASTER_KEY_FILE: join(data, "master.key"),
      };
      return promisify(execFile)(binary, args, { env });
    },
    async stop() {
      await end(child, "SIGTERM");
      await rm(folder, { recursive: true, force: true });
    },
  };
}

// Runs SQL as the administrator; with `each` every statement is a transaction of its own. Returns the
// rows as lines.
export async function psql(place, sql, each = false) {
  const commands = each ? sql.split("; ") : [sql];
  const args = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", place.database];
  for (const command of commands) args.push("-c", command);
  const { stdout } = await promisify(execFile)("psql", args);
  return stdout.split("\n").filter((line) => line !== "");
}
