// A subscriber that goes on at another node when its socket ends, and keeps what it was told.

import WebSocket from "ws";
import { sleep } from "./processes.mjs";

export { WebSocket };

const QUERY = "subscription { TicksMessageAdded { id note } }";

// The body of a sign-in as the demo's owner.
export const signIn = {
  grant_type: "password",
  username: "demo",
  password: "demo1234",
  database: "demo",
  client_id: "demo-app",
};

export async function token(url, username = signIn.username, more = {}) {
  const answer = await fetch(`${url}/api/v4/oauth`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ ...signIn, username, ...more }),
  });
  const body = await answer.json();
  if (!body.access_token) throw new Error(JSON.stringify(body));
  return body.access_token;
}

export class Subscriber {
  ids = [];
  // When each came, in milliseconds.
  times = [];
  resyncs = [];
  errors = [];
  // How its sockets were closed.
  codes = [];
  // When the last event came.
  last = 0;

  // `nodes` returns the nodes that run. The subscriber prefers `own`, and takes any other when that
  // is gone.
  constructor(name, nodes, own, bearer) {
    Object.assign(this, { name, nodes, own, bearer });
    this.ended = false;
    this.isReady = false;
    this.loop = this.run();
  }

  async run() {
    for (this.failures = 0; !this.ended; this.failures += 1) {
      const nodes = this.nodes().toSorted((one, other) => (other === this.own) - (one === this.own));
      const node = nodes[this.failures % nodes.length];
      if (node) await this.listen(node).catch((error) => this.errors.push(String(error)));
      if (!this.ended) await sleep(100);
    }
  }

  listen(node) {
    return new Promise((done) => {
      const socket = new WebSocket(`${node.url.replace("http", "ws")}/?token=${this.bearer}`);
      this.socket = socket;
      this.isReady = false;
      socket.on("error", (error) => this.errors.push(String(error)));
      socket.on("close", (code) => {
        if (!this.ended) this.codes.push(code);
        done();
      });
      socket.on("open", () =>
        socket.send(
          JSON.stringify({
            type: "subscribe",
            id: "1",
            schema: "public",
            query: QUERY,
            ...(this.cursor && { after: this.cursor }),
          }),
        ),
      );
      socket.on("message", (text) => this.take(JSON.parse(text), socket));
    });
  }

  take(message, socket) {
    if (message.type === "subscribe_ack") {
      this.isReady = true;
      this.failures = -1;
    } else if (message.type === "subscription") {
      for (const row of message.data.TicksMessageAdded) {
        this.ids.push(Number(row.id));
        this.times.push(performance.now());
      }
      this.cursor = message.cursor;
      this.last = Date.now();
    } else if (message.type === "resync") {
      this.resyncs.push({ ...message, after: this.ids.length });
      this.cursor = message.cursor ?? this.cursor;
    } else {
      this.errors.push(JSON.stringify(message));
      socket.close();
    }
  }

  // The longest time without an event from `since` (`performance.now()`) to the last event.
  longestSilence(since) {
    const times = [since, ...this.times.filter((it) => it > since)];
    return Math.max(0, ...times.slice(1).map((time, index) => time - times[index]));
  }

  // The node at which the subscriber is.
  at() {
    return this.nodes().find((it) => this.socket?.url.startsWith(it.url.replace("http", "ws")));
  }

  async end() {
    this.ended = true;
    this.socket?.close();
    await this.loop;
  }
}
