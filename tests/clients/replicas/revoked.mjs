// What users still read after their rights were taken away on the primary.

import assert from "node:assert/strict";
import { eventually, psql, sleep } from "../cluster/processes.mjs";
import { SCHEMA, signIn } from "./pairs.mjs";

// The time after which no read shows the row, in milliseconds.
export const LIMIT = 1000;
const PASSWORD = "ann-12345";

// Give and take a right of a user `u` on a table `t`: SQL, or a request of the owner.
const RIGHTS = {
  table: {
    give: (u, t) => `GRANT SELECT ON ${t} TO ${u}`,
    take: (u, t) => `REVOKE SELECT ON ${t} FROM ${u}`,
  },
  column: {
    give: (u, t) => `GRANT SELECT (id, note) ON ${t} TO ${u}`,
    take: (u, t) => `REVOKE SELECT (note) ON ${t} FROM ${u}`,
  },
  membership: {
    give: (u, t) => `CREATE ROLE ${t}_readers; GRANT SELECT ON ${t} TO ${t}_readers; GRANT ${t}_readers TO ${u}`,
    take: (u, t) => `REVOKE ${t}_readers FROM ${u}`,
  },
  policy: {
    give: (u, t) => `GRANT SELECT ON ${t} TO ${u}; ALTER TABLE ${t} ENABLE ROW LEVEL SECURITY;
      CREATE POLICY seen ON ${t} USING (true)`,
    take: (u, t) => `DROP POLICY seen ON ${t}`,
  },
  disabled: {
    give: (u, t) => `GRANT SELECT ON ${t} TO ${u}`,
    request: { method: "PATCH", body: { disabled: true } },
  },
  dropped: {
    give: (u, t) => `GRANT SELECT ON ${t} TO ${u}`,
    request: { method: "DELETE" },
  },
};

let number = 0;

// A right of a user of its own, who reads at all nodes.
class Right {
  constructor(name, { demo, nodes, owner }) {
    number += 1;
    Object.assign(this, { name, demo, nodes, owner, user: `ann${number}`, table: `secrets${number}` });
    this.secret = `a row of ${this.table}`;
  }

  // Sends a request of the owner about users.
  async request(method, path, body) {
    const answer = await fetch(`${this.nodes[0].url}/api/v4/users${path}`, {
      method,
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.owner}` },
      body: body && JSON.stringify(body),
      redirect: "manual",
    });
    assert(answer.status < 400, `${method} ${path}: ${answer.status} ${await answer.text()}`);
  }

  get names() {
    return [`"demo/${this.user}"`, this.table];
  }

  async give() {
    const { table, secret } = this;
    await this.request("POST", "", { name: this.user, password: PASSWORD });
    await psql(
      this.demo,
      `CREATE TABLE ${table} (id int PRIMARY KEY, note text); INSERT INTO ${table} VALUES (1, '${secret}');
       ALTER TABLE ${table} OWNER TO demo; ${RIGHTS[this.name].give(...this.names)}`,
    );
    const query = `{ get${table[0].toUpperCase()}${table.slice(1)} { id note } }`;
    this.readers = [];
    for (const node of this.nodes) {
      const bearer = await signIn(node, this.user, PASSWORD);
      this.readers.push(new Reader(node, bearer, query, secret));
    }
    this.loops = this.readers.map((reader) => reader.run());
    await eventually(`${this.name} is given`, () => this.readers.every((it) => it.shown.length > 10));
  }

  async take() {
    const { take, request } = RIGHTS[this.name];
    if (take) await psql(this.demo, take(...this.names));
    else await this.request(request.method, `/${this.user}`, request.body);
    this.taken = performance.now();
  }

  // Returns for how long reads showed the row, in milliseconds.
  async end() {
    for (const reader of this.readers) reader.ended = true;
    await Promise.all(this.loops);
    const after = Math.min(...this.readers.map((it) => it.began.filter((at) => at > this.taken).length));
    assert(after > 10, `${this.name}: only ${after} reads`);
    return Math.max(...this.readers.map((it) => it.shown.at(-1))) - this.taken;
  }
}

// Reads all the time.
class Reader {
  // When reads began, and when those began that showed the row.
  began = [];
  shown = [];
  ended = false;

  constructor(node, bearer, query, secret) {
    Object.assign(this, { node, bearer, query, secret });
  }

  async run() {
    const options = {
      method: "POST",
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.bearer}` },
      body: JSON.stringify({ query: this.query }),
    };
    while (!this.ended) {
      const began = performance.now();
      const answer = await fetch(`${this.node.url}${SCHEMA}`, options);
      const text = await answer.text();
      this.began.push(began);
      if (text.includes(this.secret)) this.shown.push(began);
      await sleep(20);
    }
  }
}

export const ALL = Object.keys(RIGHTS);

// Gives rights, calls `before`, and takes the rights. Returns for how long reads showed the rows after
// that, in milliseconds.
export async function revoke(place, names, before = async () => {}) {
  const rights = names.map((name) => new Right(name, place));
  for (const right of rights) await right.give();
  await before();
  for (const right of rights) await right.take();
  await sleep(LIMIT + 500);
  const times = {};
  for (const right of rights) times[right.name] = Math.round(await right.end());
  return times;
}
