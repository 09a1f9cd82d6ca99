// Writers and readers. A writer has a row of its own at one node, and counts its number up; what is read
// at the three nodes then has at least this number.

import { sleep } from "../cluster/processes.mjs";
import { WebSocket } from "../cluster/subscriber.mjs";

// The longest time from a write to its read, in milliseconds. Within it both standbys replay the write.
const LATEST = 400;
export const SCHEMA = "/api/graphql/schema/public";

export async function post(node, path, bearer, body, headers = {}) {
  const answer = await fetch(`${node.url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${bearer}`, ...headers },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  const json = JSON.parse(text || "null");
  if (!answer.ok || json?.errors || json?.error) throw new Error(`${path}: ${answer.status} ${text}`);
  return { json, position: answer.headers.get("tidegate-position") };
}

export async function signIn(node, username = "demo", password = "demo1234") {
  const body = { grant_type: "password", username, password, database: "demo", client_id: "demo-app" };
  return (await post(node, "/api/v4/oauth", "", body)).json.access_token;
}

// The ways to write a number.
const writes = [
  (node, bearer, id, number) =>
    post(node, SCHEMA, bearer, {
      query: `mutation { updatePairs(where: {id: ${id}}, data: {number: ${number}}) { id } }`,
    }),
  (node, bearer, id, number) =>
    post(node, "/api/v4/sql", bearer, {
      q: "UPDATE pairs SET number = :number WHERE id = :id",
      params: { id, number },
    }),
  (node, bearer, id, number) =>
    post(node, "/api/v4/call", bearer, {
      jsonrpc: "2.0",
      method: "setNumber",
      params: { id, number },
      id: 1,
    }),
];

// The ways to read a number.
const reads = [
  async (node, bearer, id, headers) => {
    const query = `{ getPairs(where: {id: ${id}}) { number } }`;
    const { json } = await post(node, SCHEMA, bearer, { query }, headers);
    return json.data.getPairs[0].number;
  },
  async (node, bearer, id, headers) => {
    const call = { jsonrpc: "2.0", method: "numberOf", params: { id }, id: 1 };
    const { json } = await post(node, "/api/v4/call", bearer, call, headers);
    return json.result.data[0].number;
  },
  // Two statements in one snapshot.
  async (node, bearer, id, headers) => {
    const field = `getPairs(where: {id: ${id}}) { number }`;
    const query = `{ a: ${field} b: getPairs(orderBy: {number: desc}, limit: 1) { number } c: ${field} }`;
    const { json } = await post(node, SCHEMA, bearer, { query }, headers);
    return Math.min(json.data.a[0].number, json.data.c[0].number);
  },
];

const any = (list) => list[Math.floor(Math.random() * list.length)];

// What all pairs together gave.
export class Results {
  // How often a read was right, by kind.
  counts = {};
  stale = [];
  failed = [];
  // Reads that nothing ties to the write: how many showed an older number.
  free = { all: 0, older: 0 };
  longest = 0;

  get pairs() {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0);
  }
}

// A socket that is subscribed to one row.
class RowSocket {
  number = 0;
  asked = 0;
  waiting = new Map();
  // Called at the next event.
  told = [];

  constructor(node, bearer, id) {
    Object.assign(this, { id });
    this.socket = new WebSocket(`${node.url.replace("http", "ws")}/?token=${bearer}`);
    this.socket.on("message", (text) => this.take(JSON.parse(text)));
    const query = `subscription { PairsMessageUpdated(where: {id: {eq: ${id}}}) { number } }`;
    this.ready = new Promise((done, failed) => {
      this.socket.on("error", failed);
      this.socket.on("close", () => failed(new Error("the socket was closed")));
      this.waiting.set("subscribed", done);
      this.socket.on("open", () => this.send("event", query));
    });
  }

  send(id, query) {
    this.socket.send(JSON.stringify({ type: "subscribe", id, schema: "public", query }));
  }

