// PostgreSQL that restarts.

import assert from "node:assert/strict";

import { cluster, complete, nats, oneStream, streams, write } from "./cluster.mjs";
import { eventually } from "./processes.mjs";
import { restartPostgresql } from "./server.mjs";

export const postgresqlSteps = {
  async "PostgreSQL that restarts waits for no reader"() {
    await write(20);
    const took = await restartPostgresql("SIGINT");
    console.log(`  PostgreSQL was down for ${took} ms`);
    assert(took < 8000);
    await write(20);
    await complete();
    await oneStream();
  },

  // Every node opens its stream again, and captures the table again.
  async "PostgreSQL that restarts while NATS is away makes no gap"() {
    await nats.stop();
    await eventually("each node reads", async () => (await streams()).length === cluster.nodes.length);
    await restartPostgresql("SIGQUIT");
    await write(20);
    await eventually("each node reads", async () => (await streams()).length === cluster.nodes.length);
    await complete();
    await nats.start();
    await oneStream();
    await write(20);
    await complete();
  },
};
