// Clients that write and read over HTTP, and keep what they were answered.

import { sleep } from "../cluster/processes.mjs";

// Sends a statement. Anything but success and a 503 that may be tried again is a wrong answer.
async function send(client, q, params) {
  const began = Date.now();
  const answer = await fetch(`${client.node.url}/api/v4/sql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${client.bearer}` },
    body: JSON.stringify({ q, params }),
  });
  const body = await answer.json();
  const ended = Date.now();
  client.longest = Math.max(client.longest, ended - began);
  client.statuses[answer.status] = (client.statuses[answer.status] ?? 0) + 1;
  if (answer.status === 200) {
    client.successes.push(ended);
    return body;
  }
  const retryable = answer.status === 503 && answer.headers.has("retry-after");
  if (!retryable || body.errorCode !== "DATABASE_UNAVAILABLE") {
    client.wrong.push(`${q}: ${answer.status} ${JSON.stringify(body)}`);
  }
  await sleep(20);
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
