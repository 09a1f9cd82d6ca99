// Rights and policies, which every node checks for its own subscribers.

import assert from "node:assert/strict";

import { cluster, demo } from "./cluster.mjs";
import { eventually, psql } from "./processes.mjs";
import { token, WebSocket } from "./subscriber.mjs";

const PEOPLE = ["rita", "sam"];
const role = (name) => `demo/${name}`;

// A subscription of a person to the memos, at one node.
class Watcher {
  // The changes, as `INSERT 7`.
  events = [];
  gaps = [];
  errors = [];

  constructor(node, name, bearer) {
    this.name = `${name} at ${node.name}`;
    this.socket = new WebSocket(`${node.url.replace("http", "ws")}/?token=${bearer}`);
    this.socket.on("open", () =>
      this.socket.send(JSON.stringify({ type: "subscription", id: "n", schema: "public", rel: "memos" })),
    );
    this.socket.on("error", (error) => this.errors.push(String(error)));
    this.socket.on("message", (text) => this.take(JSON.parse(text)));
  }

  take(message) {
    if (message.type === "subscription_ack") {
      this.isReady = true;
    } else if (message.type === "batch") {
      const { full_data: _, ...lists } = message.batch.demo["public.memos"];
      for (const [operation, keys] of Object.entries(lists)) {
        for (const [, id] of keys) this.events.push(`${operation} ${id}`);
      }
    } else if (message.type === "resync") {
      this.gaps.push(message.reason);
    } else {
      this.errors.push(message.error);
    }
  }

  // The greatest id of a row in the events.
  get last() {
    return Math.max(0, ...this.events.map((it) => Number(it.split(" ")[1])));
  }
}

async function signUp() {
  const [{ url }] = cluster.nodes;
  const answer = await fetch(`${url}/api/v4/users`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${cluster.bearer}` },
    body: JSON.stringify(PEOPLE.map((name) => ({ name, password: "demo1234" }))),
  });
  assert.equal(answer.status, 201, await answer.text());
}

// Subscribes each person, and the owner of the table, at each node. Returns the subscriptions by name.
async function watch() {
  const readers = PEOPLE.map((name) => `"${role(name)}"`);
  await psql(
    demo,
    `CREATE TABLE memos (id int PRIMARY KEY, who text, number int DEFAULT 0);
     ALTER TABLE memos OWNER TO demo; ALTER TABLE memos ENABLE ROW LEVEL SECURITY;
     CREATE POLICY own ON memos USING (who = current_user); GRANT SELECT ON memos TO ${readers}`,
  );
  const watchers = {};
  for (const name of ["demo", ...PEOPLE]) {
    const bearer = await token(cluster.nodes[0].url, name);
    watchers[name] = cluster.nodes.map((node) => new Watcher(node, name, bearer));
  }
  await eventually("all subscribe", () => Object.values(watchers).flat().every((it) => it.isReady));
  return watchers;
}

// The person whose row it is.
const ownerOf = (id) => PEOPLE[id % PEOPLE.length];
const insert = (id) => `INSERT INTO memos VALUES (${id}, '${role(ownerOf(id))}')`;

// Inserts and updates rows, and deletes each third. Checks that each person gets the events of the own rows,
// and the owner of the table those of all.
async function checkChanges(watchers) {
  const changes = [];
  for (let id = 1; id <= 60; id += 1) {
    changes.push([id, "INSERT", insert(id)], [id, "UPDATE", `UPDATE memos SET number = 1 WHERE id = ${id}`]);
    if (id % 3 === 0) changes.push([id, "DELETE", `DELETE FROM memos WHERE id = ${id}`]);
  }
  await psql(demo, changes.map(([, , sql]) => sql).join("; "), true);
  for (const [name, all] of Object.entries(watchers)) {
    const own = changes.filter(([id]) => name === "demo" || ownerOf(id) === name);
    const expected = own.map(([id, operation]) => `${operation} ${id}`).sort();
    for (const it of all) {
      await eventually(`${it.name} has the events`, () => it.events.length >= expected.length);
      assert.deepEqual(it.events.toSorted(), expected, it.name);
    }
  }
  await psql(demo, "TRUNCATE memos");
  for (const it of Object.values(watchers).flat()) {
    await eventually(`${it.name} gets the gap`, () => it.gaps.length > 0);
    assert.deepEqual([it.gaps, it.errors], [["truncated"], []], it.name);
  }
}

// Takes the right of one person and the policy of the other while rows are written. Checks that neither gets
// an event of a row that was written after that, at any node.
async function checkRevoked({ demo: all, rita, sam }) {
  let [begun, isRunning] = [100, true];
  const writer = (async () => {
    while (isRunning) {
      const first = begun + 1;
      begun += 10;
      const each = Array.from({ length: 10 }, (_, index) => insert(first + index));
      await psql(demo, each.join("; "), true);
    }
  })();
  // Waits until these subscriptions have rows that were begun after now. Returns the last row before that.
  const goOn = async (watchers) => {
    const before = begun;
    await eventually("events go on", () => watchers.every((it) => it.last > before + 20));
    return before;
  };
  await goOn([...all, ...rita, ...sam]);
  await psql(demo, `REVOKE SELECT ON memos FROM "${role("rita")}"`);
  const revoked = await goOn([...all, ...sam]);
  await psql(demo, "ALTER POLICY own ON memos USING (false)");
  const hidden = await goOn(all);
  await eventually("the subscriptions without the right end", () => rita.every((it) => it.errors.length > 0));
  isRunning = false;
  await writer;
  await eventually("the owner of the table has all events", () => all.every((it) => it.last === begun));
  for (const it of rita) {
    assert(it.last <= revoked, `${it.name}: row ${it.last}, the right was gone before ${revoked + 1}`);
    assert.deepEqual(it.errors, ["not_allowed"], it.name);
  }
  for (const it of sam) {
    assert(it.last <= hidden, `${it.name}: row ${it.last}, the policy was another before ${hidden + 1}`);
    assert(!it.events.some((event) => ownerOf(Number(event.split(" ")[1])) !== "sam"), it.name);
    assert.deepEqual(it.errors, [], it.name);
  }
}

export const rightsSteps = {
  async "rights and policies are checked on every node"() {
    await signUp();
    const watchers = await watch();
    await checkChanges(watchers);
    await checkRevoked(watchers);
    for (const it of Object.values(watchers).flat()) it.socket.terminate();
    await psql(demo, "DROP TABLE memos");
  },
};
