// One node reads the changes of a database for all, over NATS: what subscribers see while processes
// are killed. An argument is a part of the names of the steps to run, `nats` for all steps in which
// NATS fails, or `soak` and a number of faults.

import { cluster, nats, start, stop } from "./cluster.mjs";
import { databasesSteps } from "./databases.mjs";
import { diskSteps } from "./disk.mjs";
import { soak } from "./faults.mjs";
import { natsSteps } from "./nats.mjs";
import { networkSteps } from "./network.mjs";
import { nodesSteps } from "./nodes.mjs";
import { postgresqlSteps } from "./postgresql.mjs";
import { rightsSteps } from "./rights.mjs";
import { upgradeSteps } from "./upgrade.mjs";

for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(1));

function fail(error) {
  for (const node of cluster.nodes) console.log(`-- ${node.name}\n${node.log.slice(-12).join("\n")}`);
  for (const it of cluster.subscribers) console.log(`-- ${it.name}: ${it.errors.slice(-3)}`);
  console.log(error);
  process.exit(1);
}

// Runs a step. Ends this program if it fails.
async function run([name, step]) {
  const began = Date.now();
  try {
    await step();
  } catch (error) {
    console.log(`FAILED: ${name}`);
    fail(error);
  }
  console.log(`ok: ${name} (${Date.now() - began} ms)`);
}

const [, , only, count] = process.argv;
const steps = {
  ...nodesSteps,
  ...rightsSteps,
  ...databasesSteps,
  ...natsSteps,
  ...diskSteps,
  ...postgresqlSteps,
  ...networkSteps,
  ...upgradeSteps,
};
const faults = only === "soak" ? count : 20;
steps[`soak of ${faults} faults`] = () => soak(Number(faults));
const isOfNats = only === "nats";
const isChosen = (name) => (isOfNats ? name in natsSteps : name.includes(only ?? ""));
const chosen = Object.entries(steps).filter(([name]) => isChosen(name));
if (chosen.length === 0) fail(`no step has a name with ${only}`);
await start().catch(fail);
console.log(`nats-server ${nats.servers[0].version}`);
// The full disk has servers of its own and mostly waits. Beside the other steps it saves the client `nats` a
// minute.
const beside = Object.entries(isOfNats ? diskSteps : {}).map(run);
for (const it of chosen) await run(it);
await Promise.all(beside);
await stop();
console.log(`${chosen.length + beside.length} steps, ${cluster.written} events`);
process.exit(0);
