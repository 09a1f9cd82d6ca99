// A NATS client with credentials, which hears everything and publishes what it likes (NATS, "Client
// Protocol").

import { once } from "node:events";
import { connect } from "node:net";

import { PASSWORD, USER } from "./processes.mjs";

export class Eavesdropper {
  // What came: the subject and the payload.
  heard = [];
  #rest = Buffer.alloc(0);

  static async listen(port) {
    const client = new Eavesdropper();
    client.socket = connect(port, "127.0.0.1");
    client.socket.on("data", (bytes) => client.#read(bytes));
    await once(client.socket, "connect");
    client.socket.write(
      `CONNECT ${JSON.stringify({ user: USER, pass: PASSWORD, verbose: false, pedantic: false })}\r\n` +
        "SUB > 1\r\nPING\r\n",
    );
    return client;
  }

  #read(bytes) {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      const end = this.#rest.indexOf("\r\n");
      if (end < 0) return;
      const line = this.#rest.subarray(0, end).toString();
      let next = end + 2;
      const words = line.split(" ");
      if (words[0] === "MSG") {
        const length = Number(words.at(-1));
        if (this.#rest.length < next + length + 2) return;
        this.heard.push({ subject: words[1], payload: this.#rest.subarray(next, next + length) });
        next += length + 2;
      } else if (line === "PING") {
        this.socket.write("PONG\r\n");
      }
      this.#rest = this.#rest.subarray(next);
    }
  }

  publish(subject, payload) {
    this.socket.write(`PUB ${subject} ${payload.length}\r\n`);
    this.socket.write(payload);
    this.socket.write("\r\n");
  }

  close() {
    this.socket.destroy();
  }
}

// A server that says it has an old version.
export function ancient(socket) {
  const info = { server_id: "x", version: "2.1.9", proto: 1, host: "127.0.0.1", port: 4222,
    max_payload: 1048576, headers: true, jetstream: true };
  socket.write(`INFO ${JSON.stringify(info)}\r\n`);
  socket.on("data", (bytes) => bytes.includes("PING") && socket.write("PONG\r\n"));
  socket.on("error", () => {});
}
