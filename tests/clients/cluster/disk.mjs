// A NATS server whose disk is full, with two nodes and a PostgreSQL of its own.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { eventually, freePort, NATS_SERVER, Node, place, psql, sleep } from "./processes.mjs";
import { Subscriber, token } from "./subscriber.mjs";

const ROWS = 200;
// What the nodes say. nats-server 2.9 answers no more when its disk is full, later ones report the error
// only to clients that wait for acknowledgements.
const PROBLEM = /JetStream does not keep the changes|because its disk is full/;

// Starts a server with a disk of six megabytes. Returns its port, or nothing where that is not allowed.
async function startSmall(folder) {
  const [store, config, port] = [join(folder, "small"), join(folder, "small.conf"), await freePort()];
  await mkdir(store);
  await writeFile(config, `listen: "127.0.0.1:${port}"\njetstream { store_dir: "${store}", max_file_store: 2GB }\n`);
  const start = 'mount -t tmpfs -o size=6m none "$1" && exec "$3" -c "$2"';
  const args = ["--mount", "sh", "-c", start, "sh", store, config, NATS_SERVER];
  const server = spawn("unshare", args, { stdio: "ignore" });
  process.on("exit", () => server.kill("SIGKILL"));
  await sleep(1000);
  return server.exitCode === null ? { server, port } : undefined;
}

// Writes rows of 32 kB, each in a transaction of its own.
function write(demo, first, count) {
  return psql(demo, `DO $$BEGIN FOR id IN ${first}..${first + count - 1} LOOP
    INSERT INTO ticks SELECT id, string_agg(md5(random() :: text), '') FROM generate_series(1, 1000);\nCOMMIT;
    PERFORM pg_sleep(0.02);\nEND LOOP;\nEND$$`);
}

export const diskSteps = {
  async "a full disk of NATS is said, and events go on"() {
    const demo = await place();
    const small = await startSmall(demo.folder);
    if (!small) {
      assert(!process.env.TIDEGATE_TEST_REQUIRE?.split(",").includes("unshare"), "no disk can be mounted");
      console.log("  left out: no disk can be mounted");
      return;
    }
    await psql(demo, "CREATE TABLE ticks (id bigint PRIMARY KEY, note text); ALTER TABLE ticks OWNER TO demo");
    const settings = { TIDEGATE_BUS_URL: `nats://127.0.0.1:${small.port}` };
    const nodes = [await Node.start(demo, "one", settings), await Node.start(demo, "two", settings)];
    const bearer = await token(nodes[0].url);
    const subscribers = nodes.map((node) => new Subscriber(node.name, () => [node], node, bearer));
    await eventually("they subscribe", () => subscribers.every((it) => it.isReady));
    let written = 0;
    await eventually("the problem is said", async () => {
      await write(demo, written + 1, ROWS);
      written += ROWS;
      return nodes.some(({ log }) => log.some((line) => PROBLEM.test(line)));
    }, 90_000);
    const readiness = await Promise.all(nodes.map((it) => it.readiness()));
    assert(readiness.some(({ status, checks }) => status === "ready" && checks.bus === "degraded"));
    // The nodes do not end each other's streams, although they do not hear each other.
    const ends = () => nodes.flatMap(({ log }) => log.filter((line) => line.includes("has fallen silent"))).length;
    const before = ends();
    await write(demo, written + 1, ROWS);
    written += ROWS;
    await sleep(5000);
    assert.equal(ends(), before, "a reader was ended");
    const expected = Array.from({ length: written }, (_, index) => index + 1);
    for (const it of subscribers) {
      await eventually("all events", () => it.ids.length >= written);
      assert.deepEqual(it.ids, expected, it.name);
      assert.deepEqual(it.resyncs, [], it.name);
      await it.end();
    }
    await Promise.all(nodes.map((node) => node.stop("SIGTERM")));
    small.server.kill("SIGKILL");
    await demo.stop();
  },
};
