// Clients that write and read over HTTP, and keep what they were answered.

import { sleep } from "../cluster/processes.mjs";

// Sends a statement. Anything but success and what the client tolerates is a wrong answer.
async function send(client, q, params) {
  const began = Date.now();
  const answer = await request(client, q, params).catch((error) => ({ error: String(error) }));
  const ended = Date.now();
  client.longest = Math.max(client.longest, ended - began);
  const outcome = answer.status ?? answer.error;
  client.statuses[outcome] = (client.statuses[outcome] ?? 0) + 1;
  if (answer.status === 200) {
    client.successes.push(ended);
    return answer.body;
  }
  if (!client.tolerates(answer)) client.wrong.push(`${q}: ${JSON.stringify(answer)}`);
  await sleep(20);
}

async function request(client, q, params) {
  const answer = await fetch(`${client.node.url}/api/v4/sql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${client.bearer}` },
    body: JSON.stringify({ q, params }),
  });
  const isJson = answer.headers.get("content-type")?.includes("json");
  const body = await (isJson ? answer.json() : answer.text());
  return { status: answer.status, body, retryAfter: answer.headers.get("retry-after") };
}

class Client {
  statuses = {};
  successes = [];
  wrong = [];
  longest = 0;

  constructor(node, bearer) {
    Object.assign(this, { node, bearer });
    this.ended = false;
  }

  // Whether the failure is one that may be tried again.
  tolerates({ status, body, retryAfter }) {
    return status === 503 && retryAfter !== null && body.errorCode === "DATABASE_UNAVAILABLE";
  }

  start() {
    this.loop = this.run().catch((error) => this.wrong.push(String(error)));
    return this;
  }

  // When the first request succeeded that ended after `time`.
  successAfter(time) {
    return this.successes.find((it) => it > time);
  }

  async end() {
    this.ended = true;
    await this.loop;
  }
}

// Writes rows with growing ids, one after the other. No id is written twice.
export class Writer extends Client {
  confirmed = [];
  id = 0;

  async run() {
    while (!this.ended) {
      this.id += 1;
      const { id } = this;
      if (await send(this, "INSERT INTO ticks VALUES (:id, 'x')", { id })) this.confirmed.push(id);
      await sleep(2);
    }
  }
}

// Reads the row that was confirmed last.
export class Reader extends Client {
  constructor(writer) {
    super(writer.node, writer.bearer);
    this.writer = writer;
  }

  async run() {
    while (!this.ended) {
      await sleep(10);
      const id = this.writer.confirmed.at(-1);
      if (!id) continue;
      const body = await send(this, "SELECT count(*) AS rows FROM ticks WHERE id = :id", { id });
      if (body && Number(body.data[0].rows) !== 1) {
        this.wrong.push(`row ${id}: ${JSON.stringify(body)}`);
      }
    }
  }
}
