// Clients that write and read over HTTP, and keep what they were told.

// The node that answered. A request id begins with the number of the node's process.
export const nodeOf = (headers) => headers.get("x-request-id")?.split("-")[0];

class Caller {
  answers = 0;
  // What went wrong: every answer but a success, and every connection that broke.
  failures = [];
  // The nodes that answered, one entry for each change.
  nodes = [];

  constructor(url, name, bearer) {
    Object.assign(this, { url, name, bearer });
    this.ended = false;
  }

  start() {
    this.loop = this.run();
    return this;
  }

  async end() {
    this.ended = true;
    await this.loop;
  }

  // Sends a request. Returns the body of a success.
  async ask(path, body) {
    try {
      const answer = await fetch(`${this.url}${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", Authorization: `Bearer ${this.bearer}` },
        body: JSON.stringify(body),
      });
      const text = await answer.text();
      const node = nodeOf(answer.headers);
      if (node !== this.nodes.at(-1)) this.nodes.push(node);
      this.answers += 1;
      const told = answer.headers.get("content-type")?.includes("json") ? JSON.parse(text) : {};
      if (answer.status === 200 && !told.errors) return told;
      this.failures.push(`${answer.status} ${text}`);
    } catch (error) {
      this.failures.push(`${error} ${error.cause}`);
    }
  }
}

// Inserts rows, and reads each again.
export class Writer extends Caller {
  confirmed = [];

  async run() {
    const path = "/api/graphql/schema/public";
    for (let number = 1; !this.ended; number += 1) {
      const id = `${this.name} ${number}`;
      const query = `mutation { insertMarks(data: {id: "${id}"}) { id } }`;
      if (!(await this.ask(path, { query }))) continue;
      this.confirmed.push(id);
      const told = await this.ask(path, { query: `{ getMarks(where: {id: "${id}"}) { id } }` });
      if (told && told.data.getMarks.length !== 1) this.failures.push(`${id} is not there`);
    }
  }
}

// Runs statements that take longer than a node needs to notice that it should stop.
export class Sleeper extends Caller {
  async run() {
    while (!this.ended) await this.ask("/api/v4/sql", { q: "SELECT pg_sleep(2)" });
  }
}
