// HAProxy with the file of the package, in front of the nodes.

import { readFile, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";

import { end, eventually, freePort, launch } from "./processes.mjs";

const FILE = new URL("../../../dist/haproxy.cfg", import.meta.url);
// The state of a server that gets requests (HAProxy, "Management Guide", "show servers state").
const RUNNING = "2";

export class Haproxy {
  log = [];

  static async start(folder, nodes) {
    const haproxy = new Haproxy();
    haproxy.port = await freePort();
    haproxy.url = `http://127.0.0.1:${haproxy.port}`;
    haproxy.socket = join(folder, "haproxy.sock");
    let text = (await readFile(FILE, "utf8"))
      .replace(/bind :443 .*/, `bind 127.0.0.1:${haproxy.port}`)
      .replace("log /dev/log local0", `stats socket ${haproxy.socket}`)
      .replace(/^ *(user|group) .*\n/gm, "");
    for (const [index, { url }] of nodes.entries()) {
      text = text.replace(`127.0.0.1:${8081 + index}`, new URL(url).host);
    }
    haproxy.file = join(folder, "haproxy.cfg");
    haproxy.count = nodes.length;
    await writeFile(haproxy.file, text);
    await haproxy.run();
    return haproxy;
  }

  // Starts the process. Returns when all nodes get requests.
  async run() {
    this.child = launch("haproxy", ["-db", "-f", this.file], process.env, this.log);
    await eventually("HAProxy sends requests to all nodes", () => this.sendsTo(this.count));
  }

  // Whether this many nodes get requests.
  async sendsTo(count) {
    const socket = connect(this.socket);
    let text = "";
    socket.on("data", (bytes) => (text += bytes));
    // It has not opened its socket yet.
    socket.on("error", () => {});
    socket.end("show servers state tidegate\n");
    await new Promise((done) => socket.on("close", done));
    const states = text.split("\n").map((line) => line.split(" ")[5]);
    return states.filter((it) => it === RUNNING).length === count;
  }

  stop(signal = "SIGTERM") {
    return end(this.child, signal);
  }
}