  take(message) {
    if (message.type === "subscribe_ack") {
      this.waiting.get("subscribed")();
    } else if (message.type === "subscription") {
      this.number = Math.max(this.number, ...message.data.PairsMessageUpdated.map((it) => it.number));
      this.cursor = message.cursor;
      for (const told of this.told.splice(0)) told();
    } else if (message.type === "next") {
      this.waiting.get(message.id)?.(message);
      this.waiting.delete(message.id);
    } else if (message.type !== "complete") {
      throw new Error(JSON.stringify(message));
    }
  }

  // Waits for the event of a number. Returns its cursor.
  async event(number) {
    while (this.number < number) await new Promise((done) => this.told.push(done));
    return this.cursor;
  }

  // Reads the row on this socket.
  async read() {
    const id = `${(this.asked += 1)}`;
    const answer = new Promise((done) => this.waiting.set(id, done));
    this.send(id, `{ getPairs(where: {id: ${this.id}}) { number } }`);
    const { data, errors } = await answer;
    if (errors) throw new Error(JSON.stringify(errors));
    return data.getPairs[0].number;
  }
}

export class Pairs {
  number = 0;

  // Writes at the first node, by a session of its own. `reader` is a session that never writes.
  constructor([own, second, third], id, reader, results) {
    Object.assign(this, { own, second, third, id, reader, results });
  }

  async open() {
    this.bearer = await signIn(this.own);
    this.socket = new RowSocket(this.third, this.reader, this.id);
    await this.socket.ready;
    return this;
  }

  // Repeats until `enough` says so.
  async run(enough) {
    while (!enough()) await this.round();
  }

  // A write, and a read of each kind at a random time after it.
  async round() {
    const number = (this.number += 1);
    const { position } = await any(writes)(this.own, this.bearer, this.id, number);
    const after = { "Tidegate-After": position };
    const { own, second, third, bearer, reader, socket, id } = this;
    const checks = [
      this.check("header", number, () => any(reads)(second, reader, id, after)),
      this.check("session", number, () => any(reads)(own, bearer, id)),
      this.check("event", number, async () => {
        const behind = { "Tidegate-After": await socket.event(number) };
        return () => any(reads)(third, reader, id, behind);
      }),
      this.check("socket", number, async () => {
        await socket.event(number);
        return () => socket.read();
      }),
      this.readFreely(number),
    ];
    await Promise.all(checks);
  }

  async check(kind, number, read) {
    const { results } = this;
    try {
      const now = kind === "event" || kind === "socket" ? await read() : read;
      await sleep(any([0, Math.random() * LATEST]));
      const began = performance.now();
      const seen = await now();
      results.longest = Math.max(results.longest, performance.now() - began);
      if (seen < number) results.stale.push(`${kind}, row ${this.id}: ${seen} instead of ${number}`);
      results.counts[kind] = (results.counts[kind] ?? 0) + 1;
    } catch (error) {
      results.failed.push(`${kind}, row ${this.id}: ${error}`);
    }
  }

  // Writes, and reads the row at once by its position and by its session. Returns how long each read took,
  // in milliseconds.
  async readAtOnce() {
    const number = (this.number += 1);
    const { own, second, id, bearer, reader } = this;
    const { position } = await any(writes)(own, bearer, id, number);
    const times = [];
    for (const [node, session, headers] of [
      [second, reader, { "Tidegate-After": position }],
      [own, bearer],
    ]) {
      const began = performance.now();
      const seen = await any(reads)(node, session, id, headers);
      times.push(performance.now() - began);
      if (seen < number) this.results.stale.push(`at once, row ${id}: ${seen} instead of ${number}`);
    }
    return times;
  }

  // Shows that the standbys answer, and are behind.
  async readFreely(number) {
    if (number % 10 !== 0) return;
    const { free, failed } = this.results;
    try {
      free.all += 1;
      free.older += (await reads[0](this.own, this.reader, this.id)) < number;
    } catch (error) {
      failed.push(`free, row ${this.id}: ${error}`);
    }
  }

  end() {
    this.socket.socket.removeAllListeners();
    this.socket.socket.terminate();
  }
}
