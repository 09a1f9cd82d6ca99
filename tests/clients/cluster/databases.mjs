// Several databases on a PostgreSQL of their own: each is read once for all nodes.

import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

import { settings } from "./cluster.mjs";
import { eventually, Node, place, psql } from "./processes.mjs";
import { signIn, Subscriber, token } from "./subscriber.mjs";

const TENANTS = ["club", "demo", "shop"];
const ROWS = 50;

// The administrator's address of a tenant's database.
function inside(demo, tenant) {
  const database = new URL(demo.database);
  database.pathname = `/${tenant}`;
  return { database: database.href };
}

async function createTenants(demo) {
  const passwords = join(demo.folder, "password");
  await writeFile(passwords, `${signIn.password}\n`);
  for (const tenant of TENANTS) {
    if (tenant !== "demo") {
      await demo.command(["tenant", "create", tenant, "--password-file", passwords]);
      const uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
      await demo.command(["client", "create", tenant, "App", "--id", tenant, "--public", ...uri]);
    }
    const table = "CREATE TABLE ticks (id bigint PRIMARY KEY, note text)";
    await psql(inside(demo, tenant), `${table}; ALTER TABLE ticks OWNER TO ${tenant}`);
  }
}

// Subscribes the owner of each database at each node.
async function subscribe(nodes) {
  const subscribers = [];
  for (const tenant of TENANTS) {
    const client = tenant === "demo" ? signIn.client_id : tenant;
    const bearer = await token(nodes[0].url, tenant, { database: tenant, client_id: client });
    for (const node of nodes) {
      const name = `owner of ${tenant} at ${node.name}`;
      subscribers.push(new Subscriber(name, () => [node], node, bearer));
    }
  }
  await eventually("all subscribe", () => subscribers.every((it) => it.isReady));
  return subscribers;
}

// Waits until each database has one stream, one slot and no more.
async function oneOfEach(demo) {
  await eventually("one stream and one slot for each database", async () => {
    const slots = await psql(demo, "SELECT database FROM pg_replication_slots WHERE active ORDER BY 1");
    const [counts] = await psql(
      demo,
      "SELECT (SELECT count(*) FROM pg_replication_slots), (SELECT count(*) FROM pg_stat_replication)",
    );
    return `${slots}` === `${TENANTS}` && counts === `${TENANTS.length}|${TENANTS.length}`;
  });
}

// Writes rows into each database, and checks that the subscribers get all rows so far.
async function write(demo, first, subscribers) {
  const last = first + ROWS - 1;
  for (const tenant of TENANTS) {
    await psql(inside(demo, tenant), `INSERT INTO ticks SELECT generate_series(${first}, ${last})`);
  }
  const expected = Array.from({ length: last }, (_, index) => index + 1);
  for (const it of subscribers) {
    await eventually(`${it.name} has all rows`, () => it.ids.length >= last);
    assert.deepEqual([it.ids, it.resyncs], [expected, []], it.name);
  }
}

export const databasesSteps = {
  async "three databases have three streams and three slots"() {
    const demo = await place();
    await createTenants(demo);
    const nodes = [];
    // The servers also keep the changes of the other cluster.
    const own = { ...settings, TIDEGATE_BUS_BYTES: "64MiB" };
    for (const name of ["one", "two", "three"]) nodes.push(await Node.start(demo, name, own));
    const subscribers = await subscribe(nodes);
    await oneOfEach(demo);
    await write(demo, 1, subscribers);
    const [victim, ...others] = nodes;
    const left = subscribers.filter((it) => it.own !== victim);
    for (const it of subscribers) if (!left.includes(it)) await it.end();
    await victim.stop("SIGKILL");
    await write(demo, ROWS + 1, left);
    await oneOfEach(demo);
    for (const it of left) await it.end();
    await Promise.all(others.map((it) => it.stop("SIGTERM")));
    await demo.stop();
  },
};
