// The processes of the page, on machines that are folders.

import { copyFileSync, chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { Nats, NatsServer, Node } from "../cluster/processes.mjs";
import { BIN, Etcd, give, Member, ownFolder, Patroni } from "../patroni/members.mjs";

// What makes a failover quick: settings of Patroni, in seconds.
export const PATRONI = { ttl: 5, loop_wait: 1, retry_timeout: 2 };
// What the page has, and what the test has instead, also to make PostgreSQL light.
const QUICK = [
  ["ttl: 30", `ttl: ${PATRONI.ttl}`],
  ["loop_wait: 10", `loop_wait: ${PATRONI.loop_wait}`],
  ["retry_timeout: 10", `retry_timeout: ${PATRONI.retry_timeout}`],
  ["/usr/lib/postgresql/15/bin", BIN],
];
const light = (folder) => `
    fsync: "off"
    max_wal_size: 256MB
    shared_buffers: 32MB
    log_line_prefix: "%m "
    log_timezone: UTC
    unix_socket_directories: ${folder}
`;

// Servers with a name and a log.
export const started = [];

// Writes the certificates to where the page has them.
async function installCertificates(page) {
  const made = ownFolder(page.folder, "certificates");
  await page.certificates(made);
  for (const { name } of page.machines) {
    const folder = join(page.folder, name, "etc/ssl/tidegate");
    mkdirSync(folder, { recursive: true });
    copyFileSync(join(made, "ca.crt"), join(folder, "ca.crt"));
    copyFileSync(join(made, `${name}.crt`), join(folder, "server.crt"));
    for (const key of ["postgres.key", "nats.key"]) {
      copyFileSync(join(made, `${name}.key`), join(folder, key));
      chmodSync(join(folder, key), 0o600);
    }
    give(join(folder, "postgres.key"));
  }
  return join(made, "ca.crt");
}

// Starts etcd and Patroni on each machine. Returns when there is a leader.
async function startPatroni(page) {
  const etcds = page.machines.map((machine) => {
    const config = join(page.folder, machine.name, "etcd.yml");
    writeFileSync(config, page.file("etcd.yml", machine));
    ownFolder(page.folder, machine.name, "var/lib/etcd/cluster");
    return new Etcd(`etcd ${machine.name}`, ["--config-file", config]);
  });
  started.push(...etcds);
  const members = page.machines.map((machine) => {
    const { name } = machine;
    const folder = join(page.folder, name);
    let text = page.file("patroni.yml", machine);
    for (const [slow, quick] of QUICK) {
      if (!text.includes(slow)) throw new Error(`patroni.yml has no ${slow}`);
      text = text.replace(slow, quick);
    }
    ownFolder(folder, "var/lib/postgresql");
    const data = join(folder, "var/lib/postgresql/15/shop");
    const ports = { port: page.port(machine, 5432), rest: page.port(machine, 8008) };
    const place = { name, folder, data, password: page.secret("postgres"), ...ports };
    return new Member(place, text.trimEnd() + light(folder));
  });
  started.push(...members);
  const cluster = new Patroni(members, etcds);
  await cluster.startMembers(3);
  return cluster;
}

async function startNats(page) {
  const servers = page.machines.map((machine) => {
    const folder = join(page.folder, machine.name);
    const store = join(folder, "var/lib/nats");
    mkdirSync(store, { recursive: true });
    const text = () => page.file("nats-server.conf", machine);
    return new NatsServer({ store, text, port: page.port(machine, 4222), config: join(folder, "nats.conf") });
  });
  const nats = new Nats(servers);
  await nats.start();
  return nats;
}

const settingsFile = (page, { name }) => join(page.folder, name, "tidegate.toml");
const keyFile = (page, { name }) => join(page.folder, name, "etc/tidegate/master.key");

// Writes the settings of the nodes. Returns the file for the master key of the first machine.
export function writeSettings(page) {
  for (const machine of page.machines) {
    const text = page.file("tidegate.toml", machine);
    writeFileSync(settingsFile(page, machine), text, { mode: 0o600 });
    mkdirSync(join(page.folder, machine.name, "etc/tidegate"));
  }
  return keyFile(page, page.machines[0]);
}

// Copies the master key of the first machine to the others.
export function shareKey(page) {
  const [first, ...others] = page.machines;
  for (const machine of others) copyFileSync(keyFile(page, first), keyFile(page, machine));
}

// Starts the node of a machine.
export function startNode(page, machine, authority) {
  const config = settingsFile(page, machine);
  return Node.start({ config }, machine.name, { SSL_CERT_FILE: authority });
}

// Starts all but the nodes and HAProxy.
export async function startServers(page) {
  for (const { name } of page.machines) ownFolder(page.folder, name);
  const authority = await installCertificates(page);
  const [cluster, nats] = await Promise.all([startPatroni(page), startNats(page)]);
  return { authority, cluster, nats };
}
