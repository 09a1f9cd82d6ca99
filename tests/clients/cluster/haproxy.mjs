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
    const file = join(folder, "haproxy.cfg");
    await writeFile(file, text);
    haproxy.child = launch("haproxy", ["-db", "-f", file], process.env, haproxy.log);
    await eventually("HAProxy sends requests to all nodes", () => haproxy.sendsTo(nodes.length));
    return haproxy;
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

  stop() {
    return end(this.child, "SIGTERM");
  }
}
