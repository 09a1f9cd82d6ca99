// A proxy for TCP that delays, cuts, and swallows what it gets, as a network does.

import { once } from "node:events";
import { connect, createServer } from "node:net";

import { sleep } from "./processes.mjs";

export class Proxy {
  #pairs = new Set();
  #isSilent = false;
  // How much later bytes arrive, in milliseconds.
  delay = 0;

  // Starts a proxy in front of a port.
  static async start(target) {
    const proxy = new Proxy();
    proxy.server = createServer((client) => proxy.#accept(client, target)).listen(0, "127.0.0.1");
    await once(proxy.server, "listening");
    proxy.port = proxy.server.address().port;
    return proxy;
  }

  #accept(client, target) {
    const server = connect(target, "127.0.0.1");
    const pair = [client, server];
    this.#pairs.add(pair);
    for (const [from, to] of [pair, pair.toReversed()]) {
      let last = Promise.resolve();
      // Bytes stay in order, also when the delay becomes shorter.
      const later = (action) => {
        const due = this.delay > 0 ? sleep(this.delay) : undefined;
        last = last.then(() => due).then(action);
      };
      from.setNoDelay();
      from.on("data", (bytes) => later(() => to.write(bytes)));
      from.on("end", () => later(() => to.end()));
      from.on("error", () => to.destroy());
      from.on("close", () => this.#pairs.delete(pair));
      if (this.#isSilent) from.pause();
    }
  }

  // Passes nothing on, neither bytes nor ends, and closes nothing. New connections are accepted.
  silence() {
    this.#isSilent = true;
    for (const pair of this.#pairs) for (const end of pair) end.pause();
  }

  // Passes on what has waited.
  resume() {
    this.#isSilent = false;
    for (const pair of this.#pairs) for (const end of pair) end.resume();
  }

  // Ends all connections.
  cut() {
    for (const pair of this.#pairs) for (const end of pair) end.destroy();
  }

  close() {
    this.cut();
    this.server.close();
  }
}
