// Servers of PostgreSQL 18: a primary, and standbys that copy the slots of subscribed databases
// (PostgreSQL, "Logical Replication Failover").

import { once } from "node:events";
import { join } from "node:path";

import { eventually, freePort } from "../cluster/processes.mjs";
import { launch, ownFile, ownFolder, Postgresql, run } from "./postgresql.mjs";

const NAMES = ["pg1", "pg2", "pg3", "pg4", "pg5"];
const PASSWORD = "postgres-secret";
const PROGRAMS = process.env.POSTGRESQL_PROGRAMS;
const OURS = "slot_name ~ '^tidegate' AND invalidation_reason IS NULL";
const SETTINGS = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
wal_level = logical
max_slot_wal_keep_size = '1GB'
hot_standby_feedback = on
sync_replication_slots = on
wal_log_hints = on
fsync = off
shared_buffers = '32MB'
max_wal_size = '256MB'
wal_keep_size = '256MB'
log_line_prefix = '%m '
log_timezone = 'UTC'
`;

class Server extends Postgresql {
  constructor(folder, name, port) {
    super(folder, name, port, PASSWORD);
    this.passwordFile = ownFile(join(this.folder, "password"), PASSWORD);
  }

  program(name, ...args) {
    const env = { PATH: process.env.PATH, LC_ALL: "C", PGPASSWORD: PASSWORD };
    return run(join(PROGRAMS, name), args, { cwd: this.folder, env });
  }

  async create() {
    await this.program("initdb", "--username=postgres", `--pwfile=${this.passwordFile}`, "--auth=scram-sha-256",
      "--encoding=UTF8", "--locale=C", "--no-sync", this.data);
    ownFile(join(this.data, "postgresql.conf"), SETTINGS);
    await this.start();
  }

  async start() {
    const args = ["-D", this.data, "-p", String(this.port)];
    this.child = launch(join(PROGRAMS, "postgres"), args, this, { cwd: this.folder });
    await eventually(`${this.name} runs`, () => this.sql("SELECT 1").then(() => true, () => false));
  }

  get runs() {
    return this.child?.exitCode === null && this.child.signalCode === null;
  }

  async kill() {
    const ended = once(this.child, "exit");
    this.killPostgresql();
    await ended;
  }

  async stop() {
    this.child.kill("SIGINT");
    await once(this.child, "exit");
  }

  promote() {
    return this.program("pg_ctl", "promote", "--wait", "--pgdata", this.data);
  }

  // Makes this server a standby of another: a new one, one that was a primary, or a standby that runs.
  async follow(primary) {
    await primary.sql(`SELECT pg_create_physical_replication_slot('${this.name}', true)`);
    const conninfo = `host=127.0.0.1 port=${primary.port} user=postgres password=${PASSWORD} dbname=postgres`;
    if (this.runs) {
      await this.set("primary_conninfo", `'${conninfo}'`);
    } else {
      await this.copy(conninfo);
      // PostgreSQL reads this file after its own. After the copy it is that of the other server.
      ownFile(join(this.data, "postgresql.auto.conf"),
        `primary_conninfo = '${conninfo}'\nprimary_slot_name = '${this.name}'\n`);
      ownFile(join(this.data, "standby.signal"), "");
      await this.start();
    }
    await eventually(`${this.name} streams`, async () => {
      const [line] = await this.sql("SELECT status, sender_port FROM pg_stat_wal_receiver");
      return line === `streaming|${primary.port}`;
    });
  }

  copy(conninfo) {
    return this.child
      ? this.program("pg_rewind", `--target-pgdata=${this.data}`, `--source-server=${conninfo}`, "--no-sync")
      : this.program("pg_basebackup", `--dbname=${conninfo}`, `--pgdata=${this.data}`, "--checkpoint=fast", "--no-sync");
  }

  async set(name, value) {
    await this.sql(`ALTER SYSTEM SET ${name} = ${value}`);
    await this.sql("SELECT pg_reload_conf()");
  }

  // How much of the log the server has, in bytes.
  async received() {
    const [bytes] = await this.sql("SELECT pg_last_wal_receive_lsn() - '0/0'");
    return Number(bytes);
  }
}

export class Servers {
  static async start(folder) {
    const servers = new Servers();
    const parent = ownFolder(folder, "servers");
    servers.all = [];
    for (const name of NAMES) servers.all.push(new Server(parent, name, await freePort()));
    [servers.primary] = servers.all;
    await servers.primary.create();
    await servers.rebuild();
    return servers;
  }

  get standbys() {
    return this.all.filter((it) => it.runs && it !== this.primary);
  }

  get adminUrl() {
    const hosts = this.all.map(({ port }) => `127.0.0.1:${port}`);
    return `postgresql://postgres:${PASSWORD}@${hosts}/postgres?target_session_attrs=read-write`;
  }

  // Makes a standby of each server that was a primary.
  async rebuild() {
    for (const it of this.all) if (!it.runs) await it.follow(this.primary);
    await this.synchronize();
  }

  // From now on no event of a commit comes before all standbys have it.
  synchronize() {
    const names = this.standbys.map((it) => it.name);
    return this.primary.set("synchronized_standby_slots", `'${names}'`);
  }

  // Waits until each standby has a copy of the slot with which the events go on after a promotion. A slot
  // can be copied when it is ahead of the log with which the standby began. That takes a minute or two by
  // itself: PostgreSQL moves slots when it logs the running transactions, and a standby looks less and less
  // often while no slot moves, so another slot moves all the time.
  async whole() {
    await this.primary.sql(
      "SELECT pg_create_logical_replication_slot('moves', 'pgoutput', failover => true) " +
        "WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'moves')",
    );
    await eventually("the standbys have copies of the slot", async () => {
      await this.primary.sql("SELECT pg_log_standby_snapshot()");
      await this.primary.sql("SELECT pg_replication_slot_advance('moves', pg_current_wal_lsn())");
      const read = await this.primary.sql(`SELECT active FROM pg_replication_slots WHERE ${OURS}`);
      const copies = await Promise.all(this.standbys.map((it) =>
        it.sql(`SELECT slot_name FROM pg_replication_slots WHERE ${OURS} AND synced AND NOT temporary`),
      ));
      return read.join() === "t" && copies.every((it) => it.length === 1);
    }, 120_000);
  }

  // Waits until the slot and its copies begin after the commit of a cursor (a digit, the log, the
  // commit, the index).
  async passed(cursor) {
    const commit = BigInt(`0x${cursor.slice(9, 25)}`);
    const begin = `SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots WHERE ${OURS}`;
    await eventually("the slots begin after the cursor", async () => {
      await this.whole();
      const slots = await Promise.all([this.primary, ...this.standbys].map((it) => it.sql(begin)));
      return slots.every(([bytes]) => bytes && BigInt(bytes) > commit);
    }, 120_000);
  }

  // Stops the processes that send the log to the standbys. They die with the primary.
  async leaveBehind() {
    const standbys = this.standbys.map((it) => `'${it.name}'`);
    const senders = `SELECT active_pid FROM pg_replication_slots WHERE slot_name IN (${standbys})`;
    for (const pid of await this.primary.sql(senders)) process.kill(Number(pid), "SIGSTOP");
  }

  // Kills the primary and promotes the standby that has the most of the log.
  async failOver() {
    await this.primary.kill();
    const standbys = await Promise.all(
      this.standbys.map(async (server) => ({ server, received: await server.received() })),
    );
    standbys.sort((one, other) => other.received - one.received);
    this.primary = standbys[0].server;
    await this.primary.promote();
  }

  // Makes the other standbys follow the new primary.
  async follow() {
    for (const it of this.standbys) await it.follow(this.primary);
    await this.synchronize();
  }

  async stop() {
    for (const server of [...this.standbys, this.primary]) await server.stop();
  }
}
